import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Schema } from "effect"
import { parse } from "yaml"
import * as Algorithm from "../../../src/rl/learner/Algorithm.ts"
import * as A2c from "../../../src/rl/algorithms/rollouts/A2c.ts"
import * as Ppo from "../../../src/rl/algorithms/rollouts/Ppo.ts"
import { Backend, type BackendUnavailable } from "../../../src/tensor/backend/Backend.ts"
import * as OnnxNode from "../../../src/tensor/backend/onnx-node.ts"
import * as Reference from "../../../src/tensor/backend/reference.ts"
import * as Wasm from "../../../src/tensor/backend/wasm.ts"
import * as CartPole from "../../../src/rl/env/classic/CartPole.ts"
import * as Pendulum from "../../../src/rl/env/classic/Pendulum.ts"
import * as Env from "../../../src/rl/env/Env.ts"
import * as Space from "../../../src/rl/env/Space.ts"
import { crossed } from "../../../src/rl/learner/Learner.ts"
import { keep, textOf, weightsOf } from "./inMemory.ts"

const short = { env: CartPole.env, numEnvs: 4, algorithm: Ppo.make({ nsteps: 32, epochs: 2 }), totalSteps: 1024 }

describe("Train.run", () => {
  it.effect("takes whole rollouts until the steps are done, and counts them", () =>
    Effect.gen(function* () {
      const { result, events } = yield* keep({ ...short, totalSteps: 1000, recordEvery: 1 })
      assert.strictEqual(result.steps, 1024)
      const updates = events.filter((event) => event._tag === "UpdateApplied")
      assert.deepStrictEqual(
        updates.map(({ update }) => update),
        [1, 2, 3, 4, 5, 6, 7, 8],
      )
      assert.strictEqual(events.filter((event) => event._tag === "EpisodeEnded").length, result.episodes)
      assert.strictEqual(events[0]._tag, "RunStarted")
      assert.strictEqual(events.at(-1)?._tag, "RunEnded")
    }),
  )

  it.effect("records several short iterations as one, and never lets that pass over a validation", () =>
    Effect.gen(function* () {
      const every = { recordEvery: 300, validation: { everySteps: 512, episodes: 1 }, checkpoint: { everySteps: 0 } }
      const grouped = yield* keep({ ...short, ...every })
      const steps = grouped.events.flatMap((event) => (event._tag === "UpdateApplied" ? [event.step] : []))
      assert.deepStrictEqual(steps, [384, 512, 896, 1024])
      const single = yield* keep({ ...short, ...every, recordEvery: 1 })
      assert.strictEqual(single.result.digest, grouped.result.digest)
    }),
  )

  it.effect("counts a CartPole episode's return as its length", () =>
    Effect.gen(function* () {
      const { events } = yield* keep(short)
      const episodes = events.filter((event) => event._tag === "EpisodeEnded")
      assert.isAbove(episodes.length, 10)
      for (const episode of episodes) assert.strictEqual(episode.return, episode.length)
      assert.deepStrictEqual(
        episodes.map(({ episode }) => episode),
        episodes.map((_, index) => index),
      )
    }),
  )

  it.effect("validates and saves at the first rollout that crosses a multiple, and at the end", () =>
    Effect.gen(function* () {
      const { events } = yield* keep({
        ...short,
        validation: { everySteps: 300, episodes: 3 },
        checkpoint: { everySteps: 500, strategy: { _tag: "LastN", keep: 0 } },
      })
      const steps = (tag: string) =>
        events.flatMap((event) => (event._tag === tag && "step" in event ? [event.step] : []))
      assert.deepStrictEqual(steps("ValidationEnded"), [384, 640, 1024])
      assert.deepStrictEqual(steps("CheckpointSaved"), [512, 1024])
    }),
  )

  it.effect("leaves files that read back: the config, the metrics, the evaluations", () =>
    Effect.gen(function* () {
      const kept = yield* keep({ ...short, validation: { everySteps: 1024, episodes: 3 } })
      const config = parse(textOf(kept, "config.yaml"))
      assert.strictEqual(config.env, "CartPole-v1")
      assert.strictEqual(config.algorithm.learning_rate, 2.5e-4)
      assert.strictEqual(JSON.parse(textOf(kept, "metrics.json")).digest, kept.result.digest)
      const [evaluation] = JSON.parse(textOf(kept, "return.json"))
      assert.strictEqual(evaluation.returns.length, 3)
      assert.strictEqual(evaluation.step, 1024)
      assert.closeTo(evaluation.returns_mean, kept.result.validation?.meanReturn ?? NaN, 1e-9)
    }),
  )

  it.effect("gives the same digest for the same seed, and another for another", () =>
    Effect.gen(function* () {
      const digests = yield* Effect.forEach([1, 1, 2], (seed) =>
        Effect.map(keep({ ...short, seed }), ({ result }) => result.digest),
      )
      assert.strictEqual(digests[0], digests[1])
      assert.notStrictEqual(digests[0], digests[2])
    }),
  )

  it.effect("does not let who watches change the result", () =>
    Effect.gen(function* () {
      const watched = yield* keep({ ...short, checkpoint: { everySteps: 128, strategy: { _tag: "LastN", keep: 1 } } })
      const unwatched = yield* keep(short)
      assert.strictEqual(watched.result.digest, unwatched.result.digest)
    }),
  )

  it.effect("ends early at the return that was asked for", () =>
    Effect.gen(function* () {
      const validation = { everySteps: 128, episodes: 2 }
      const { result, events } = yield* keep({ ...short, validation, stopAtReturn: 1 })
      assert.strictEqual(result.steps, 128)
      const end = events.at(-1)
      assert.match(
        (end?._tag === "RunEnded" && end.message) || "",
        /^the validation's mean return [\d.]+ reaches 1, which stop_at_return sets$/,
      )
    }),
  )

  it.effect("gives up at the first validation below a limit of stop_below, and says why", () =>
    Effect.gen(function* () {
      const validation = { everySteps: 128, episodes: 2 }
      const whole = yield* keep({ ...short, validation })
      // The limit at 100 applies to the validation at 128, and no later one; the limit at 200 to the one at 256.
      const stopBelow = [
        { step: 100, return: 0 },
        { step: 200, return: 1000 },
      ]
      const { result, events } = yield* keep({ ...short, validation, stopBelow })
      assert.isAbove(whole.result.steps, 256)
      assert.strictEqual(result.steps, 256)
      const notes = events.flatMap((event) => (event._tag === "Note" ? [event.message] : []))
      assert.match(notes.join(), /the training ends at step 256: .* is below 1000, the limit of stop_below at step 200/)
      const unstopped = yield* keep({ ...short, validation, stopBelow: [{ step: 100, return: 0 }] })
      assert.strictEqual(unstopped.result.digest, whole.result.digest)
    }),
  )

  it.effect("reports a validation that fails, and goes on", () =>
    Effect.gen(function* () {
      let steps = 0
      const brittle = Env.make({
        id: "brittle",
        observationSpace: Space.box(0, 1),
        actionSpace: Space.discrete(2),
        maxSteps: 10,
        reset: () => ({ at: 0 }),
        observe: ({ at }) => [at],
        // 128 steps of training, then the validation's first.
        step: ({ at }) => {
          if (++steps === 130) throw new Error("snapped")
          return { state: { at }, reward: 1, terminated: false }
        },
      })
      const { events, result } = yield* keep({
        ...short,
        env: brittle,
        totalSteps: 256,
        validation: { everySteps: 128, episodes: 2 },
      })
      const warnings = events.flatMap((event) => (event._tag === "Warning" ? [event.message] : []))
      assert.strictEqual(warnings.length, 1)
      assert.include(warnings[0], "snapped")
      assert.strictEqual(result.steps, 256)
      assert.strictEqual(result.validation?.step, 256)
    }),
  )
})

