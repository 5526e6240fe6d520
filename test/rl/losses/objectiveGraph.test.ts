import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import * as fc from "fast-check"
import { decode as decodeConfig, toCamelCase } from "../../../src/base/config/Config.ts"
import { evaluate } from "../../../src/tensor/graph/evaluate.ts"
import { gradients } from "../../../src/tensor/graph/gradients.ts"
import { GraphError } from "../../../src/tensor/graph/GraphError.ts"
import * as G from "../../../src/tensor/graph/ops.ts"
import * as Losses from "../../../src/rl/losses/Losses.ts"
import { plainLoss, type PlainToken } from "./plainObjective.ts"

const decode = (config: object): Losses.TokenObjective =>
  Effect.runSync(decodeConfig(Losses.TokenObjective, toCamelCase(config), { source: "orch.toml" }))

const constant = { type: "constant", tokens: 10 }
const configs: ReadonlyArray<object> = [
  { type: "sft" },
  { type: "reinforce", importance: { type: "truncated", cap: 1.5 } },
  { type: "rloo" },
  { type: "grpo" },
  { type: "grpo", kl: { type: "k2", coefficient: 0.1 }, importance: { type: "truncated" } },
  { type: "dr_grpo", normalisation: constant },
  { type: "dapo", kl: { type: "k1", coefficient: 1 } },
  { type: "gspo", clip_low: 0.1, clip_high: 0.1 },
  { type: "cispo", clip_low: 0.5, clip_high: 0.5 },
  { type: "sapo", temperature_negative: 2 },
  { type: "gmpo" },
  { type: "scalerl", cap: 1.5 },
]

/** Inputs of all columns, with their numbers. */
const columnsOf = (values: Readonly<Record<string, ReadonlyArray<number>>>) => {
  const size = values.weight_t.length
  const column = (name: string) => G.input(name, [size], name === "sequence_t" ? "i32" : "f32")
  return {
    logProbability_t: column("logProbability_t"),
    inferenceLogProbability_t: column("inferenceLogProbability_t"),
    oldLogProbability_t: column("oldLogProbability_t"),
    referenceLogProbability_t: column("referenceLogProbability_t"),
    advantage_t: column("advantage_t"),
    weight_t: column("weight_t"),
    sequence_t: column("sequence_t"),
    entropy_t: column("entropy_t"),
  }
}

/** The loss, the gradient of the log probabilities, and the sums of an objective. */
const outcome = (config: Losses.TokenObjective, values: Readonly<Record<string, ReadonlyArray<number>>>) => {
  const columns = columnsOf(values)
  const { loss, metrics } = Losses.objectiveGraph(config, columns)
  const [gradient] = gradients(loss, [columns.logProbability_t])
  const leaves = new Map(Object.entries(columns).map(([name, tensor]) => [tensor, values[name]]))
  const sums: ReadonlyArray<[string, G.Tensor]> = Object.entries(metrics)
  const [lossValue, slope, ...totals] = evaluate([loss, gradient, ...sums.map(([, sum]) => sum)], leaves)
  return {
    loss: lossValue[0],
    gradient: Array.from(slope),
    sums: Object.fromEntries(sums.map(([name], at) => [name, totals[at][0]])),
  }
}

const logProbability = fc.double({ min: -3, max: -0.01, noNaN: true })
const token = fc.record({
  logProbability_t: logProbability,
  inferenceLogProbability_t: logProbability,
  oldLogProbability_t: logProbability,
  referenceLogProbability_t: logProbability,
  advantage_t: fc.double({ min: -2, max: 2, noNaN: true }),
  weight_t: fc.constantFrom(0, 0.125, 0.25),
  entropy_t: fc.double({ min: 0, max: 3, noNaN: true }),
})
type Token = typeof token extends fc.Arbitrary<infer A> ? A : never
const sequences = fc.array(fc.array(token, { minLength: 1, maxLength: 4 }), { minLength: 2, maxLength: 4 })
const config = fc.constantFrom(...configs).map(decode)

