import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import * as A2c from "../../../src/rl/algorithms/rollouts/A2c.ts"
import * as Dqn from "../../../src/rl/algorithms/replay/Dqn.ts"
import * as Es from "../../../src/rl/algorithms/episodes/Es.ts"
import * as Ppo from "../../../src/rl/algorithms/rollouts/Ppo.ts"
import * as Wasm from "../../../src/tensor/backend/wasm.ts"
import * as CartPole from "../../../src/rl/env/classic/CartPole.ts"
import { Recorder } from "../../../src/run/record/Recorder.ts"
import { RunStore } from "../../../src/run/store/RunStore.ts"
import * as Callback from "../../../src/rl/train/Callback.ts"
import { RunOptions } from "../../../src/run/RunOptions.ts"
import * as Train from "../../../src/rl/train/Train.ts"
import { keep, textOf } from "./inMemory.ts"
import { resumable } from "./resumable.ts"

const hidden = [8]
const algorithm = Ppo.make({ hidden, nsteps: 16, minibatches: 2, epochs: 1 })
const short = { env: CartPole.env, numEnvs: 2, totalSteps: 256, recordEvery: 64, algorithm }

describe("callbacks", () => {
  it.effect("run at each boundary, in order, and see how far the training is", () =>
    Effect.gen(function* () {
      const seen: Array<string> = []
      const note = (boundary: string) => (training: Callback.Seen) =>
        Effect.sync(() => void seen.push(`${boundary} ${training.step}/${training.iteration}`))
      const watching = Callback.make({
        name: "watching",
        afterRollout: note("rollout"),
        afterUpdate: note("update"),
        afterValidation: note("validation"),
        afterCheckpoint: note("checkpoint"),
      })
      const plain = yield* keep({ ...short, totalSteps: 64 })
      const input = { ...short, totalSteps: 64, validation: { everySteps: 64, episodes: 1 } }
      const { result } = yield* keep({ ...input, callbacks: [watching] })
      assert.deepStrictEqual(seen, [
        "rollout 32/0",
        "update 32/1",
        "checkpoint 32/1",
        "rollout 64/1",
        "update 64/2",
        "validation 64/2",
        "checkpoint 64/2",
      ])
      const { result: validated } = yield* keep(input)
      assert.strictEqual(result.digest, validated.digest)
      assert.strictEqual(result.steps, plain.result.steps)
    }),
  )

  it.effect("see the metrics of each update, and the records have their means", () =>
    Effect.gen(function* () {
      const losses: Array<number> = []
      const watching = Callback.make({
        name: "watching",
        afterUpdate: ({ metrics }) => Effect.sync(() => void losses.push(metrics["losses/policy_loss"])),
      })
      const recorded = yield* keep({ ...short, totalSteps: 64, checkpoint: { everySteps: 0 }, callbacks: [watching] })
      const events = recorded.events.flatMap((event) => (event._tag === "UpdateApplied" ? [event.metrics] : []))
      assert.strictEqual(losses.length, 2)
      assert.strictEqual(events.length, 1)
      assert.closeTo(events[0]["losses/policy_loss"], (losses[0] + losses[1]) / 2, 1e-9)
    }),
  )

  it.effect("stop a training, which ends well: validated, saved, and with the reason in the records", () =>
    Effect.gen(function* () {
      const stopping = Callback.make({
        name: "stopping",
        afterUpdate: ({ step, stop }) => (step >= 96 ? stop("enough") : Effect.void),
      })
      const validation = { everySteps: 1000, episodes: 1 }
      const { result, events, files } = yield* keep({ ...short, validation, callbacks: [stopping] })
      assert.strictEqual(result.steps, 96)
      assert.strictEqual(result.validation?.step, 96)
      const notes = events.flatMap((event) => (event._tag === "Note" ? [event.message] : []))
      assert.deepStrictEqual(notes, ["the callback stopping ends the training at step 96: enough"])
      assert.deepInclude(events.at(-1), {
        _tag: "RunEnded",
        reason: "finished",
        step: 96,
        message: "the callback stopping ended it: enough",
      })
      assert.isTrue([...files.keys()].some((path) => /checkpoints\/step_0*96\//.test(path)))
    }),
  )

  it.effect("log metrics of their own", () =>
    Effect.gen(function* () {
      const logging = Callback.make({
        name: "logging",
        afterRollout: ({ step, log }) => log({ "mine/step": step }),
      })
      const { events } = yield* keep({ ...short, totalSteps: 64, callbacks: [logging] })
      const logged = events.flatMap((event) =>
        event._tag === "UpdateApplied" && "mine/step" in event.metrics ? [event.metrics["mine/step"]] : [],
      )
      assert.deepStrictEqual(logged, [32, 64])
    }),
  )

  it.effect("change the learning rate, so that weights stay as they are at 0", () =>
    Effect.gen(function* () {
      const frozen = Callback.make({ name: "frozen", afterRollout: ({ setLearningRate }) => setLearningRate(0) })
      const scaled = Callback.make({ name: "scaled", afterRollout: ({ scaleLearningRate }) => scaleLearningRate(0) })
      const digestOf = (algorithm: typeof short.algorithm, callbacks: ReadonlyArray<Callback.Callback>) =>
        Effect.map(keep({ ...short, algorithm, callbacks }), ({ result }) => result.digest)
      for (const one of [
        algorithm,
        A2c.make({ hidden }),
        Dqn.make({ hidden, learningStarts: 32, batchSize: 16 }),
        Es.make({ hidden, weightDecay: 0 }),
      ]) {
        const digests = yield* Effect.forEach([[], [frozen], [scaled]], (callbacks) => digestOf(one, callbacks))
        assert.notStrictEqual(digests[0], digests[1], one.name)
        assert.strictEqual(digests[1], digests[2], one.name)
      }
    }),
  )

  it.effect("keep their numbers and their changes in checkpoints: a resumed run has the same bits", () =>
    Effect.gen(function* () {
      const steering = () =>
        Callback.make({
          name: "steering",
          memory: { calls: 0, best: -Infinity },
          afterUpdate: ({ memory, metrics, scaleLearningRate, setLearningRate, stop }) =>
            Effect.gen(function* () {
              memory.calls++
              memory.best = Math.max(memory.best, metrics["losses/entropy"])
              if (memory.calls === 2) yield* setLearningRate(0.01)
              if (memory.calls > 2) yield* scaleLearningRate(0.9 * memory.best)
              if (memory.calls === 7) yield* stop("seven")
            }),
        })
      const { whole, resumed, stoppedAt } = yield* resumable({ ...short, callbacks: [steering()] }, 96, {
        callbacks: [steering()],
      })
      assert.strictEqual(stoppedAt, 96)
      assert.strictEqual(whole.steps, 7 * 32)
      assert.strictEqual(resumed.digest, whole.digest)
    }),
  )

  it.effect("that ended a training let it go on when they are taken out", () =>
    Effect.gen(function* () {
      const stopping = Callback.make({ name: "stopping", afterUpdate: ({ stop }) => stop("at once") })
      const store = RunStore.memory()
      const layers = (layer: Layer.Layer<RunStore>) => Layer.mergeAll(Wasm.layer, layer, Recorder.layerSilent)
      const first = yield* Train.run({ ...short, callbacks: [stopping] }).pipe(Effect.provide(layers(store.layer)))
      const again = RunStore.memory({ files: store.files, resume: first.runDir })
      const same = yield* Train.run({ ...short, callbacks: [stopping] }).pipe(Effect.provide(layers(again.layer)))
      const rest = RunStore.memory({ files: store.files, resume: first.runDir })
      const whole = yield* Train.run(short).pipe(Effect.provide(layers(rest.layer)))
      assert.deepStrictEqual([first.steps, same.steps, whole.steps], [32, 32, 256])
      // Another callback can end the training that goes on.
      const later = Callback.make({
        name: "later",
        afterUpdate: ({ step, stop }) => (step < 96 ? Effect.void : stop("later")),
      })
      const more = RunStore.memory({ files: store.files, resume: first.runDir })
      const longer = { ...short, totalSteps: 512, callbacks: [later] }
      const ended = yield* Train.run(longer).pipe(Effect.provide(layers(more.layer)))
      assert.strictEqual(ended.steps, 288)
    }),
  )

  it.effect("that fail end the run with an error that names them", () =>
    Effect.gen(function* () {
      const failing = Callback.make({ name: "failing", afterValidation: () => Effect.fail(new Error("no such host")) })
      const throwing = Callback.make({
        name: "throwing",
        afterRollout: () => {
          throw new TypeError("undefined is no function")
        },
      })
      const wrong = Callback.make({ name: "wrong", afterUpdate: ({ setLearningRate }) => setLearningRate(-1) })
      const huge = Callback.make({
        name: "huge",
        afterUpdate: ({ scaleLearningRate: scale }) => Effect.andThen(scale(1e200), scale(1e200)),
      })
      const interrupted = Callback.make({ name: "interrupted", afterRollout: () => Effect.interrupt })
      // Without type checks, a hook may return anything.
      const forgetful = Callback.make({ name: "forgetful" })
      const hooks = { name: "forgetful", afterUpdate: ({ stop }: Callback.Steering) => void stop("enough") }
      Object.assign(forgetful, Reflect.apply(Callback.make, undefined, [hooks]))
      const validation = { everySteps: 32, episodes: 1 }
      const messages = yield* Effect.forEach([failing, throwing, wrong, huge, interrupted, forgetful], (callback) =>
        Effect.map(Effect.flip(keep({ ...short, validation, callbacks: [callback] })), (error) => [
          error._tag,
          "reason" in error ? error.reason : undefined,
          error.message,
        ]),
      )
      assert.deepStrictEqual(messages, [
        ["LearningError", "callback", 'callback "failing", afterValidation: no such host'],
        ["LearningError", "callback", 'callback "throwing", afterRollout: undefined is no function'],
        [
          "LearningError",
          "callback",
          'callback "wrong", afterUpdate: setLearningRate: expected a number from 0 on, found -1',
        ],
        [
          "LearningError",
          "callback",
          'callback "huge", afterUpdate: scaleLearningRate: by 1e+200, the product of all factors is infinite',
        ],
        ["LearningError", "callback", 'callback "interrupted", afterRollout: it was interrupted before its end'],
        [
          "LearningError",
          "callback",
          'callback "forgetful", afterUpdate: expected the hook to return an Effect, found nothing; return the Effect, such as `return stop("…")`, or Effect.void',
        ],
      ])
    }),
  )

  it.effect("stand in the config by name, and only code can make them", () =>
    Effect.gen(function* () {
      const quiet = Callback.make({ name: "quiet" })
      const { files, result, events } = yield* keep({ ...short, totalSteps: 32, callbacks: [quiet] })
      assert.include(textOf({ files, result, events }, "config.yaml"), "callbacks:\n  - quiet\n")
      const named = yield* Effect.flip(
        Effect.provideService(keep({ ...short, callbacks: [quiet] }), RunOptions, {
          overrides: [{ path: "callbacks", value: ["loud"], source: "--set" }],
          source: "train.ts",
          name: "run",
        }),
      )
      assert.include(named.message, '--set: callbacks: the callback "loud" is made in code')
      const twice = yield* Effect.flip(keep({ ...short, callbacks: [quiet, quiet] }))
      assert.include(twice.message, 'callbacks: two callbacks are called "quiet"')
    }),
  )
})
