/** A worker that trains in a bucket of R2 on the backend in TypeScript, and answers with the run and its digest. */
import { Effect, Layer } from "effect"
import { CartPole, Ppo, Reference, RunStore, storedRuns, Train } from "../../src/index.ts"
import * as Web from "../../src/web.ts"

export const train = (totalSteps: number, resume?: string) =>
  Train.run({
    env: CartPole.env,
    numEnvs: 2,
    algorithm: Ppo.make({ nsteps: 16, epochs: 1, minibatches: 2, hidden: [8], schedule: "constant" }),
    totalSteps,
  }).pipe(
    Effect.provide(
      Layer.mergeAll(
        Web.recorder(),
        Reference.layer,
        RunStore.layerObjects({ time: new Date(0), ...(resume === undefined ? {} : { resume }) }),
      ),
    ),
  )

export default {
  fetch: (_: Request, { RUNS }: { readonly RUNS: Web.Bucket }): Promise<Response> =>
    Effect.runPromise(
      Effect.gen(function* () {
        const resume = (yield* storedRuns).at(-1)
        const { runDir, digest } = yield* train(resume === undefined ? 64 : 128, resume)
        return Response.json({ runDir, digest })
      }).pipe(Effect.provide(Web.layerBucket(RUNS))),
    ),
}