const valuesOf = (rows: ReadonlyArray<ReadonlyArray<Token>>): Readonly<Record<string, ReadonlyArray<number>>> => {
  const column = (name: keyof Token) => rows.flatMap((row) => row.map((one) => one[name]))
  return {
    logProbability_t: column("logProbability_t"),
    inferenceLogProbability_t: column("inferenceLogProbability_t"),
    oldLogProbability_t: column("oldLogProbability_t"),
    referenceLogProbability_t: column("referenceLogProbability_t"),
    advantage_t: column("advantage_t"),
    weight_t: column("weight_t"),
    entropy_t: column("entropy_t"),
    sequence_t: rows.flatMap((row, number) => row.map(() => number)),
  }
}

const close = (found: ReadonlyArray<number>, expected: ReadonlyArray<number>): void => {
  assert.strictEqual(found.length, expected.length)
  expected.forEach((value, at) => assert.closeTo(found[at], value, 1e-9 * Math.max(1, Math.abs(value))))
}

/** Any config of an objective with a policy: all types, with all settings. */
const anyConfig: fc.Arbitrary<Losses.TokenObjective> = fc
  .record({
    type: fc.constantFrom("reinforce", "rloo", "grpo", "dr_grpo", "dapo", "gspo", "cispo"),
    clip_low: fc.constantFrom(0.03, 0.2, 0.9),
    clip_high: fc.constantFrom(0.04, 0.28, 2),
    kl: fc.option(fc.record({ type: fc.constantFrom("k1", "k2", "k3"), coefficient: fc.constantFrom(0.04, 1) })),
    importance: fc.option(fc.record({ type: fc.constant("truncated"), cap: fc.constantFrom(0.5, 2, 100) })),
    normalisation: fc.constant(constant),
  })
  .map(({ clip_low, clip_high, ...rest }) =>
    decode(rest.type === "reinforce" || rest.type === "rloo" ? rest : { ...rest, clip_low, clip_high }),
  )

