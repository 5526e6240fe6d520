import { assert, describe, it } from "@effect/vitest"
import {
  bernoulli,
  categorical,
  diagonalGaussian,
  divergence,
  multiCategorical,
  normalFromUniform,
  squashedGaussian,
} from "../../../src/tensor/graph/distributions.ts"
import { evaluate } from "../../../src/tensor/graph/evaluate.ts"
import { gradients } from "../../../src/tensor/graph/gradients.ts"
import { GraphError } from "../../../src/tensor/graph/GraphError.ts"
import * as G from "../../../src/tensor/graph/ops.ts"
import type { Tensor } from "../../../src/tensor/graph/Tensor.ts"

const valueOf = (tensor: Tensor): ReadonlyArray<number> => [...evaluate([tensor])[0]]
const close = (found: ReadonlyArray<number>, expected: ReadonlyArray<number>, tolerance = 1e-6): void => {
  assert.strictEqual(found.length, expected.length)
  expected.forEach((value, at) => assert.closeTo(found[at], value, tolerance, `element ${at}`))
}

/** Rows of probabilities, as logits that are off by a constant. */
const logitsOf = (...rows: ReadonlyArray<ReadonlyArray<number>>): Tensor =>
  G.constant(
    rows.flatMap((row, index) => row.map((p) => Math.log(p) + 7 * index)),
    [rows.length, rows[0].length],
  )

describe("categorical", () => {
  const p = [0.2, 0.5, 0.3]
  const policy = categorical(logitsOf(p, [0.25, 0.25, 0.5]))

  it("samples the action whose interval of [0, 1) contains the uniform number", () => {
    for (const [u, action] of [
      [0, 0],
      [0.19, 0],
      [0.21, 1],
      [0.69, 1],
      [0.71, 2],
      [0.999999, 2],
    ]) {
      const sample = categorical(logitsOf(p)).sample(G.constant([u], [1, 1]))
      assert.strictEqual(sample.dtype, "i32")
      assert.deepStrictEqual(valueOf(sample), [action], `u = ${u}`)
    }
  })

  it("never samples an action with probability 0, nor one after the last", () => {
    const masked = categorical(G.constant([-1e9, 0, -1e9], [1, 3]))
    for (const u of [0, 0.5, 1 - 2 ** -24]) assert.deepStrictEqual(valueOf(masked.sample(G.constant([u], [1, 1]))), [1])
    // Ten tenths of a double add up to this number.
    const noise = G.input("noise", [1, 1])
    const even = categorical(G.constant(0, [1, 10])).sample(noise)
    assert.deepStrictEqual([...evaluate([even], new Map([[noise, [1 - 2 ** -53]]]))[0]], [9])
  })

  it("has the most probable action as its mode", () => assert.deepStrictEqual(valueOf(policy.mode()), [1, 2]))

  it("computes log probabilities and entropies", () => {
    close(valueOf(policy.logProbability(G.constant(Int32Array.of(1, 0)))), [Math.log(0.5), Math.log(0.25)])
    const entropy = (row: ReadonlyArray<number>) => -row.reduce((sum, q) => sum + q * Math.log(q), 0)
    close(valueOf(policy.entropy()), [entropy(p), entropy([0.25, 0.25, 0.5])])
  })

  it("has entropy 0 where an action is certain", () => {
    close(valueOf(categorical(G.constant([0, 200, 0], [1, 3])).entropy()), [0], 1e-12)
  })

  it("has the KL divergence Σ p log(p / q)", () => {
    const q = [0.4, 0.4, 0.2]
    const expected = p.reduce((sum, one, at) => sum + one * Math.log(one / q[at]), 0)
    close(valueOf(divergence(categorical(logitsOf(p)), categorical(logitsOf(q)))), [expected])
    close(valueOf(divergence(policy, policy)), [0, 0])
  })

  it("names the shapes that it expects", () => {
    assert.throws(() => categorical(G.input("logits", [3])), GraphError, /expected logits \[batch, n\] \(given \[3\]\)/)
    assert.throws(() => policy.logProbability(G.input("a", [2, 1], "i32")), /expected one action for each row/)
    assert.throws(() => policy.logProbability(G.input("a", [2])), /oneHot: expected i32, found f32/)
  })
})

