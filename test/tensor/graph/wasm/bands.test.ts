import { assert, describe, it } from "@effect/vitest"
import { gradients } from "../../../../src/tensor/graph/gradients.ts"
import * as G from "../../../../src/tensor/graph/ops.ts"
import type { ProgramSpec } from "../../../../src/tensor/graph/Program.ts"
import { type BandSizes, stagesOf } from "../../../../src/tensor/graph/wasm/bands.ts"
import type { Stage } from "../../../../src/tensor/graph/wasm/stage.ts"
import { fuse } from "../../../../src/tensor/graph/wasm/fuse.ts"
import { lower } from "../../../../src/tensor/graph/wasm/lower.ts"
import { load, numbers } from "./support.ts"

const small: BandSizes = { worth: 0, band: 1, rows: 16, weights: Infinity }

const stages = (spec: ProgramSpec, sizes = small): ReadonlyArray<Stage> => {
  const nodes = lower(spec)
  const groups = fuse(nodes).filter(({ phase }) => phase === 2)
  const gathered = (spec.minibatches?.gathered ?? []).flatMap((name) => nodes.inputs.get(name) ?? [])
  return stagesOf(nodes, groups, new Set(gathered), sizes).filter((stage) => stage.groups.length > 0)
}

/** The update of a network with a hidden layer, whose weights of samples are relative to their mean. */
const update = (batch: number): ProgramSpec => {
  const [x, weight] = [G.input("x", [batch, 8]), G.input("weight", [batch])]
  const [w1, w2] = [G.state("w1", [8, 32]), G.state("w2", [32, 4])]
  const y = G.logSoftmax(G.matmul(G.tanh(G.matmul(x, w1)), w2))
  const loss = G.mean(G.mul(G.sum(y, 1), G.sub(weight, G.mean(weight))))
  const [slope1, slope2] = gradients(loss, [w1, w2])
  const next = (w: typeof w1, slope: typeof w1) => ({ tensor: w, next: G.sub(w, G.mul(slope, 0.1)) })
  const minibatches = { rows: 2 * batch, batch, count: 2, gathered: ["x", "weight"] }
  const state = { w1: next(w1, slope1), w2: next(w2, slope2) }
  return { name: "update", inputs: { x, weight }, state, outputs: { loss }, minibatches }
}

describe("bands", () => {
  it("take a batch forward and back in one stage, and keep the rows of one band only", () => {
    const banded = stages(update(512)).filter(({ bands }) => bands !== undefined)
    assert.strictEqual(banded.length, 1)
    const [{ bands, groups }] = banded
    assert.deepInclude(bands, { rows: 512, size: 16 })
    const products = groups.filter(({ core }) => core?.work.kind === "matmul")
    // Two forward, two for the gradients of weights, and one back to the hidden layer.
    assert.strictEqual(products.length, 5)
    const rows = groups.flatMap(({ stored }) => [...stored]).filter(({ shape }) => shape[0] === 512)
    assert.isAbove(rows.length, 5)
    assert.isTrue(rows.every((node) => bands?.local.has(node)))
    const inputs = [...(bands?.local ?? [])].flatMap(({ work }) => (work.kind === "leaf" ? [work.name] : []))
    // The mean needs the whole weights before the first band.
    assert.deepStrictEqual(inputs, ["x"])
  })

  it("are not used for a small batch, nor where they gain nothing", () => {
    const none = (spec: ProgramSpec, sizes?: BandSizes): void =>
      assert.isTrue(stages(spec, sizes).every(({ bands }) => bands === undefined))
    none(update(512), { worth: 1 << 20, band: 1 << 18, rows: 64, weights: Infinity })
    none(update(24))
    const x = G.input("x", [512, 64])
    none({ name: "one group", inputs: { x }, state: {}, outputs: { y: G.tanh(x) } })
    // Running sums along the rows need them all.
    none({ name: "running", inputs: { x }, state: {}, outputs: { y: G.cumSum(G.cumSum(x, 0), 0) } })
  })

  it("begin anew after a value that depends on all rows", () => {
    const x = G.input("x", [512, 64])
    const w = G.input("w", [64, 64])
    const h = G.exp(G.matmul(x, w))
    const y = G.matmul(G.sub(h, G.mean(h, 0)), w)
    const inStages = stages({ name: "norm", inputs: { x, w }, state: {}, outputs: { s: G.sum(G.square(y), 1) } })
    assert.deepStrictEqual(
      inStages.map(({ bands }) => bands !== undefined),
      [true, false, true],
    )
  })

  it("need less memory than the whole arrays", () => {
    const bytesWith = (bandSizes?: BandSizes): number => {
      const program = load(update(8192), { bandSizes })
      program.feed("x").set(numbers(2 * 8192 * 8))
      program.run()
      return program.feed("x").buffer.byteLength
    }
    assert.isBelow(bytesWith(small), bytesWith({ ...small, worth: Infinity }) - 8192 * 4 * 32)
  })
})
