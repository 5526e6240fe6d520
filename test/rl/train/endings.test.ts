import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer, Schema } from "effect"
import * as Algorithm from "../../../src/rl/learner/Algorithm.ts"
import * as Bc from "../../../src/rl/algorithms/demonstrations/Bc.ts"
import * as Demonstrations from "../../../src/rl/learner/Demonstrations.ts"
import * as Es from "../../../src/rl/algorithms/episodes/Es.ts"
import * as Ppo from "../../../src/rl/algorithms/rollouts/Ppo.ts"
import * as Wasm from "../../../src/tensor/backend/wasm.ts"
import * as CartPole from "../../../src/rl/env/classic/CartPole.ts"
import * as Env from "../../../src/rl/env/Env.ts"
import * as Space from "../../../src/rl/env/Space.ts"
import { RunStore } from "../../../src/run/store/RunStore.ts"
import { Recorder } from "../../../src/run/record/Recorder.ts"
import { failureIn } from "../../../src/run/read/folderFacts.ts"
import { runLog } from "../../../src/run/record/runLog.ts"
import { tensorBoard } from "../../../src/run/record/tensorBoard.ts"
import { RunOptions } from "../../../src/run/RunOptions.ts"
import * as Train from "../../../src/rl/train/Train.ts"
import { keep } from "./inMemory.ts"
import { resumable } from "./resumable.ts"

type Input = Parameters<typeof keep>[0]

const short: Omit<Input, "algorithm"> = { env: CartPole.env, numEnvs: 2, totalSteps: 64 }
const ppo = { nsteps: 16, minibatches: 1, epochs: 1 }
const shownBy = (choice: number) =>
  Demonstrations.record(CartPole.env, { episodes: 2, policy: ([, , angle]) => (angle > 0 ? choice : 1 - choice) })

describe("a training that is interrupted in an iteration that then fails", () => {
  it.effect("saves nothing, for the iteration is half done", () =>
    Effect.gen(function* () {
      const updating = yield* Deferred.make<void>()
      const goOn = yield* Deferred.make<void>()
      const { make } = Algorithm.define({
        name: "failing",
        config: Schema.Struct({}),
        setup: () =>
          Effect.succeed({
            devices: {},
            rollout: () => Effect.succeed(8),
            update: () =>
              Deferred.succeed(updating, undefined).pipe(
                Effect.andThen(Deferred.await(goOn)),
                Effect.andThen(Effect.fail(new Algorithm.LearningError({ message: "diverged" }))),
              ),
            metrics: () => ({}),
            weights: Effect.succeed({}),
            state: Effect.succeed({}),
            restore: () => Effect.void,
          }),
      })
      const store = RunStore.memory()
      const fiber = yield* Train.run({ ...short, algorithm: make() }).pipe(
        Effect.provide(Layer.mergeAll(Wasm.layer, store.layer, Recorder.layerSilent)),
        Effect.forkChild,
      )
      yield* Deferred.await(updating)
      const interruption = yield* Effect.forkChild(Fiber.interrupt(fiber))
      for (let turn = 0; turn < 10; turn++) yield* Effect.yieldNow
      yield* Deferred.succeed(goOn, undefined)
      yield* Fiber.join(interruption)
      assert.isNotEmpty([...store.files.keys()])
      assert.deepEqual(
        [...store.files.keys()].filter((path) => path.includes("checkpoints/")),
        [],
      )
    }),
  )
})

