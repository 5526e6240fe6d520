import { spawnSync } from "node:child_process"
import { Effect } from "effect"
import { Batch, Rng, Space } from "effect-rl"
import { Gymnasium } from "effect-rl/node"
import { defineBench } from "../Bench.ts"

const python = process.env.EFFECT_RL_PYTHON ?? "python3"
const [numEnvs, processes, steps] = [16, 2, 2000]

/** Prints the steps a second of Gymnasium's own vector envs: all envs in one process, and a process for each env. */
const reference = `
import sys, time, gymnasium
def speed(mode):
    envs = gymnasium.make_vec(sys.argv[1], ${numEnvs}, vectorization_mode=mode)
    envs.reset(seed=1)
    envs.action_space.seed(1)
    actions = [envs.action_space.sample() for _ in range(64)]
    for step in range(100): envs.step(actions[step % 64])
    start = time.perf_counter()
    for step in range(${steps}): envs.step(actions[step % 64])
    seconds = time.perf_counter() - start
    envs.close()
    return ${numEnvs} * ${steps} / seconds
if __name__ == "__main__": print(speed("sync"), speed("async"))
`

const measure = (id: string, count: number): Promise<number> =>
  Effect.gen(function* () {
    const batch = yield* Batch.open(Gymnasium.env(id, { python, processes: count }), numEnvs)
    yield* batch.reset(1) ?? Effect.void
    const size = Space.sizeOf(batch.actionSpace)
    const actions = Array.from({ length: 64 }, (_, step) => {
      const row = batch.actionSpace._tag === "Box" ? new Float32Array(numEnvs * size) : new Int32Array(numEnvs * size)
      for (let env = 0; env < numEnvs; env++)
        Space.sampleInto(batch.actionSpace, Rng.stream(1, step, env), row, env * size)
      return row
    })
    for (let step = 0; step < 100; step++) yield* batch.step(actions[step % 64]) ?? Effect.void
    const start = performance.now()
    for (let step = 0; step < steps; step++) yield* batch.step(actions[step % 64]) ?? Effect.void
    return (1000 * numEnvs * steps) / (performance.now() - start)
  }).pipe(Effect.scoped, Effect.runPromise)

/** Makes the benchmark of an env, which needs a module of Python besides Gymnasium. */
const benchOf = (name: string, id: string, needs: string) =>
  defineBench({
    name,
    unit: "× async vector env",
    higherIsBetter: true,
    about: `${id} of Gymnasium with random actions, 16 envs in 2 processes: steps a second as a multiple of AsyncVectorEnv's`,
    run: async () => {
      const measured = spawnSync(python, ["-c", reference, id], { encoding: "utf8" })
      if (measured.status !== 0) throw new Error(`${python} lacks ${needs}; EFFECT_RL_PYTHON can name another Python`)
      const [sync, own] = measured.stdout.trim().split(" ").map(Number)
      const [one, several] = [await measure(id, 1), await measure(id, processes)]
      return {
        value: several / own,
        details: {
          "steps/s, 2 processes": Math.round(several),
          "1 process": Math.round(one),
          "AsyncVectorEnv, 16 processes": Math.round(own),
          "SyncVectorEnv, 1 process": Math.round(sync),
        },
      }
    },
  })

export default [
  benchOf("gymnasium-cartpole", "CartPole-v1", "gymnasium"),
  benchOf("gymnasium-lander", "LunarLander-v3", "gymnasium[box2d]"),
  benchOf("gymnasium-cheetah", "HalfCheetah-v5", "gymnasium[mujoco]"),
]
