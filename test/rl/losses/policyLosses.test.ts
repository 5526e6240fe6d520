import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { compileWith } from "../../../property-tests/support/agreement.ts"
import * as OnnxNode from "../../../src/tensor/backend/onnx-node.ts"
import * as Reference from "../../../src/tensor/backend/reference.ts"
import * as Wasm from "../../../src/tensor/backend/wasm.ts"
import { toCamelCase } from "../../../src/base/config/Config.ts"
import { evaluate } from "../../../src/tensor/graph/evaluate.ts"
import { gradients } from "../../../src/tensor/graph/gradients.ts"
import * as G from "../../../src/tensor/graph/ops.ts"
import * as Losses from "../../../src/rl/losses/Losses.ts"
import * as Returns from "../../../src/rl/returns/Returns.ts"

/**
 * Losses and gradients of six completions in two groups, which PyTorch computed in float64. Each case of the file states
 * its formula; here is the config that means the same.
 */
const Rows = Schema.Array(Schema.Array(Schema.Finite))
const results = {
  note: Schema.String,
  advantages: Schema.Record(Schema.String, Schema.Array(Schema.Finite)),
  cases: Schema.Record(Schema.String, Schema.Struct({ formula: Schema.String, loss: Schema.Finite, grad_new: Rows })),
}
const Fixture = Schema.Struct({
  ...results,
  group_size: Schema.Int,
  lengths: Schema.Array(Schema.Int),
  rewards: Schema.Array(Schema.Finite),
  new: Rows,
  old: Rows,
  inference: Rows,
  reference: Rows,
})
const read = <A>(schema: Schema.Decoder<A>, name: string): A => {
  const file = fileURLToPath(new URL(`../../fixtures/${name}`, import.meta.url))
  return Schema.decodeUnknownSync(schema, { onExcessProperty: "error" })(JSON.parse(readFileSync(file, "utf8")))
}
const inputs = read(Fixture, "policy-losses.json")
const more = read(Schema.Struct(results), "more-policy-losses.json")
const fixture = {
  ...inputs,
  advantages: { ...inputs.advantages, ...more.advantages },
  cases: { ...inputs.cases, ...more.cases },
}

type Estimator = Omit<Returns.GroupAdvantageInputs<Float64Array>, "rewards" | "groups">

/** The estimators of the file's advantages. */
const estimators: Readonly<Record<string, Estimator>> = {
  mean_only: { baseline: "mean" },
  "grpo_eps1e-4": { baseline: "mean", deviation: "sample", epsilon: 1e-4 },
  "grpo_population_eps1e-6": { baseline: "mean", deviation: "population", epsilon: 1e-6 },
  rloo: { baseline: "leave_one_out" },
  grpo_positive_only: { baseline: "mean", deviation: "sample", epsilon: 1e-4, positiveOnly: true },
  batch: { baseline: "mean", deviation: "batch", epsilon: 1e-8 },
}

const constant16 = { type: "constant", tokens: 16 }
const truncated2 = { type: "truncated", cap: 2 }
const cases: Readonly<Record<string, { readonly config: object; readonly advantages: string }>> = {
  reinforce_token_mean: { config: { type: "reinforce" }, advantages: "mean_only" },
  rloo_sequence: { config: { type: "rloo" }, advantages: "rloo" },
  grpo: { config: { type: "grpo", kl: null }, advantages: "grpo_eps1e-4" },
  "grpo_kl0.04": { config: { type: "grpo" }, advantages: "grpo_eps1e-4" },
  dr_grpo_max16: { config: { type: "dr_grpo", normalisation: constant16 }, advantages: "mean_only" },
  dapo: { config: { type: "dapo" }, advantages: "grpo_eps1e-4" },
  dapo_tis2: { config: { type: "dapo", importance: truncated2 }, advantages: "grpo_eps1e-4" },
  cispo_like: { config: { type: "cispo" }, advantages: "grpo_eps1e-4" },
  gspo: { config: { type: "gspo", clip_low: 0.03, clip_high: 0.04 }, advantages: "grpo_eps1e-4" },
  sapo: { config: { type: "sapo" }, advantages: "grpo_eps1e-4" },
  sapo_2_5: {
    config: { type: "sapo", temperature_positive: 2, temperature_negative: 5 },
    advantages: "grpo_eps1e-4",
  },
  gmpo: { config: { type: "gmpo" }, advantages: "grpo_eps1e-4" },
  "gmpo_0.05_0.1": { config: { type: "gmpo", clip_low: 0.05, clip_high: 0.1 }, advantages: "grpo_eps1e-4" },
  scalerl: { config: { type: "scalerl" }, advantages: "batch" },
  "scalerl_1.05": { config: { type: "scalerl", cap: 1.05 }, advantages: "batch" },
  grpo_positive_only: { config: { type: "grpo", kl: null }, advantages: "grpo_positive_only" },
}