describe("backends", () => {
  const all: ReadonlyArray<Layer.Layer<Backend, BackendUnavailable>> = [
    Reference.layer,
    Wasm.layer,
    OnnxNode.layerCpu(),
  ]
  const largest = (a: Float32Array, b: Float32Array): number =>
    a.reduce((most, value, index) => Math.max(most, Math.abs(value - b[index])), 0)

  const agree = (input: Parameters<typeof keep>[0]) =>
    Effect.gen(function* () {
      const [reference, ...others] = yield* Effect.forEach(all, (layer) => Effect.map(keep(input, layer), weightsOf))
      assert.isAbove(reference.length, 1000)
      for (const other of others) assert.isBelow(largest(other, reference), 1e-4)
    })

  it.effect("agree on the weights of a short discrete run to 1e-4", () => agree({ ...short, totalSteps: 256 }))

  it.effect("agree on the weights of a short continuous run to 1e-4", () =>
    agree({ ...short, env: Pendulum.env, totalSteps: 256, normalize: { observations: true, rewards: true } }),
  )

  it.effect("agree on A2C", () => agree({ ...short, algorithm: A2c.make({ nsteps: 8 }), totalSteps: 128 }))
})

describe("algorithms learn", () => {
  it.effect(
    "PPO: CartPole within 40,000 steps",
    () =>
      Effect.gen(function* () {
        const algorithm = Ppo.make({
          learningRate: 1e-3,
          nsteps: 64,
          epochs: 10,
          gamma: 0.98,
          lambda: 0.8,
          entropyCoefficient: 0,
        })
        const { result } = yield* keep({
          env: CartPole.env,
          algorithm,
          totalSteps: 40_000,
          validation: { everySteps: 40_000, episodes: 10 },
        })
        assert.isAbove(result.validation?.meanReturn ?? 0, 200)
      }),
    { tags: "slow" },
  )

  it.effect(
    "A2C: CartPole within 200,000 steps",
    () =>
      Effect.gen(function* () {
        const { result } = yield* keep({
          env: CartPole.env,
          algorithm: A2c.make(),
          totalSteps: 200_000,
          validation: { everySteps: 200_000, episodes: 10 },
        })
        assert.isAbove(result.validation?.meanReturn ?? 0, 150)
      }),
    { tags: "slow" },
  )

  it.effect("PPO stops an update at the divergence that it was told", () =>
    Effect.gen(function* () {
      const metrics = (targetKl: number | null) =>
        Effect.map(
          keep({ ...short, algorithm: Ppo.make({ nsteps: 32, epochs: 10, learningRate: 3e-3, targetKl }) }),
          ({ events }) =>
            Math.max(
              ...events.flatMap((event) => (event._tag === "UpdateApplied" ? [event.metrics["losses/approx_kl"]] : [])),
            ),
        )
      assert.isAbove(yield* metrics(null), 0.006)
      assert.isBelow(yield* metrics(0.001), 0.005)
    }),
  )
})