describe("diagonal Gaussian", () => {
  const mean = G.constant([0, 1, -2, 0.5], [2, 2])
  const logDeviation = G.constant([Math.log(2), Math.log(0.5)])
  const policy = diagonalGaussian(mean, logDeviation)

  it("takes two uniform numbers for each element, also 0", () => {
    assert.strictEqual(policy.noiseSize, 4)
    const normals = valueOf(normalFromUniform(G.constant([0, 0.5, 1 - 2 ** -24, 0.25, 0.125, 0], [1, 6])))
    close(normals, [0, Math.sqrt(2 * Math.LN2) * Math.cos(Math.PI / 4), Math.sqrt(48 * Math.LN2)])
  })

  it("samples the mean plus the deviation times normal noise", () => {
    const noise = G.constant([0, 0, 0.5, 0.5, 1 - Math.exp(-0.5), 0, 0, 0.5], [2, 4])
    close(valueOf(policy.sample(noise)), [0, 1, -2 + 2, 0.5])
  })

  it("has the mean as its mode", () => assert.strictEqual(policy.mode(), mean))

  it("computes log probabilities and entropies", () => {
    const density = (x: number, m: number, s: number) =>
      -0.5 * ((x - m) / s) ** 2 - Math.log(s * Math.sqrt(2 * Math.PI))
    const action = G.constant([1, 1, -2, 2], [2, 2])
    close(valueOf(policy.logProbability(action)), [
      density(1, 0, 2) + density(1, 1, 0.5),
      density(-2, -2, 2) + density(2, 0.5, 0.5),
    ])
    const entropy = Math.log(2 * Math.PI * Math.E) + Math.log(2 * 0.5)
    close(valueOf(policy.entropy()), [entropy, entropy])
  })

  it("has the KL divergence of the closed form", () => {
    const other = diagonalGaussian(G.constant([1, 1, 0, 0], [2, 2]), G.constant([0, 0]))
    const kl = (m: number, s: number, n: number, t: number) =>
      Math.log(t / s) + (s * s + (m - n) ** 2) / (2 * t * t) - 0.5
    close(valueOf(divergence(policy, other)), [kl(0, 2, 1, 1) + kl(1, 0.5, 1, 1), kl(-2, 2, 0, 1) + kl(0.5, 0.5, 0, 1)])
    close(valueOf(divergence(policy, policy)), [0, 0])
  })

  it("can have deviations for each row", () => {
    const rows = diagonalGaussian(mean, G.constant([0, 0, Math.log(3), 0], [2, 2]))
    close(valueOf(rows.entropy()), [Math.log(2 * Math.PI * Math.E), Math.log(2 * Math.PI * Math.E) + Math.log(3)])
  })

  it("names the shapes that it expects", () => {
    assert.throws(
      () => diagonalGaussian(G.input("m", [3]), G.input("s", [3])),
      GraphError,
      /expected means \[batch, n\]/,
    )
    assert.throws(
      () => diagonalGaussian(mean, G.input("s", [3, 1, 2])),
      /expected log deviations \[n\] or \[batch, n\]/,
    )
    assert.throws(() => normalFromUniform(G.input("u", [2, 3])), /expected noise \[batch, 2n\] \(given \[2, 3\]\)/)
  })
})

describe("squashed Gaussian", () => {
  const mean = G.constant([0.3, -1], [1, 2])
  const logDeviation = G.constant([Math.log(0.5), 0])
  const policy = squashedGaussian(mean, logDeviation)
  const raw = G.constant([0.8, -2], [1, 2])
  const density = (x: number, m: number, s: number) =>
    -0.5 * ((x - m) / s) ** 2 - Math.log(s * Math.sqrt(2 * Math.PI)) - Math.log(1 - Math.tanh(x) ** 2)

  it("samples actions between −1 and 1, with their numbers before the tanh", () => {
    const noise = G.constant([0.3, 0.9, 0.1, 0.7], [1, 4])
    const both = policy.sampleBoth(noise)
    const [before, after, sample] = evaluate([both.raw, both.action, policy.sample(noise)])
    assert.deepStrictEqual(after, before.map(Math.tanh))
    assert.deepStrictEqual(sample, after)
    close(valueOf(policy.mode()), [Math.tanh(0.3), Math.tanh(-1)])
  })

  it("computes log probabilities from actions before and after the tanh", () => {
    const expected = density(0.8, 0.3, 0.5) + density(-2, -1, 1)
    close(valueOf(policy.logProbabilityOfRaw(raw)), [expected])
    close(valueOf(policy.logProbability(G.tanh(raw))), [expected], 1e-5)
  })

  it("is finite near −1 and 1", () => {
    const [[far], [edge]] = evaluate([
      policy.logProbabilityOfRaw(G.constant([40, -40], [1, 2])),
      policy.logProbability(G.constant([1, -1], [1, 2])),
    ])
    // log(1 − tanh² 40) = 2 log 2 − 80
    const deviations = -0.5 * (39.7 / 0.5) ** 2 - 0.5 * 39 ** 2 - Math.log(0.5 * 2 * Math.PI)
    assert.closeTo(far, deviations - 2 * (2 * Math.LN2 - 80), 1e-2)
    assert.isTrue(Number.isFinite(edge))
  })
})

