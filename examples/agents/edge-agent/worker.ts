// Serves guests in an edge worker: `POST /?guests=4` lets the agent serve so many, and keeps the run in the namespace RUNS.
// The next request goes on with that run, and so can a process in Node that reads the same keys. Send one request after
// another, because nothing locks a run in a namespace; and let nobody else reach the worker, since each request costs calls.
//   npx wrangler deploy     (wrangler.toml is beside this file)
import { RunStore, storedRuns } from "effect-rl"
import * as Web from "effect-rl/web"
import { Effect, Layer } from "effect"
import { waiter } from "./agent.ts"

interface Bindings {
  readonly RUNS: Web.Namespace
  readonly MODEL: string
  readonly MODEL_URL: string
  /** A secret, which `npx wrangler secret put MODEL_KEY` sets. A model on a machine of your own may need none. */
  readonly MODEL_KEY?: string
}

/** Serves guests until `served` were served in this run, which is the latest in the store or a new one. */
const serve = (served: number, env: Bindings) =>
  Effect.gen(function* () {
    const resume = (yield* storedRuns).at(-1)
    const stored = RunStore.layerObjects(resume === undefined ? {} : { resume })
    return yield* waiter(served, { model: env.MODEL, baseUrl: env.MODEL_URL, apiKey: env.MODEL_KEY ?? null }).pipe(
      Effect.provide(Layer.mergeAll(Web.recorder(Web.consoleProgress), Web.platform, stored)),
    )
  }).pipe(Effect.provide(Web.layerNamespace(env.RUNS)))

export default {
  fetch: (request: Request, env: Bindings): Promise<Response> => {
    const guests = Number(new URL(request.url).searchParams.get("guests"))
    if (request.method !== "POST" || !Number.isInteger(guests) || guests < 1)
      return Promise.resolve(Response.json({ error: "expected POST /?guests=N" }, { status: 400 }))
    return Effect.runPromise(
      serve(guests, env).pipe(
        Effect.match({
          onSuccess: ({ runDir, trainEpisodes, meanReturn, digest }) =>
            Response.json({ runDir, guests: trainEpisodes, meanReturn, digest }),
          onFailure: ({ message }) => Response.json({ error: message }, { status: 500 }),
        }),
      ),
    )
  },
}