describe("objectiveGraph", () => {
  it("equals plain loops in loss and gradient, for any config", () => {
    fc.assert(
      fc.property(anyConfig, sequences, fc.boolean(), (config, rows, hasOld) => {
        const tokens = rows.flatMap((row, sequence) =>
          row.map((one): PlainToken => ({
            ...one,
            sequence,
            oldLogProbability_t: hasOld ? one.oldLogProbability_t : null,
          })),
        )
        const values = valuesOf(rows)
        const all = columnsOf(values)
        const columns = hasOld ? all : { ...all, oldLogProbability_t: undefined }
        const { loss } = Losses.objectiveGraph(config, columns)
        const [gradient] = gradients(loss, [all.logProbability_t])
        const leaves = new Map(Object.entries(all).map(([name, tensor]) => [tensor, values[name]]))
        const [[lossValue], slope] = evaluate([loss, gradient], leaves)
        const expected = plainLoss(config, tokens)
        // The graph holds its constants, such as 0.04, as float32.
        assert.closeTo(lossValue, expected, 1e-6 * Math.max(1, Math.abs(expected)))

        const frozen = values.logProbability_t
        const moved = (at: number, by: number) =>
          plainLoss(
            config,
            tokens.map((token, index) =>
              index === at ? { ...token, logProbability_t: token.logProbability_t + by } : token,
            ),
            frozen,
          )
        tokens.forEach((_, at) => {
          const h = 1e-5
          const [above, below] = [(moved(at, h) - expected) / h, (expected - moved(at, -h)) / h]
          // Where a clip begins, the gradient jumps.
          if (Math.abs(above - below) > 1e-2) return
          const numeric = (above + below) / 2
          assert.closeTo(slope[at], numeric, 1e-4 * Math.max(1, Math.abs(numeric)), `token ${at}`)
        })
      }),
      { numRuns: 200 },
    )
  })

  it("adds up over micro-batches, however whole sequences are divided", () => {
    fc.assert(
      fc.property(config, sequences, fc.nat(), (config, rows, cut) => {
        const at = 1 + (cut % (rows.length - 1))
        const whole = outcome(config, valuesOf(rows))
        const parts = [rows.slice(0, at), rows.slice(at)].map((part) => outcome(config, valuesOf(part)))
        close([parts[0].loss + parts[1].loss], [whole.loss])
        close([...parts[0].gradient, ...parts[1].gradient], whole.gradient)
        for (const [name, sum] of Object.entries(whole.sums))
          close([(parts[0].sums[name] ?? NaN) + (parts[1].sums[name] ?? NaN)], [sum])
      }),
    )
  })

  it("ignores tokens of weight 0, whatever they hold", () => {
    fc.assert(
      fc.property(config, sequences, fc.constantFrom(NaN, Infinity, -Infinity, 1e30), (config, rows, junk) => {
        const spoilt = rows.map((row) =>
          row.map((one) =>
            one.weight_t !== 0
              ? one
              : {
                  ...one,
                  logProbability_t: junk,
                  inferenceLogProbability_t: junk,
                  oldLogProbability_t: junk,
                  referenceLogProbability_t: junk,
                  advantage_t: junk,
                  entropy_t: junk,
                },
          ),
        )
        assert.deepStrictEqual(outcome(config, valuesOf(spoilt)), outcome(config, valuesOf(rows)))
      }),
    )
  })

  it("needs just the columns that columnsOf lists, and names one that is missing", () => {
    for (const written of configs) {
      const config = decode(written)
      const all = columnsOf(valuesOf([[fc.sample(token, { numRuns: 1, seed: 1 })[0]]]))
      const needed = new Set<string>([...Losses.columnsOf(config), "logProbability_t", "weight_t"])
      const { logProbability_t, weight_t } = all
      const only = Object.fromEntries(Object.entries(all).filter(([name]) => needed.has(name)))
      Losses.objectiveGraph(config, { logProbability_t, weight_t, ...only })
      for (const name of Losses.columnsOf(config)) {
        const without = { logProbability_t, weight_t, ...only, [name]: undefined }
        const message = new RegExp(`^${config.type}: the column ${name} is missing`)
        assert.throws(() => Losses.objectiveGraph(config, without), GraphError, message)
      }
    }
  })

  it("has no KL term if its coefficient is 0", () => {
    const values = valuesOf([fc.sample(token, { numRuns: 4, seed: 2 })])
    const config = decode({ type: "grpo", kl: { coefficient: 0 } })
    assert.notInclude(Losses.columnsOf(config), "referenceLogProbability_t")
    const without = decode({ type: "grpo", kl: null })
    assert.strictEqual(outcome(config, values).loss, outcome(without, values).loss)
  })

  it("compares with the inference engine if there are no old log probabilities", () => {
    const values = valuesOf([fc.sample(token, { numRuns: 4, seed: 2 })])
    const columns = columnsOf(values)
    const leaves = new Map(Object.entries(columns).map(([name, tensor]) => [tensor, values[name]]))
    const ratioOf = (written: object) => {
      const { metrics } = Losses.objectiveGraph(decode(written), { ...columns, oldLogProbability_t: undefined })
      return evaluate([metrics.ratio ?? columns.weight_t, metrics.tokens], leaves).map(([sum]) => sum)
    }
    const counted = values.weight_t.flatMap((weight, at) => (weight === 0 ? [] : [at]))
    const expected = counted.reduce(
      (sum, at) => sum + Math.exp(values.logProbability_t[at] - values.inferenceLogProbability_t[at]),
      0,
    )
    close(ratioOf({ type: "dapo" }), [expected, counted.length])
    // With a correction for the engine, the trainer's own probabilities are the old ones.
    close(ratioOf({ type: "dapo", importance: { type: "truncated" } }), [counted.length, counted.length])
  })

  it("reports means over the tokens that count", () => {
    const values = {
      logProbability_t: [-1, -1, -1, 0],
      oldLogProbability_t: [-1 + Math.log(2), -1, -1 - Math.log(2), 0],
      inferenceLogProbability_t: [-2, -1, -1, 0],
      referenceLogProbability_t: [-1, -1, -2, 0],
      advantage_t: [1, 1, 1, 1],
      weight_t: [1, 1, 1, 0],
      sequence_t: [0, 0, 0, -1],
      entropy_t: [3, 2, 1, 100],
    }
    const importance = { type: "truncated", cap: 1.25 }
    const { sums } = outcome(decode({ type: "grpo", importance }), values)
    const metrics = Losses.meanMetrics({ ...sums, tokens: sums.tokens })
    const expected = {
      "losses/tokens": 3,
      "losses/ratio": 3.5 / 3,
      "losses/clipfrac": 2 / 3,
      "losses/importance": (1.25 + 1 + 0.5) / 3,
      "losses/importance_capped": 1 / 3,
      "losses/inference_kl": (Math.E - 2) / 3,
      "losses/reference_kl": (Math.exp(-1) + 1 - 1) / 3,
      "losses/entropy": 2,
    }
    assert.deepStrictEqual(Object.keys(metrics).sort(), Object.keys(expected).sort())
    for (const [name, value] of Object.entries(expected)) assert.closeTo(metrics[name], value, 1e-6, name)
    // Padding, whose weight is 1, does not count where all weights reach the cap.
    const low = outcome(decode({ type: "grpo", importance: { type: "truncated", cap: 0.25 } }), values).sums
    assert.strictEqual(low.capped, 3)
  })
})

