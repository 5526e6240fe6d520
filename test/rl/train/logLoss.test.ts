import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import * as Sac from "../../../src/rl/algorithms/replay/Sac.ts"
import * as A2c from "../../../src/rl/algorithms/rollouts/A2c.ts"
import * as Curiosity from "../../../src/rl/algorithms/rollouts/Curiosity.ts"
import * as Daac from "../../../src/rl/algorithms/rollouts/Daac.ts"
import * as Ddqn from "../../../src/rl/algorithms/rollouts/Ddqn.ts"
import * as Ppo from "../../../src/rl/algorithms/rollouts/Ppo.ts"
import * as Rnd from "../../../src/rl/algorithms/rollouts/Rnd.ts"
import * as Trpo from "../../../src/rl/algorithms/rollouts/Trpo.ts"
import * as Wasm from "../../../src/tensor/backend/wasm.ts"
import * as CartPole from "../../../src/rl/env/classic/CartPole.ts"
import * as Pendulum from "../../../src/rl/env/classic/Pendulum.ts"
import { decode } from "../../../src/base/formats/tfevents.ts"
import * as Graph from "../../../src/tensor/graph/ops.ts"
import type { Metrics } from "../../../src/rl/learner/Learner.ts"
import { csv } from "../../../src/run/record/csv.ts"
import { Recorder } from "../../../src/run/record/Recorder.ts"
import { tensorBoard } from "../../../src/run/record/tensorBoard.ts"
import { RunStore } from "../../../src/run/store/RunStore.ts"
import * as Train from "../../../src/rl/train/Train.ts"
import { type Kept, keep } from "./inMemory.ts"

const small = { hidden: [8], nsteps: 16 }
const short = { env: CartPole.env, numEnvs: 4, totalSteps: 192, recordEvery: 64 }
const ppo = { ...small, epochs: 2, minibatches: 2 }
/** The weights of the loss's parts, which are no defaults. */
const parts = { valueCoefficient: 0.7, entropyCoefficient: 0.03 }

const metricsOf = ({ events }: Kept): ReadonlyArray<Metrics> =>
  events
    .filter((event) => event._tag === "UpdateApplied")
    .map(({ metrics }) => metrics)
    .filter((metrics) => "charts/learning_rate" in metrics)

describe("log_loss", () => {
  const sums = {
    "of A2C": A2c.make({ ...small, ...parts }),
    "of PPO": Ppo.make({ ...ppo, ...parts }),
    "of PPO in slices": Ppo.make({ ...ppo, ...parts, slices: 2 }),
    "of PPO in the graph": Ppo.make({ ...ppo, ...parts, rollouts: "graph" }),
    "of PPO with a memory": Ppo.make({ ...ppo, ...parts, lstm: 4 }),
  }
  for (const [title, algorithm] of Object.entries(sums)) {
    it.effect(
      `records the sum of the parts of the loss ${title}, and changes nothing else`,
      () =>
        Effect.gen(function* () {
          const [plain, logged] = [
            yield* keep({ ...short, algorithm }),
            yield* keep({ ...short, algorithm, logLoss: true }),
          ]
          assert.strictEqual(logged.result.digest, plain.result.digest)
          const [before, after] = [metricsOf(plain), metricsOf(logged)]
          assert.lengthOf(after, 3)
          for (const [index, { "train/loss": loss, ...others }] of after.entries()) {
            assert.deepEqual(others, before[index])
            const policy = others["losses/policy_loss"] - parts.entropyCoefficient * others["losses/entropy"]
            assert.closeTo(loss, policy + parts.valueCoefficient * others["losses/value_loss"], 1e-5)
          }
        }),
      { tags: title === "of PPO with a memory" ? "slow" : [] },
    )
  }

  const further = {
    Curiosity: Curiosity.make(small),
    DDQN: Ddqn.make(small),
    RND: Rnd.make(ppo),
  }
  for (const [name, algorithm] of Object.entries(further)) {
    it.effect(`records the loss of ${name}`, () =>
      Effect.gen(function* () {
        const [metrics] = metricsOf(yield* keep({ ...short, algorithm, logLoss: true }))
        assert.isNumber(metrics["train/loss"])
      }),
    )
  }

  it.effect("records a loss of your own, which the algorithm then minimises", () =>
    Effect.gen(function* () {
      const loss: Ppo.PpoOptions["loss"] = (_, out) => Graph.add(out.loss, 5)
      const [metrics] = metricsOf(yield* keep({ ...short, algorithm: Ppo.make({ ...ppo, loss }), logLoss: true }))
      assert.strictEqual(metrics["train/loss"], metrics["losses/own_loss"])
    }),
  )

  it.effect("is written for TensorBoard and as CSV, at the env steps of the updates", () =>
    Effect.gen(function* () {
      const store = RunStore.memory()
      const sinks = Recorder.layer(tensorBoard, csv)
      const { runDir } = yield* Train.run({ ...short, algorithm: A2c.make(small), logLoss: true }).pipe(
        Effect.provide(Layer.mergeAll(Wasm.layer, store.layer, sinks)),
      )
      const read = (file: string): Uint8Array => store.files.get(`${runDir}/${file}`) ?? new Uint8Array(0)
      const steps = decode(read("logs.tfevents")).events.flatMap(({ step, scalars }) =>
        "train/loss" in scalars ? step : [],
      )
      assert.deepEqual(steps, [64, 128, 192])
      const lines = new TextDecoder().decode(read("progress.csv")).split("\n")
      assert.lengthOf(
        lines.filter((line) => /^(64|128|192),train\/loss,-?\d/.test(line)),
        3,
      )
    }),
  )

  const refused = {
    sac: { env: Pendulum.env, algorithm: Sac.make() },
    daac: { env: CartPole.env, algorithm: Daac.make() },
    trpo: { env: CartPole.env, algorithm: Trpo.make() },
  }
  for (const [name, input] of Object.entries(refused)) {
    it.effect(`is refused with ${name}, which has no total loss`, () =>
      Effect.gen(function* () {
        const { message } = yield* Effect.flip(keep({ ...short, ...input, logLoss: true }))
        assert.include(
          message,
          `log_loss: expected false with algorithm "${name}", whose updates don't minimise one total loss`,
        )
      }),
    )
  }
})
