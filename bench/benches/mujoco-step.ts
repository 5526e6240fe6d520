import { Effect } from "effect"
import { Ant, Batch, type Env, EnvPool, HalfCheetah, Hopper, Humanoid, Rng, Space } from "effect-rl"
import { envPool } from "effect-rl/node"
import { defineBench } from "../Bench.ts"

const numEnvs = 16

/** Steps 16 copies of a body for some seconds with random actions, and returns the env steps a second. */
const speedOf = (env: Env.Env, workers: number): Promise<number> =>
  Effect.gen(function* () {
    const pool = yield* EnvPool.EnvPool
    const batch = yield* workers === 1 ? Batch.open(env, numEnvs) : pool.make(env, numEnvs, { workers })
    yield* batch.reset(1) ?? Effect.void
    const size = Space.sizeOf(batch.actionSpace)
    const actions = Array.from({ length: 64 }, (_, step) => {
      const row = new Float32Array(numEnvs * size)
      for (let at = 0; at < numEnvs; at++) Space.sampleInto(batch.actionSpace, Rng.stream(1, step, at), row, at * size)
      return row
    })
    // MuJoCo's module is compiled while it runs; the first steps are several times slower.
    const step = (seconds: number): number => {
      const start = performance.now()
      let steps = 0
      while (performance.now() - start < 1000 * seconds) batch.step(actions[steps++ % 64])
      return (1000 * numEnvs * steps) / (performance.now() - start)
    }
    step(2)
    return step(3)
  }).pipe(Effect.scoped, Effect.provide(envPool), Effect.runPromise)

const bodies = [
  ["half-cheetah", HalfCheetah.env],
  ["hopper", Hopper.env],
  ["ant", Ant.env],
  ["humanoid", Humanoid.env],
] as const

export default bodies.flatMap(([name, env]) =>
  [1, 2].map((workers) =>
    defineBench({
      name: `mujoco-step-${name}${workers === 1 ? "" : "-2"}`,
      unit: "env steps/s",
      higherIsBetter: true,
      about: `16 copies of ${env.id} with random actions in ${workers === 1 ? "one thread" : `${workers} threads`}`,
      run: async () => ({ value: await speedOf(env, workers) }),
    }),
  ),
)