describe("configs of objectives", () => {
  it("have the defaults of their papers", () => {
    const none = { kl: null, importance: null }
    assert.deepStrictEqual(decode({ type: "grpo" }), {
      type: "grpo",
      importance: null,
      kl: { type: "k3", coefficient: 0.04 },
      clipLow: 0.2,
      clipHigh: 0.2,
      normalisation: { type: "sequence_mean" },
    })
    assert.deepStrictEqual(decode({ type: "dapo" }), {
      type: "dapo",
      ...none,
      clipLow: 0.2,
      clipHigh: 0.28,
      normalisation: { type: "token_mean" },
    })
    assert.deepStrictEqual(decode({ type: "gspo" }), {
      type: "gspo",
      ...none,
      clipLow: 3e-4,
      clipHigh: 4e-4,
      normalisation: { type: "sequence_mean" },
    })
    assert.deepStrictEqual(decode({ type: "sft" }), { type: "sft", normalisation: { type: "token_mean" } })
  })

  const problems: ReadonlyArray<readonly [object, RegExp]> = [
    [{ type: "sft", clip_low: 0.1 }, /^orch\.toml: unknown key "clip_low" for this type$/],
    [{ type: "dapo", clip_hgh: 0.1 }, /^orch\.toml: unknown key "clip_hgh"; did you mean "clip_high"\?/],
    [{ type: "dr_grpo" }, /^orch\.toml: normalisation: missing key/],
    [{ type: "grpo", clip_low: 2 }, /^orch\.toml: clip_low: expected a value between 0 and 1, found 2/],
    [{ type: "grpo", kl: { type: "k3", coefficient: -1 } }, /^orch\.toml: kl\.coefficient: .* found -1/],
    [{ type: "grpo", importance: { type: "truncated", cap: 0 } }, /^orch\.toml: importance\.cap: .* found 0/],
    [
      { type: "ppo" },
      /^orch\.toml: config: expected an objective whose type is sft, .* or scalerl, found \{"type":"ppo"\}$/,
    ],
    [
      { type: "grpo", normalisation: { type: "mean" } },
      /^orch\.toml: normalisation: expected a normalisation whose type is token_mean, .*, found \{"type":"mean"\}$/,
    ],
  ]
  for (const [written, message] of problems)
    it(`refuse ${JSON.stringify(written)}`, () => assert.throws(() => decode(written), message))

  it("survive encoding and decoding", () => {
    for (const written of configs) {
      const config = decode(written)
      assert.deepStrictEqual(Schema.decodeUnknownSync(Losses.TokenObjective)(config), config)
    }
  })

  it("name the advantages that belong to them", () => {
    assert.isNull(Losses.advantageEstimatorOf("sft"))
    assert.deepStrictEqual(Losses.advantageEstimatorOf("rloo"), { baseline: "leave_one_out", deviation: "none" })
    assert.deepStrictEqual(Losses.advantageEstimatorOf("dr_grpo"), { baseline: "mean", deviation: "none" })
    assert.deepStrictEqual(Losses.advantageEstimatorOf("gspo"), { baseline: "mean", deviation: "sample" })
  })
})