const decode = (config: object) =>
  Schema.decodeUnknownSync(Losses.TokenObjective, { onExcessProperty: "error" })(toCamelCase(config))

const [rows, width] = [fixture.lengths.length, fixture.new[0].length]
const shape = [rows, width]
const groups = fixture.rewards.map((_, row) => Math.floor(row / fixture.group_size))
const rewards = Float64Array.from(fixture.rewards)
const advantagesBy = (name: string) => Returns.groupAdvantages({ rewards, groups, ...estimators[name] }).advantages

const masks = fixture.lengths.map((length) => Uint8Array.from({ length: width }, (_, at) => (at < length ? 1 : 0)))

/** The columns of a case as inputs, and their numbers. */
const columnsOf = (config: Losses.TokenObjective, advantages: ArrayLike<number>) => {
  const weights = Losses.tokenWeights({ masks, groups, normalisation: config.normalisation })
  const values: Readonly<Record<string, ReadonlyArray<number>>> = {
    logProbability_t: fixture.new.flat(),
    oldLogProbability_t: fixture.old.flat(),
    inferenceLogProbability_t: fixture.inference.flat(),
    referenceLogProbability_t: fixture.reference.flat(),
    advantage_t: Array.from({ length: rows * width }, (_, at) => advantages[Math.floor(at / width)]),
    weight_t: weights.flatMap((row) => [...row]),
    sequence_t: Array.from({ length: rows * width }, (_, at) => Math.floor(at / width)),
  }
  const columns = {
    logProbability_t: G.input("logProbability_t", shape),
    oldLogProbability_t: G.input("oldLogProbability_t", shape),
    inferenceLogProbability_t: G.input("inferenceLogProbability_t", shape),
    referenceLogProbability_t: G.input("referenceLogProbability_t", shape),
    advantage_t: G.input("advantage_t", shape),
    weight_t: G.input("weight_t", shape),
    sequence_t: G.input("sequence_t", shape, "i32"),
  }
  return { values, columns }
}

const near = (found: ArrayLike<number>, expected: ReadonlyArray<number>, tolerance: number, what: string): void => {
  assert.strictEqual(found.length, expected.length)
  expected.forEach((value, at) => assert.closeTo(found[at], value, tolerance, `${what}, element ${at}`))
}

describe("policy-losses.json and more-policy-losses.json", () => {
  it("have just the cases and advantages that are tested here", () => {
    assert.deepStrictEqual(Object.keys(fixture.cases).sort(), Object.keys(cases).sort())
    assert.deepStrictEqual(Object.keys(fixture.advantages).sort(), Object.keys(estimators).sort())
  })

  for (const [name, expected] of Object.entries(fixture.advantages))
    it(`advantages ${name}`, () => near(advantagesBy(name), expected, 1e-12, name))

  for (const [name, { formula, loss: expectedLoss, grad_new }] of Object.entries(fixture.cases))
    it(`${name}: ${formula}`, () => {
      const { config: written, advantages } = cases[name]
      const config = decode(written)
      const { columns, values } = columnsOf(config, advantagesBy(advantages))
      const { loss } = Losses.objectiveGraph(config, columns, { sequences: rows })
      const [gradient] = gradients(loss, [columns.logProbability_t])

      const leaves = new Map(Object.entries(columns).map(([key, tensor]) => [tensor, values[key]]))
      const [inDoubles, gradientInDoubles] = evaluate([loss, gradient], leaves)
      near(inDoubles, [expectedLoss], 1e-6, "loss in doubles")
      near(gradientInDoubles, grad_new.flat(), 1e-6, "gradient in doubles")

      for (const [backend, layer, tolerance] of [
        ["reference", Reference.layer, 1e-6],
        ["wasm", Wasm.layer, 1e-4],
        ["cpu", OnnxNode.layerCpu(), 1e-4],
      ] as const) {
        const program = compileWith(layer, { name, inputs: columns, state: {}, outputs: { loss, gradient } })
        for (const key of Object.keys(columns)) program.feeds[key].set(values[key])
        Effect.runSync(program.run)
        near(program.results.loss, [expectedLoss], tolerance, `loss on ${backend}`)
        near(program.results.gradient, grad_new.flat(), tolerance, `gradient on ${backend}`)
      }
    })
})
