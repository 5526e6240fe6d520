import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import bitFlip from "../../../examples/replay/bit-flip.ts"
import ddpg from "../../../examples/replay/ddpg-pendulum.ts"
import recurrent from "../../../examples/replay/dqn-lstm-cartpole.ts"
import quantiles from "../../../examples/replay/qr-dqn-cartpole.ts"
import rainbow from "../../../examples/replay/rainbow-cartpole.ts"
import tqc from "../../../examples/replay/tqc-pendulum.ts"
import * as Wasm from "../../../src/tensor/backend/wasm.ts"
import { Recorder, type Sink } from "../../../src/run/record/Recorder.ts"
import { RunStore } from "../../../src/run/store/RunStore.ts"
import { RunOptions } from "../../../src/run/RunOptions.ts"
import type { Run } from "../../../src/rl/train/Train.ts"

/** The least and the greatest return of an episode on each env. */
const returns = { cartPole: [1, 500], pendulum: [-2000, 0], bitFlip: [0, 1] } as const

const examples: Readonly<Record<string, readonly [Run, number, keyof typeof returns]>> = {
  "qr-dqn-cartpole.ts": [quantiles, 1400, "cartPole"],
  "rainbow-cartpole.ts": [rainbow, 1400, "cartPole"],
  "dqn-lstm-cartpole.ts": [recurrent, 1400, "cartPole"],
  "ddpg-pendulum.ts": [ddpg, 300, "pendulum"],
  "tqc-pendulum.ts": [tqc, 300, "pendulum"],
  "bit-flip.ts": [bitFlip, 1400, "bitFlip"],
}

/** One example of choices, and one of real numbers. */
const quick = new Set(["qr-dqn-cartpole.ts", "ddpg-pendulum.ts"])

describe("examples of algorithms with a replay buffer", () => {
  for (const [name, [training, totalSteps, env]] of Object.entries(examples)) {
    it.effect(
      `${name} updates its networks, and validates`,
      () =>
        Effect.gen(function* () {
          const metrics = new Set<string>()
          const sink: Sink = () =>
            Effect.succeed({
              emit: (events) =>
                Effect.sync(() => {
                  for (const event of events)
                    if (event._tag === "UpdateApplied") for (const key of Object.keys(event.metrics)) metrics.add(key)
                }),
              flush: Effect.void,
            })
          const settings = { totalSteps, "validation.everySteps": totalSteps, "validation.episodes": 2 }
          const overrides = Object.entries(settings).map(([path, value]) => ({ path, value, source: "test" }))
          const { steps, validation } = yield* training.pipe(
            Effect.provideService(RunOptions, { overrides, source: "example", name: "run" }),
            Effect.provide(Layer.mergeAll(Wasm.layer, RunStore.memory().layer, Recorder.layer(sink))),
          )
          assert.strictEqual(steps, totalSteps)
          assert.isTrue(metrics.has("losses/q_values"))
          const [least, greatest] = returns[env]
          const { meanReturn } = validation ?? assert.fail("there was no validation")
          assert.isAtLeast(meanReturn, least)
          assert.isAtMost(meanReturn, greatest)
        }),
      { tags: quick.has(name) ? [] : "slow" },
    )
  }
})