describe("the best checkpoints", () => {
  it.effect("are those of the best validations, though nobody asked for checkpoints at all", () =>
    Effect.gen(function* () {
      const { files, events } = yield* keep({
        ...short,
        totalSteps: 320,
        algorithm: Ppo.make({ ...ppo, learningRate: 0.01 }),
        validation: { everySteps: 32, episodes: 3 },
        checkpoint: { strategy: { _tag: "TopKValidation", keep: 2 } },
      })
      const scores = events.flatMap((event) =>
        event._tag === "ValidationEnded" ? [{ step: event.step, score: event.meanReturn }] : [],
      )
      assert.strictEqual(scores.length, 10)
      const best = [...scores].sort((a, b) => b.score - a.score || b.step - a.step).slice(0, 2)
      const steps = new Set([...files.keys()].flatMap((path) => /step_(\d+)\//.exec(path)?.slice(1).map(Number) ?? []))
      // And the newest, which `latest` names.
      assert.deepEqual([...steps].sort(), [...new Set([...best.map(({ step }) => step), 320])].sort())
    }),
  )
})

describe("what is learnt from demonstrations", () => {
  it.effect("can't be gone on with from others", () =>
    Effect.gen(function* () {
      const input: Input = { ...short, totalSteps: 640, algorithm: Bc.make(shownBy(1)) }
      const { whole, resumed } = yield* resumable(input, 320)
      assert.strictEqual(resumed.digest, whole.digest)
      const error = yield* Effect.flip(resumable(input, 320, { algorithm: Bc.make(shownBy(0)) }))
      assert.match(error.message, /the checkpoint was saved with data = /)
    }),
  )

  it.effect("is not normalised by envs that are never played", () =>
    Effect.gen(function* () {
      const input: Input = { ...short, algorithm: Bc.make(shownBy(1)), normalize: { observations: true } }
      const { message } = yield* Effect.flip(keep(input))
      assert.strictEqual(
        message,
        'Train.run: normalize.observations: algorithm "bc" plays no env, so there is nothing to normalise by',
      )
    }),
  )
})

describe("evolution", () => {
  it.effect("counts an episode of each env a generation, and not what is played until the last has ended", () =>
    Effect.gen(function* () {
      const { events } = yield* keep({ ...short, numEnvs: 8, totalSteps: 30_000, algorithm: Es.make() })
      const ends = events.filter(({ _tag }) => _tag === "EpisodeEnded" || _tag === "UpdateApplied")
      let episodes = 0
      let updates = 0
      for (const event of ends) {
        if (event._tag === "EpisodeEnded") episodes++
        else if (event._tag === "UpdateApplied") {
          assert.strictEqual(episodes, 8 * (event.update - updates))
          updates = event.update
          episodes = 0
        }
      }
      assert.isAbove(updates, 3)
    }),
  )
})

describe("noise that is held for several steps", () => {
  it.effect("is held across rollouts, too", () =>
    Effect.gen(function* () {
      const digestOf = (noiseRepeat: number) =>
        Effect.map(
          keep({ ...short, algorithm: Ppo.make({ ...ppo, trainMode: "onestep", noiseRepeat }) }),
          ({ result }) => result.digest,
        )
      assert.notStrictEqual(yield* digestOf(1), yield* digestOf(8))
    }),
  )
})

describe("a training that can't be set up", () => {
  const attempt = (input: Input, set: Readonly<Record<string, unknown>> = {}) => {
    const store = RunStore.memory()
    const overrides = Object.entries(set).map(([path, value]) => ({ path, value, source: "--set" }))
    return Train.run(input).pipe(
      Effect.provide(Layer.mergeAll(Wasm.layer, store.layer, Recorder.layerSilent)),
      Effect.provideService(RunOptions, { overrides, source: "train.ts", name: "run" }),
      Effect.flip,
      Effect.map(({ message }) => ({ message, files: [...store.files.keys()] })),
    )
  }

  it.effect("says who set what is wrong, and leaves no folder behind", () =>
    Effect.gen(function* () {
      const input = { ...short, algorithm: Ppo.make(ppo) }
      const inCode = yield* attempt({ ...short, algorithm: Ppo.make({ ...ppo, minibatches: 7 }) })
      assert.match(inCode.message, /^train\.ts: algorithm\.minibatches: expected a divisor/)
      const overridden = yield* attempt(input, { "algorithm.minibatches": 7 })
      assert.match(overridden.message, /^--set: algorithm\.minibatches: expected a divisor/)
      const other = yield* attempt(input, { algorithm: "sac" })
      assert.match(other.message, /^--set: algorithm: sac needs actions that are real numbers/)
      const images = yield* attempt(input, { algorithm: "unreal" })
      assert.match(images.message, /^--set: algorithm: unreal needs images .*, found observations of \[4\]/)
      const block = yield* attempt({ ...short, algorithm: Es.make() }, { "trainer.gamma": 0.5 })
      assert.strictEqual(block.message, '--set: trainer.gamma: the algorithm "es" has no such setting; leave it out')
      const sequence = yield* attempt(input, { "algorithm.sequence": 4 })
      assert.match(sequence.message, /^--set: algorithm\.sequence: 4 steps of a memory, but algorithm\.lstm is 0/)
      const workers = yield* attempt({ ...input, validation: { everySteps: 32, workers: 2 } })
      assert.match(workers.message, /2 workers need threads/)
      for (const { files } of [inCode, overridden, other, images, block, sequence, workers]) assert.deepEqual(files, [])
    }),
  )

  it.effect("and one with a discount of zero has one of zero", () =>
    Effect.gen(function* () {
      const { events } = yield* keep({ ...short, algorithm: Ppo.make(ppo), trainer: { gamma: 0, lambda: 0 } })
      const [started] = events
      if (started._tag !== "RunStarted") return assert.fail("it begins with RunStarted")
      assert.deepInclude(started.config.algorithm, { gamma: 0, lambda: 0 })
    }),
  )
})

describe("a training about which nothing is said of checkpoints", () => {
  it.effect("saves ten times", () =>
    Effect.gen(function* () {
      const { events } = yield* keep({ ...short, totalSteps: 640, algorithm: Ppo.make(ppo) })
      const saved = events.flatMap((event) => (event._tag === "CheckpointSaved" ? [event.step] : []))
      assert.deepEqual(
        saved,
        Array.from({ length: 10 }, (_, index) => 64 * (index + 1)),
      )
    }),
  )
})

describe("what should be known before a training starts", () => {
  it.effect("is a warning, once: an env that can't be drawn", () =>
    Effect.gen(function* () {
      const { renderSvg: _renderSvg, ...undrawn } = CartPole.env
      const validation = { everySteps: 32, episodes: 1 }
      const { events } = yield* keep({
        ...short,
        env: { ...undrawn, id: "plain" },
        algorithm: Ppo.make(ppo),
        validation,
        render: { everySteps: 64 },
      })
      const message = "plain cannot be drawn (it has no renderSvg), so only trajectories of its episodes are saved"
      assert.deepEqual(
        events.filter((event) => event._tag === "Warning" || (event._tag === "Note" && event.message === message)),
        [{ _tag: "Warning", message }],
      )
      assert.strictEqual(events[1]._tag, "Warning")
    }),
  )

  it.effect("is an error: a state that can't be saved, an env that is none", () =>
    Effect.gen(function* () {
      const unsaved = {
        ...CartPole.env,
        id: "unsaved",
        batch: () => undefined,
        reset: () => () => 0,
        observe: () => [0, 0, 0, 0],
      }
      const { message } = yield* Effect.flip(keep({ ...short, env: unsaved, algorithm: Ppo.make(ppo) }))
      assert.match(message, /unsaved: a snapshot needs a state of plain data/)
      const untyped: { readonly env: Input["env"] } = JSON.parse('{ "env": { "env": {} } }')
      const { message: none } = yield* Effect.flip(keep({ ...short, ...untyped, algorithm: Ppo.make(ppo) }))
      assert.strictEqual(
        none,
        "Train.run: env: expected an env, as Env.make gives, or the id of one, found a module; did you mean its .env?",
      )
    }),
  )
})

describe("a new training that cannot begin", () => {
  it.effect("leaves a run that says why, and that can be started again", () =>
    Effect.gen(function* () {
      let isBroken = true
      const env = Env.make({
        id: "Track-v0",
        observationSpace: Space.box(0, 1, [1]),
        actionSpace: Space.discrete(2),
        maxSteps: 5,
        reset: () => {
          if (isBroken) throw new Error("no track")
          return 0
        },
        observe: () => [0],
        step: (state) => ({ state, reward: 0, terminated: false }),
      })
      const input: Input = { env, totalSteps: 32, algorithm: Ppo.make(ppo) }
      const store = RunStore.memory()
      const recorder = Recorder.layer(runLog)
      const { message } = yield* Train.run(input).pipe(
        Effect.provide(Layer.mergeAll(Wasm.layer, store.layer, recorder)),
        Effect.flip,
      )
      assert.include(message, "no track")
      const log = [...store.files.keys()].find((path) => path.endsWith("/run.log")) ?? ""
      const lines = new TextDecoder().decode(store.files.get(log)).split("\n")
      assert.include(failureIn(lines), "no track", lines.join("\n"))

      isBroken = false
      const run = log.slice(0, -"/run.log".length)
      const again = RunStore.memory({ files: store.files, resume: run })
      const layers = Layer.mergeAll(Wasm.layer, again.layer, recorder)
      const resumed = yield* Effect.provide(Train.run(input), layers)
      const whole = yield* keep(input)
      assert.deepStrictEqual([resumed.runDir, resumed.digest], [run, whole.result.digest])
    }),
  )
})

describe("logs and checkpoints", () => {
  const elsewhere = { trainer: { totalSteps: 64, saveFreq: 32, logDir: "logs", modelDir: "kept/models" } }
  const input: Input = { env: CartPole.env, numEnvs: 2, algorithm: Ppo.make(ppo), ...elsewhere }

  it.effect("lie in the folders that are asked for, and are gone on with there", () =>
    Effect.gen(function* () {
      const store = RunStore.memory()
      const recorder = Recorder.layer(runLog, tensorBoard)
      const whole = yield* Train.run(input).pipe(Effect.provide(Layer.mergeAll(Wasm.layer, store.layer, recorder)))
      const paths = [...store.files.keys()].map((path) => path.slice(whole.runDir.length + 1))
      assert.includeMembers(paths, ["logs/run.log", "logs/logs.tfevents", "kept/models/latest.json", "config.yaml"])
      assert.isFalse(paths.some((path) => path.startsWith("checkpoints") || path === "run.log"))

      // Make the run look as if it had been killed after its first checkpoint.
      const left = new Map([...store.files].filter(([path]) => !/step_0+64\/|return\.json/.test(path)))
      const rest = RunStore.memory({ files: left, resume: whole.runDir })
      const resumed = yield* Train.run(input).pipe(Effect.provide(Layer.mergeAll(Wasm.layer, rest.layer, recorder)))
      assert.strictEqual(resumed.digest, whole.digest)
      const log = `${whole.runDir}/logs/logs.tfevents`
      assert.strictEqual(left.get(log)?.length, store.files.get(log)?.length)
    }),
  )

  it.effect("are not looked for elsewhere when a run goes on, as if there were none", () =>
    Effect.gen(function* () {
      const again = { checkpoint: { everySteps: 32, dir: "others" } }
      const error = yield* Effect.flip(resumable({ ...input, trainer: { totalSteps: 64 } }, 32, again))
      assert.match(error.message, /checkpoint\.dir: the run keeps its checkpoints in checkpoints, not in others/)
    }),
  )

  it.effect("stay inside the run", () =>
    Effect.gen(function* () {
      for (const dir of ["../models", "/models"]) {
        const { message } = yield* Effect.flip(keep({ ...input, checkpoint: { dir } }))
        assert.match(
          message,
          /checkpoint\.dir: expected a folder inside the run's: a relative path without \.\., found/,
        )
      }
    }),
  )
})
