import { existsSync, readdirSync, readFileSync, renameSync } from "node:fs"
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import * as Ppo from "../../../src/rl/algorithms/rollouts/Ppo.ts"
import * as Env from "../../../src/rl/env/Env.ts"
import * as Space from "../../../src/rl/env/Space.ts"
import { backend, recorder, runStore } from "../../../src/node.ts"
import * as Train from "../../../src/rl/train/Train.ts"
import { withFolder } from "../../command/cli/effect.ts"

const steps = 96

/** Trains in `results`, with a checkpoint after every 32 steps, and calls `meanwhile` before the step of this number. */
const train = (results: string, { resume, at = Infinity, meanwhile = () => {} }: Trained = {}) => {
  let step = 0
  const env = Env.make({
    id: "Moving-v0",
    observationSpace: Space.box(0, 1, [1]),
    actionSpace: Space.discrete(2),
    maxSteps: 5,
    reset: () => 0,
    observe: () => [0],
    step: (state, action) => {
      if (++step === at) meanwhile()
      return { state, reward: action, terminated: false }
    },
  })
  const algorithm = Ppo.make({ hidden: [4], nsteps: 16, minibatches: 1, epochs: 1 })
  const store = runStore({ resultsDir: results, ...(resume === undefined ? {} : { resume }) })
  return Train.run({ env, numEnvs: 1, algorithm, totalSteps: steps, checkpoint: { everySteps: 32 } }).pipe(
    Effect.provide(Layer.mergeAll(backend("wasm"), store, recorder())),
  )
}

interface Trained {
  readonly resume?: string
  readonly at?: number
  readonly meanwhile?: () => void
}

it(
  "a training whose folder is moved ends with an error, and goes on at the new place to the same bits",
  { tags: "slow" },
  () =>
    withFolder((folder) =>
      Effect.runPromise(
        Effect.gen(function* () {
          const [whole, before, after] = ["whole", "before", "after"].map((name) => join(folder, name))
          const { digest } = yield* train(whole)
          const error = yield* Effect.flip(train(before, { at: 50, meanwhile: () => renameSync(before, after) }))
          assert.match(error.message, /^cannot write .*0001: the folder was moved or deleted during the run; resume/)
          // A log that is opened later begins anew, but nothing that looks like a run.
          const left = existsSync(before) ? readdirSync(before, { recursive: true, encoding: "utf8" }) : []
          assert.deepStrictEqual(
            left.filter((path) => /checkpoint|config|return|metrics/.test(path)),
            [],
          )
          const [log] = readdirSync(after, { recursive: true, encoding: "utf8" }).filter((path) =>
            path.endsWith("run.log"),
          )
          assert.match(readFileSync(join(after, log), "utf8"), /failed at step 64 .*the folder was moved or deleted/)
          const resumed = yield* train(after, { resume: join(after, log, "..") })
          assert.deepStrictEqual([resumed.digest, resumed.steps], [digest, steps])
        }),
      ),
    ),
)
