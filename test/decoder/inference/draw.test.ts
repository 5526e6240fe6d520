import * as fc from "fast-check"
import { assert, describe, it } from "vitest"
import { draw, type DrawSettings, makeDrawing } from "../../../src/decoder/inference/draw.ts"
import { stream } from "../../../src/base/rng/Rng.ts"

const plain: DrawSettings = { temperature: 1, topK: 0, topP: 1, minP: 0, topLogprobs: 0 }

/** The definition, with sorting and float64: the probabilities after the filters, and the log-probabilities before. */
const expected = (logits: ReadonlyArray<number>, settings: DrawSettings) => {
  const divisor = settings.temperature === 0 ? 1 : settings.temperature
  const largest = Math.max(...logits)
  const weights = logits.map((logit) => Math.exp((logit - largest) / divisor))
  const total = weights.reduce((sum, weight) => sum + weight, 0)
  const logprobs = logits.map((logit) => (logit - largest) / divisor - Math.log(total))
  const ranked = logits.map((_, id) => id).sort((a, b) => logits[b] - logits[a] || a - b)
  let kept = settings.topK > 0 ? ranked.slice(0, settings.topK) : ranked
  const keptTotal = kept.reduce((sum, id) => sum + weights[id], 0)
  let before = 0
  kept = kept.filter((id, rank) => {
    const keep = rank === 0 || before < settings.topP * keptTotal - 1e-12
    before += weights[id]
    return keep
  })
  kept = kept.filter((id) => weights[id] >= settings.minP)
  if (settings.temperature === 0) kept = ranked.slice(0, 1)
  const sum = kept.reduce((sum, id) => sum + weights[id], 0)
  const probabilities = logits.map((_, id) => (kept.includes(id) ? weights[id] / sum : 0))
  return { probabilities, logprobs, ranked }
}

describe("draw", () => {
  it("takes the likeliest token at temperature 0, of equal ones the lowest id, whatever the random number", () => {
    const drawing = makeDrawing(4)
    const logits = Float32Array.of(9, 1, 3, 3, 2)
    for (const uniform of [0, 0.5, 0.999])
      assert.strictEqual(draw(drawing, logits, 1, { ...plain, temperature: 0 }, uniform), 1)
    const total = Math.exp(-2) + 2 + Math.exp(-1)
    assert.closeTo(drawing.logprob, -Math.log(total), 1e-12)
  })

  it.each([
    // The probabilities of these logits are 0.5, 0.25, 0.125 and 0.125.
    { title: "top-k keeps k tokens", settings: { topK: 3 }, kept: [0, 1, 2] },
    { title: "top-k decides a tie by the lower id", settings: { topK: 2 }, kept: [0, 1] },
    { title: "top-p keeps the fewest that reach p", settings: { topP: 0.6 }, kept: [0, 1] },
    { title: "top-p keeps the likeliest one at least", settings: { topP: 0.01 }, kept: [0] },
    { title: "top-p works on what top-k left", settings: { topK: 2, topP: 0.66 }, kept: [0] },
    { title: "min-p compares with the likeliest", settings: { minP: 0.4 }, kept: [0, 1] },
    { title: "min-p 1 keeps the likeliest", settings: { minP: 1 }, kept: [0] },
    { title: "a temperature flattens before the filters", settings: { temperature: 2, topP: 0.6 }, kept: [0, 1] },
  ])("$title", ({ settings, kept }) => {
    const logits = Float32Array.of(Math.log(0.5), Math.log(0.25), Math.log(0.125), Math.log(0.125))
    const drawing = makeDrawing(4)
    const ids = new Set<number>()
    for (let at = 0; at < 1000; at++) ids.add(draw(drawing, logits, 0, { ...plain, ...settings }, at / 1000))
    assert.deepStrictEqual([...ids].sort(), kept)
  })

  it("reports numbers that are not logits, and takes −∞ as impossible", () => {
    const drawing = makeDrawing(2)
    for (const wrong of [NaN, Infinity]) assert.strictEqual(draw(drawing, Float32Array.of(1, wrong), 0, plain, 0), -1)
    assert.strictEqual(draw(drawing, Float32Array.of(-Infinity, -Infinity), 0, plain, 0), -1)
    for (const uniform of [0, 0.999999])
      assert.strictEqual(draw(drawing, Float32Array.of(-Infinity, -3), 0, plain, uniform), 1)
    assert.strictEqual(drawing.logprob, 0)
  })

  it("equals the definition for any logits and settings", () => {
    const logit = fc.oneof(fc.integer({ min: -6, max: 6 }), fc.double({ min: -30, max: 30, noNaN: true }))
    const cases = fc.record({
      logits: fc.array(logit, { minLength: 1, maxLength: 24 }).map((all) => all.map(Math.fround)),
      settings: fc.record({
        temperature: fc.constantFrom(0, 0.3, 1, 1.7),
        topK: fc.integer({ min: 0, max: 30 }),
        topP: fc.constantFrom(1, 0.05, 0.3, 0.7, 0.95),
        minP: fc.constantFrom(0, 0.1, 0.35, 1),
        topLogprobs: fc.integer({ min: 0, max: 20 }),
      }),
    })
    fc.assert(
      fc.property(cases, ({ logits, settings }) => {
        const { probabilities, logprobs, ranked } = expected(logits, settings)
        const drawing = makeDrawing(logits.length)
        const data = Float32Array.from(logits)
        // The inverse of the distribution function, at points inside of each token's interval.
        let before = 0
        for (const [id, probability] of probabilities.entries()) {
          if (probability > 1e-9) {
            for (const part of [0.001, 0.5, 0.999])
              assert.strictEqual(draw(drawing, data, 0, settings, before + part * probability), id)
            assert.closeTo(drawing.logprob, logprobs[id], 1e-9)
            const top = Array.from({ length: Math.min(settings.topLogprobs, logits.length) }, (_, rank) => ranked[rank])
            assert.deepStrictEqual([...drawing.topIds.subarray(0, top.length)], top)
            for (const [rank, one] of top.entries()) assert.closeTo(drawing.topLogprobs[rank], logprobs[one], 1e-9)
          }
          before += probability
        }
      }),
    )
  })

  it("draws tokens as often as their probabilities say", () => {
    const logits = Array.from({ length: 12 }, (_, id) => Math.fround(Math.cos(3 * id) * 2))
    const settings = { ...plain, temperature: 0.8, topK: 10, topP: 0.9, minP: 0.02 }
    const { probabilities } = expected(logits, settings)
    const drawing = makeDrawing(12)
    const counts = new Float64Array(12)
    const random = stream(5, "token")
    const draws = 20_000
    for (let at = 0; at < draws; at++)
      counts[draw(drawing, Float32Array.from(logits), 0, settings, random.childUniformDouble(at))]++
    let chiSquare = 0
    for (const [id, probability] of probabilities.entries()) {
      if (probability === 0) assert.strictEqual(counts[id], 0)
      else chiSquare += (counts[id] - draws * probability) ** 2 / (draws * probability)
    }
    // With at most 11 degrees of freedom, one seed in a thousand exceeds 31.3.
    assert.isBelow(chiSquare, 31.3)
  })
})
