/**
 * Compares the loss of DPO with PyTorch's on three pairs. This program made `dpo.json` (torch 2.13):
 *
 * ```python
 * import json, torch
 * import torch.nn.functional as F
 * g = torch.Generator().manual_seed(7)
 * lengths, width = [5, 3, 1, 6, 4, 4], 6
 * draw = lambda: (-torch.rand(len(lengths), width, generator=g, dtype=torch.float64) * 3 - 0.1)
 * logps, reference = draw().requires_grad_(True), draw()
 * mask = torch.tensor([[float(t < n) for t in range(width)] for n in lengths], dtype=torch.float64)
 * cases = {}
 * for beta, eps in [(0.1, 0.0), (0.5, 0.1), (2.0, 0.0), (40.0, 0.3)]:
 *     ratios = ((logps - reference) * mask).sum(1)
 *     logits = ratios[0::2] - ratios[1::2]
 *     loss = (-F.logsigmoid(beta * logits) * (1 - eps) - F.logsigmoid(-beta * logits) * eps).mean()
 *     (grad,) = torch.autograd.grad(loss, logps)
 *     chosen, rejected = beta * ratios[0::2].detach(), beta * ratios[1::2].detach()
 *     cases[f"beta {beta}, label smoothing {eps}"] = {
 *         "beta": beta, "label_smoothing": eps, "loss": loss.item(), "gradient": grad.tolist(),
 *         "chosen": chosen.mean().item(), "rejected": rejected.mean().item(),
 *         "margin": (chosen - rejected).mean().item(), "accuracy": (chosen > rejected).double().mean().item()}
 * note = "float64, PyTorch autograd; rows are answers: chosen, rejected, chosen, ...; tokens after an answer's length do not count"
 * print(json.dumps({"note": note, "lengths": lengths, "logps": logps.tolist(), "reference": reference.tolist(), "cases": cases}))
 * ```
 */
import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { compileWith } from "../../../property-tests/support/agreement.ts"
import * as Losses from "../../../src/rl/losses/Losses.ts"
import * as Reference from "../../../src/tensor/backend/reference.ts"
import * as Wasm from "../../../src/tensor/backend/wasm.ts"
import { gradients } from "../../../src/tensor/graph/gradients.ts"
import * as G from "../../../src/tensor/graph/ops.ts"

const Rows = Schema.Array(Schema.Array(Schema.Finite))
const Case = Schema.Struct({
  beta: Schema.Finite,
  label_smoothing: Schema.Finite,
  loss: Schema.Finite,
  gradient: Rows,
  chosen: Schema.Finite,
  rejected: Schema.Finite,
  margin: Schema.Finite,
  accuracy: Schema.Finite,
})
const Fixture = Schema.Struct({
  note: Schema.String,
  lengths: Schema.Array(Schema.Int),
  logps: Rows,
  reference: Rows,
  cases: Schema.Record(Schema.String, Case),
})
const file = fileURLToPath(new URL("../../fixtures/dpo.json", import.meta.url))
const fixture = Schema.decodeUnknownSync(Fixture, { onExcessProperty: "error" })(JSON.parse(readFileSync(file, "utf8")))

const { lengths } = fixture
const shape = [lengths.length, fixture.logps[0].length]
const masks = lengths.map((length) => Uint8Array.from({ length: shape[1] }, (_, at) => (at < length ? 1 : 0)))
const inputs = {
  logProbability_t: G.input("logProbability_t", shape),
  referenceLogProbability_t: G.input("referenceLogProbability_t", shape),
  sequence_t: G.input("sequence_t", shape, "i32"),
  weight_t: G.input("weight_t", shape),
}

const decode = Schema.decodeUnknownSync(Losses.TokenObjective)

/** Compiles an objective's loss, its gradient and its metrics, and returns the function that computes them. */
const compiled = (layer: typeof Wasm.layer, config: Losses.TokenObjective) => {
  const { loss, metrics } = Losses.objectiveGraph(config, inputs)
  const [gradient] = gradients(loss, [inputs.logProbability_t])
  const program = compileWith(layer, { name: "dpo", inputs, state: {}, outputs: { loss, gradient, ...metrics } })
  const weights = Losses.tokenWeights({ masks, normalisation: config.normalisation })
  program.feeds["weight_t"].set(weights.flatMap((row) => [...row]))
  program.feeds["sequence_t"].set(masks.flatMap((row, sequence) => Array.from(row, () => sequence)))
  return (logps: ReadonlyArray<number>, reference: ReadonlyArray<number>) => {
    program.feeds["logProbability_t"].set(logps)
    program.feeds["referenceLogProbability_t"].set(reference)
    Effect.runSync(program.run)
    const {
      loss: [value],
      gradient: slopes,
      ...sums
    } = program.results
    const totals = Object.fromEntries(Object.entries(sums).map(([name, [sum]]) => [name, sum]))
    return { loss: value, gradient: Array.from(slopes), sums: { tokens: totals["tokens"], ...totals } }
  }
}

const near = (found: ReadonlyArray<number>, expected: ReadonlyArray<number>, tolerance: number, what: string): void => {
  assert.strictEqual(found.length, expected.length, what)
  expected.forEach((value, at) =>
    assert.closeTo(found[at], value, tolerance * Math.max(1, Math.abs(value)), `${what}, element ${at}`),
  )
}

describe("direct preference optimisation", () => {
  for (const [name, expected] of Object.entries(fixture.cases))
    it(`has PyTorch's loss, gradient and rewards with ${name}`, () => {
      const config = decode({ type: "dpo", beta: expected.beta, labelSmoothing: expected.label_smoothing })
      for (const layer of [Reference.layer, Wasm.layer]) {
        const { loss, gradient, sums } = compiled(layer, config)(fixture.logps.flat(), fixture.reference.flat())
        near([loss], [expected.loss], 1e-5, "loss")
        near(gradient, expected.gradient.flat(), 1e-5, "gradient")
        const metrics = Losses.meanMetrics(sums)
        for (const key of ["chosen", "rejected", "margin", "accuracy"] as const)
          near([metrics[`losses/reward_${key}`]], [expected[key]], 1e-5, key)
        assert.strictEqual(
          metrics["losses/tokens"],
          lengths.reduce((sum, length) => sum + length, 0),
        )
      }
    })

  it("is not changed by tokens that do not count, whatever they hold", () => {
    const compute = compiled(Wasm.layer, decode({ type: "dpo", labelSmoothing: 0.2 }))
    const plain = compute(fixture.logps.flat(), fixture.reference.flat())
    const spoilt = (rows: ReadonlyArray<ReadonlyArray<number>>, value: number) =>
      rows.flatMap((row, at) => row.map((number, token) => (masks[at][token] === 1 ? number : value)))
    assert.deepStrictEqual(compute(spoilt(fixture.logps, NaN), spoilt(fixture.reference, -Infinity)), plain)
  })

  it("expects a label smoothing below one half, and a positive beta", () => {
    assert.throws(() => decode({ type: "dpo", labelSmoothing: 0.5 }), /below 0\.5/)
    assert.throws(() => decode({ type: "dpo", beta: 0 }))
  })
})
