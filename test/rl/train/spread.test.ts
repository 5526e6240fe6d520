import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect, Layer } from "effect"
import { Dispatcher, type Handler } from "../../../src/spread/cluster/Dispatcher.ts"
import { layerUnreliable } from "../../../src/spread/cluster/unreliable.ts"
import * as Wasm from "../../../src/tensor/backend/wasm.ts"
import { Recorder, type Sink } from "../../../src/run/record/Recorder.ts"
import type { RunEvent } from "../../../src/run/record/RunEvent.ts"
import { trainingHandlers } from "../../../src/run/spread/Serving.ts"
import { RunStore } from "../../../src/run/store/RunStore.ts"
import * as Train from "../../../src/rl/train/Train.ts"
import { jobsOf } from "../../../src/rl/train/validation/spread.ts"

/** Two validation envs of 5 and 6 episodes, whose actions are drawn and whose observations are normalised. */
const ppo = {
  env: "Pendulum-v1",
  algorithm: { name: "ppo", nsteps: 64, hidden: [8] },
  total_steps: 2048,
  num_envs: 4,
  normalize: { observations: true, rewards: true },
  validation: {
    every_steps: 512,
    episodes: 11,
    max_steps: 25,
    sampled: true,
    envs: ["Pendulum-v1", { name: "TimeLimit", env: "Pendulum-v1", steps: 20 }],
  },
}

/** A policy with a memory, one with a replay buffer, and one by evolution. */
const others = {
  lstm: { ...ppo, algorithm: { ...ppo.algorithm, lstm: 4 }, total_steps: 256, normalize: {} },
  dqn: {
    env: "CartPole-v1",
    algorithm: { name: "dqn", learning_starts: 100, buffer_size: 1000, hidden: [16] },
    total_steps: 600,
    validation: { every_steps: 300, episodes: 7, sampled: true },
  },
  es: {
    env: "CartPole-v1",
    algorithm: { name: "es", hidden: [8] },
    num_envs: 8,
    total_steps: 2000,
    validation: { every_steps: 1000, episodes: 7 },
  },
}

const trained = (config: unknown) =>
  Effect.suspend(() => {
    const events: Array<RunEvent> = []
    const sink: Sink = () =>
      Effect.succeed({ emit: (batch) => Effect.sync(() => void events.push(...batch)), flush: Effect.void })
    return Train.fromConfig(config).pipe(
      Effect.provide(Layer.mergeAll(Wasm.layer, RunStore.memory().layer, Recorder.layer(sink))),
      Effect.map(({ digest }) => ({ digest, validations: events.filter(({ _tag }) => _tag === "ValidationEnded") })),
    )
  })

/** Makes the code of a worker, which counts the jobs that it does, and names them. */
const worker = Effect.gen(function* () {
  const load = (sent: { readonly _tag: string }) =>
    Effect.succeed(
      Effect.provide("config" in sent ? Train.fromConfig(sent.config) : Effect.die("not a config"), [
        RunStore.memory().layer,
        Recorder.layerSilent,
        Wasm.layer,
      ]),
    )
  const [handler] = yield* trainingHandlers(["validation"], load)
  const done: Array<unknown> = []
  const perform = (payload: unknown) => Effect.suspend(() => (done.push(payload), handler.perform(payload)))
  return { handler: { ...handler, perform } satisfies Handler, done }
})

/** A clock of which each look takes ten seconds, so that every job seems to be long. */
const slowClock = Effect.map(Clock.Clock, (clock) => {
  let now = 0
  const later = () => (now += 10_000)
  return new Proxy(clock, {
    get: (target, key) => {
      if (key === "currentTimeMillis") return Effect.sync(later)
      const value: unknown = Reflect.get(target, key)
      return typeof value === "function" ? value.bind(target) : value
    },
  })
})

describe("validations over a bad network", () => {
  it("have fewer jobs if the last one was short", () => {
    assert.deepStrictEqual(
      [undefined, 0, 5, 30, 1e6].map((seconds) => jobsOf(100, seconds)),
      [16, 1, 1, 10, 32],
    )
    assert.strictEqual(jobsOf(5, undefined), 5)
  })

  it.live("have the returns of one machine at each step, and the training has the same digest", () =>
    Effect.gen(function* () {
      const here = yield* trained(ppo)
      assert.lengthOf(here.validations, 4)
      const { handler, done } = yield* worker
      const layer = layerUnreliable({ seed: 11, handlers: [handler] })
      const spread = yield* trained(ppo).pipe(
        Effect.provide(layer),
        Effect.provideServiceEffect(Clock.Clock, slowClock),
      )
      assert.deepStrictEqual(spread, here)
      // Each validation has 11 jobs of one episode.
      assert.isAtLeast(done.length, 44)
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer)),
  )

  for (const [name, config] of Object.entries(others)) {
    it.live(
      `have the returns of one machine with ${name}`,
      () =>
        Effect.gen(function* () {
          const here = yield* trained(config)
          assert.isAbove(here.validations.length, 0)
          const { handler, done } = yield* worker
          const spread = yield* Effect.provide(trained(config), layerUnreliable({ seed: 12, handlers: [handler] }))
          assert.deepStrictEqual(spread, here)
          // The first validation is spread; the next ones are too short for that.
          assert.isAtLeast(done.length, 7)
        }).pipe(Effect.scoped, Effect.provide(NodeServices.layer)),
      { tags: name === "lstm" ? "slow" : [] },
    )
  }

  for (const [reason, everySteps, warning] of [
    [
      "the training is made in code that no other machine can load",
      1000,
      /start it with effect run PROGRAM\.ts --cluster/,
    ],
    ["there are none", 0, /the cluster has nothing to do: .*validation\.every_steps/],
  ] as const) {
    it.live(`are not sent if ${reason}, with a warning`, () =>
      Effect.gen(function* () {
        const warnings: Array<string> = []
        const sink: Sink = () =>
          Effect.succeed({
            emit: (batch) =>
              Effect.sync(() => batch.forEach((event) => event._tag === "Warning" && warnings.push(event.message))),
            flush: Effect.void,
          })
        const validation = { everySteps, episodes: 2 }
        const dispatcher = { inFlight: 8, run: () => Effect.die("a job was sent") }
        yield* Train.run({ env: "CartPole-v1", algorithm: "es", numEnvs: 8, totalSteps: 1000, validation }).pipe(
          Effect.provide(Layer.mergeAll(Wasm.layer, RunStore.memory().layer, Recorder.layer(sink))),
          Effect.provideService(Dispatcher, dispatcher),
        )
        assert.match(warnings.join("\n"), warning)
      }),
    )
  }
})
