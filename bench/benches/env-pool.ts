import { Effect } from "effect"
import { Batch, CartPole, type Env, EnvPool } from "effect-rl"
import { envPool } from "effect-rl/node"
import { defineBench } from "../Bench.ts"
import { heavy } from "../envs/heavy.ts"

const numEnvs = 32
const workers = 2

export default defineBench({
  name: "env-pool",
  unit: "× in process",
  higherIsBetter: true,
  about: "Steps a second of 32 heavy envs in 2 worker threads, as a multiple of those in process",
  run: ({ time }) => {
    const speed = (batch: ReturnType<typeof Batch.make>): number => {
      const actions = new Int32Array(numEnvs)
      batch.reset(1, "bench")
      return numEnvs / time(() => batch.step(actions), { minimumSeconds: 1 }).seconds
    }
    const ratio = (env: Env.Env) =>
      Effect.gen(function* () {
        const pool = yield* EnvPool.EnvPool
        const here = speed(Batch.make(env, numEnvs))
        const there = speed(yield* pool.make(env, numEnvs, { workers }))
        return { here, there }
      }).pipe(Effect.scoped, Effect.provide(envPool))
    return Effect.runPromise(
      Effect.gen(function* () {
        const [slow, quick] = [yield* ratio(heavy), yield* ratio(CartPole.env)]
        return {
          value: slow.there / slow.here,
          details: {
            "heavy, steps/s in process": Math.round(slow.here),
            "CartPole, × in process": Math.round((1000 * quick.there) / quick.here) / 1000,
          },
        }
      }),
    )
  },
})