describe("crossed", () => {
  it("is true where a multiple lies between two steps, and never for 0", () => {
    assert.isFalse(crossed(0, 99, 100))
    assert.isTrue(crossed(0, 100, 100))
    assert.isTrue(crossed(99, 101, 100))
    assert.isFalse(crossed(100, 199, 100))
    assert.isTrue(crossed(100, 350, 100))
    assert.isFalse(crossed(0, 1000, 0))
  })
})

describe("an algorithm without a policy", () => {
  const { make } = Algorithm.define({
    name: "idle",
    config: Schema.Struct({}),
    setup: () =>
      Effect.succeed({
        devices: {},
        rollout: () => Effect.succeed(100),
        update: () => Effect.void,
        metrics: () => ({}),
        weights: Effect.succeed({}),
        state: Effect.succeed({}),
        restore: () => Effect.void,
      }),
  })
  const input = { env: CartPole.env, algorithm: make(), totalSteps: 1000 }

  it.effect("is trained, but a validation is refused before the first step, naming the hook that is missing", () =>
    Effect.gen(function* () {
      const { result } = yield* keep(input)
      assert.strictEqual(result.steps, 1000)
      const error = yield* Effect.flip(keep({ ...input, validation: { everySteps: 500 } }))
      assert.include(error.message, 'algorithm "idle" can\'t be validated: it lacks the hook "policy"')
    }),
  )

  it.effect("has the backend make programs faster beside it, unless machine_code is false", () =>
    Effect.gen(function* () {
      let count = 0
      const improve = Effect.sync(() => void count++)
      const backend = Layer.effect(
        Backend,
        Effect.map(Backend, (inner) => ({ ...inner, improve })),
      ).pipe(Layer.provide(Wasm.layer))
      const counts: Array<number> = []
      for (const machineCode of [true, false]) {
        yield* keep({ ...input, machineCode }, backend)
        counts.push(count)
      }
      assert.deepStrictEqual(counts, [1, 1])
    }),
  )
})
