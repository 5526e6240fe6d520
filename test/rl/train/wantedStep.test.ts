import { assert, describe, it } from "@effect/vitest"
import { gunzipSync } from "node:zlib"
import { Effect } from "effect"
import * as Es from "../../../src/rl/algorithms/episodes/Es.ts"
import * as Ppo from "../../../src/rl/algorithms/rollouts/Ppo.ts"
import * as Sac from "../../../src/rl/algorithms/replay/Sac.ts"
import * as Td3 from "../../../src/rl/algorithms/replay/Td3.ts"
import * as CartPole from "../../../src/rl/env/classic/CartPole.ts"
import * as Pendulum from "../../../src/rl/env/classic/Pendulum.ts"
import type { RunEvent } from "../../../src/run/record/RunEvent.ts"
import { RunOptions } from "../../../src/run/RunOptions.ts"
import { layer as policyHeaders } from "../../../src/rl/train/policyHeaders-node.ts"
import { keep } from "./inMemory.ts"

type Input = Parameters<typeof keep>[0]

// An iteration is 32 steps.
const short = {
  env: CartPole.env,
  numEnvs: 2,
  recordEvery: 1,
  totalSteps: 640,
  algorithm: Ppo.make({ nsteps: 16, minibatches: 1, epochs: 1 }),
  normalize: { observations: true, rewards: true },
}

/** A training that is asked between its iterations, and wanted to be seen before these of them. */
const wanted = (input: Input, iterations: ReadonlyArray<number>, onWanted = (): void => {}) => {
  let asked = 0
  const isStepWanted = Effect.sync(() => {
    const isWanted = iterations.includes(asked++)
    if (isWanted) onWanted()
    return isWanted
  })
  return keep(input).pipe(
    Effect.provideService(RunOptions, { overrides: [], source: "train.ts", name: "run", isStepWanted }),
  )
}

const folderOf = (step: number): string => `steps/${String(step).padStart(15, "0")}`

/** The events in their order, then those of checkpoints in theirs: a checkpoint is written while the training goes on. */
const inOrder = (events: ReadonlyArray<RunEvent>): ReadonlyArray<RunEvent> => [
  ...events.filter((event) => event._tag !== "CheckpointSaved"),
  ...events.filter((event) => event._tag === "CheckpointSaved"),
]

describe("a step that somebody wants to see", () => {
  const checked = (input: Input, episodes: number, steps: ReadonlyArray<number>) =>
    Effect.gen(function* () {
      const plain = yield* keep(input)
      const looked = yield* wanted(input, [2, 8, 18])
      for (const step of steps) {
        const inFolder = (file: string): string => `${folderOf(step)}/${file}`
        for (const file of ["trajectories.json.gz", "episode.svg", "checkpoint.onnx", "checkpoint.h5"]) {
          assert.isTrue(looked.files.has(inFolder(file)), inFolder(file))
          assert.isFalse(plain.files.has(inFolder(file)))
        }
        const evaluation = JSON.parse(new TextDecoder().decode(looked.files.get(inFolder("evaluation_results.json"))))
        assert.deepEqual([evaluation.step, evaluation.returns.length], [step, episodes])
      }
      const isNew = (path: string): boolean =>
        /^ui(\.esm)?\.js$/.test(path) || steps.some((step) => path.startsWith(folderOf(step)))
      assert.deepEqual(
        [...looked.files.keys()].filter((path) => !isNew(path)).sort(),
        [...plain.files.keys()].filter((path) => !isNew(path)).sort(),
      )
      assert.strictEqual(looked.result.digest, plain.result.digest)
      for (const [path, bytes] of plain.files) assert.deepEqual(looked.files.get(path), bytes, path)
      const untold = looked.events.filter((event) => event._tag !== "Note" || !event.message.includes("on request"))
      assert.deepEqual(inOrder(untold), inOrder(plain.events))
    })

  it.effect("is kept whole, and is all that differs from a run that nobody looked at", () =>
    checked(short, 20, [64, 256, 576]),
  )

  it.effect(
    "also where the run validates and renders by itself",
    () =>
      checked({ ...short, validation: { everySteps: 128, episodes: 3 }, render: { everySteps: 256 } }, 3, [64, 576]),
    { tags: "slow" },
  )

  it.effect("is evaluated as a validation at that step would", () =>
    Effect.gen(function* () {
      const evaluation = ({ files }: Effect.Success<ReturnType<typeof keep>>): string =>
        new TextDecoder().decode(files.get(`${folderOf(256)}/evaluation_results.json`))
      const looked = yield* wanted(short, [8])
      const rendered = yield* keep({ ...short, validation: { everySteps: 256 }, render: { everySteps: 256 } })
      assert.isAbove(evaluation(looked).length, 0)
      assert.strictEqual(evaluation(looked), evaluation(rendered))
    }),
  )

  it.effect("can't be shown while its env is broken: that is a warning, and the run goes on", () =>
    Effect.gen(function* () {
      let breaks = false
      const { batch: _batch, ...cartPole } = CartPole.env
      const env = {
        ...cartPole,
        id: "brittle",
        reset: (random: Parameters<typeof cartPole.reset>[0]) => {
          if (!breaks) return cartPole.reset(random)
          breaks = false
          throw new Error("no steps today")
        },
      }
      const { events, result, files } = yield* wanted({ ...short, env }, [2], () => (breaks = true))
      assert.strictEqual(result.steps, 640)
      const said = events.flatMap((event) => (event._tag === "Warning" ? [event.message] : []))
      assert.match(said.join(), /^step 64 was requested, but cannot be rendered: .*no steps today/)
      assert.isFalse(files.has(`${folderOf(64)}/checkpoint.onnx`))
    }),
  )

  it.effect(
    "has a header whose example is the action that the episode began with, as the env takes it",
    () =>
      Effect.forEach([Ppo.make({ nsteps: 16, minibatches: 1 }), Sac.make(), Td3.make()], (algorithm) =>
        Effect.gen(function* () {
          const training = { ...short, env: Pendulum.env, normalize: {}, algorithm, totalSteps: 64 }
          const { files } = yield* Effect.provide(wanted(training, [1]), policyHeaders)
          const [folder] = [...files.keys()].flatMap((path) => /^(steps\/\d+\/)checkpoint\.h$/.exec(path)?.[1] ?? [])
          const text = new TextDecoder().decode(files.get(`${folder}checkpoint.h`))
          const [{ trajectory }] = JSON.parse(
            gunzipSync(files.get(`${folder}trajectories.json.gz`) ?? new Uint8Array()).toString(),
          )
          const example = Number.parseFloat(
            /float effect_policy_example_action\[3\] = \{\s*([^,f]+)/.exec(text)?.[1] ?? "",
          )
          assert.closeTo(example, trajectory[0].action[0], 1e-5, algorithm.name)
          assert.isAbove(Math.abs(example), 1e-4)
        }),
      ),
    { tags: "slow" },
  )

  it.effect("has a policy in it, whatever the algorithm", () =>
    Effect.gen(function* () {
      const algorithm = Es.make()
      const { files } = yield* wanted({ ...short, normalize: {}, algorithm, totalSteps: 4000 }, [1])
      assert.isTrue([...files.keys()].some((path) => /^steps\/\d+\/checkpoint\.safetensors$/.test(path)))
    }),
  )
})