describe("an action mask", () => {
  const allowed = G.constant([1, 0, 1, 0], [1, 4])
  const logits = G.state("logits", [1, 4])
  const at = (tensor: Tensor, values: ReadonlyArray<number>) => [...evaluate([tensor], new Map([[logits, values]]))[0]]
  const policy = categorical(logits, allowed)
  const values = [0.3, 9, -1, 5]

  it("gives forbidden actions the probability 0, and allowed ones a sum of 1", () => {
    const probabilities = at(G.exp(policy.logProbabilities), values)
    assert.deepStrictEqual([probabilities[1], probabilities[3]], [0, 0])
    assert.closeTo(probabilities[0] + probabilities[2], 1, 1e-6)
    assert.deepStrictEqual(at(policy.mode(), values), [0])
    const [p, q] = [probabilities[0], probabilities[2]]
    close(at(policy.entropy(), values), [-p * Math.log(p) - q * Math.log(q)])
  })

  it("gives forbidden logits no gradient", () => {
    const loss = G.sum(G.add(policy.entropy(), policy.logProbability(G.constant(Int32Array.of(2)))))
    const [gradient] = gradients(loss, [logits])
    const slopes = at(gradient, values)
    assert.deepStrictEqual([Math.abs(slopes[1]), Math.abs(slopes[3])], [0, 0])
    assert.isAbove(Math.abs(slopes[0]), 0.01)
  })

  it("is never drawn, whatever the noise", () => {
    for (let draw = 0; draw < 1000; draw++) {
      const noise = G.constant([draw === 999 ? 1 - 2 ** -53 : draw / 999], [1, 1])
      const [action] = at(policy.sample(noise), [draw % 7, 3, (draw % 11) - 5, draw % 3])
      assert.include([0, 2], action)
    }
  })

  it("that allows everything changes nothing", () => {
    const all = categorical(logits, G.constant(1, [1, 4]))
    const plain = categorical(logits)
    const noise = G.constant([0.7], [1, 1])
    for (const pick of ["logProbability", "entropy", "sample"] as const) {
      const [one, other] = [all, plain].map((each) =>
        pick === "entropy" ? each.entropy() : each[pick](pick === "sample" ? noise : G.constant(Int32Array.of(1))),
      )
      assert.deepStrictEqual(at(one, values), at(other, values))
    }
  })
})

describe("several choices", () => {
  it("are independent", () => {
    const [p, q] = [
      [0.2, 0.5, 0.3],
      [0.9, 0.1],
    ]
    const policy = multiCategorical(G.concat([logitsOf(p, p), logitsOf(q, q)], 1), [3, 2])
    const actions = G.constant(Int32Array.of(1, 0, 2, 1), [2, 2])
    close(valueOf(policy.logProbability(actions)), [Math.log(0.5 * 0.9), Math.log(0.3 * 0.1)])
    const entropy = (row: ReadonlyArray<number>) => -row.reduce((sum, one) => sum + one * Math.log(one), 0)
    close(valueOf(policy.entropy()), [entropy(p) + entropy(q), entropy(p) + entropy(q)])
    assert.deepStrictEqual(valueOf(policy.mode()), [1, 0, 1, 0])
    const sample = policy.sample(G.constant([0.1, 0.95, 0.75, 0.3], [2, 2]))
    assert.strictEqual(sample.dtype, "i32")
    assert.deepStrictEqual(valueOf(sample), [0, 1, 2, 0])
  })

  it("have masks of their own", () => {
    const allowed = G.constant([1, 0, 0, 0, 1], [1, 5])
    const policy = multiCategorical(G.constant(0, [1, 5]), [3, 2], allowed)
    for (const u of [0, 0.4, 0.99]) {
      assert.deepStrictEqual(valueOf(policy.sample(G.constant(u, [1, 2]))), [0, 1])
    }
    close(valueOf(policy.logProbability(G.constant(Int32Array.of(0, 1), [1, 2]))), [0])
  })
})

describe("switches", () => {
  it("are on with the probability of their sigmoid", () => {
    const policy = bernoulli(G.constant([0, Math.log(3), -2], [1, 3]))
    const off = 1 / (1 + Math.exp(2))
    const actions = G.constant(Int32Array.of(1, 1, 0), [1, 3])
    close(valueOf(policy.logProbability(actions)), [Math.log(0.5 * 0.75 * (1 - off))])
    const entropy = (p: number) => -p * Math.log(p) - (1 - p) * Math.log(1 - p)
    close(valueOf(policy.entropy()), [entropy(0.5) + entropy(0.75) + entropy(off)])
    assert.deepStrictEqual(valueOf(policy.mode()), [0, 1, 0])
    assert.deepStrictEqual(valueOf(policy.sample(G.constant([0.49, 0.76, 0.1], [1, 3]))), [1, 0, 1])
  })
})
