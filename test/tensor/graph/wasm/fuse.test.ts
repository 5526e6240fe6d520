import { assert, describe, it } from "@effect/vitest"
import { gradients } from "../../../../src/tensor/graph/gradients.ts"
import * as G from "../../../../src/tensor/graph/ops.ts"
import type { ProgramSpec } from "../../../../src/tensor/graph/Program.ts"
import type { Tensor } from "../../../../src/tensor/graph/Tensor.ts"
import { fuse, type FusedGroup } from "../../../../src/tensor/graph/wasm/fuse.ts"
import { lower, type Lowered } from "../../../../src/tensor/graph/wasm/lower.ts"
import { planMemory } from "../../../../src/tensor/graph/wasm/memory.ts"

const specOf = (outputs: Record<string, Tensor>, state: ProgramSpec["state"] = {}): ProgramSpec => {
  const inputs: Record<string, Tensor> = {}
  const visit = (tensor: Tensor): void => {
    if (tensor.op.kind === "input") inputs[tensor.op.name] = tensor
    tensor.inputs.forEach(visit)
  }
  for (const tensor of [...Object.values(outputs), ...Object.values(state).flatMap(({ next }) => next ?? [])])
    visit(tensor)
  return { name: "test", inputs, state, outputs }
}

const groupsOf = (spec: ProgramSpec): ReadonlyArray<FusedGroup> => fuse(lower(spec))

const memoryOf = (lowered: Lowered) => planMemory(lowered, [{ groups: fuse(lowered), bands: undefined }], new Map())

const planOf = (lowered: Lowered) => memoryOf(lowered).at({ own: 0, temporary: 0, local: 0 })

const kinds = (spec: ProgramSpec): ReadonlyArray<string> =>
  groupsOf(spec).map(({ core, members }) => `${core?.work.kind ?? "map"} ${members.size}`)

describe("fuse", () => {
  it("runs bias and activation on a matmul's accumulators", () => {
    const x = G.input("x", [8, 4])
    const w = G.input("w", [4, 16])
    const b = G.input("b", [16])
    assert.deepStrictEqual(kinds(specOf({ y: G.tanh(G.add(G.matmul(x, w), b)) })), ["matmul 2"])
  })

  it("computes a chain in one loop, and reduces it without storing it", () => {
    const x = G.input("x", [5, 7])
    const y = G.input("y", [7])
    const chain = G.exp(G.sub(G.mul(x, y), 1))
    assert.deepStrictEqual(kinds(specOf({ chain })), ["map 3"])
    assert.deepStrictEqual(kinds(specOf({ sum: G.sum(chain, 0) })), ["reduce 3"])
    assert.deepStrictEqual(kinds(specOf({ sum: G.sum(chain, 0), chain })), ["reduce 3"])
  })

  it("stores a value that another loop needs in the loop that computes it", () => {
    const x = G.input("x", [6, 9])
    // The exponentials are summed and stored in one pass, and divided in the next.
    assert.deepStrictEqual(kinds(specOf({ y: G.softmax(x) })), ["reduce 0", "reduce 2", "map 1"])
  })

  it("does not fuse through a cycle", () => {
    const x = G.input("x", [6])
    const e = G.exp(x)
    const y = G.div(e, G.sum(e))
    assert.deepStrictEqual(kinds(specOf({ y: G.sum(G.square(y)) })), ["reduce 1", "reduce 2"])
  })

  it("computes an optimiser's states in one loop, each in its own memory", () => {
    const theta = G.state("theta", [100])
    const m = G.state("m", [100])
    const g = G.input("g", [100])
    const nextM = G.add(G.mul(m, 0.9), g)
    const spec = specOf(
      {},
      { theta: { tensor: theta, next: G.sub(theta, G.mul(nextM, 0.1)) }, m: { tensor: m, next: nextM } },
    )
    const lowered = lower(spec)
    const groups = fuse(lowered)
    assert.strictEqual(groups.length, 1)
    const plan = planOf(lowered)
    assert.strictEqual(plan.copied.size, 0)
    for (const [name, next] of lowered.nexts) {
      const state = lowered.states.get(name)
      assert.isDefined(state)
      if (state !== undefined) assert.strictEqual(plan.addressOf(next), plan.addressOf(state))
    }
  })

  it("copies a state whose old value is still needed", () => {
    const theta = G.state("theta", [4, 4])
    const spec = specOf({}, { theta: { tensor: theta, next: G.matmul(theta, theta) } })
    const lowered = lower(spec)
    assert.strictEqual(planOf(lowered).copied.size, 1)
  })

  it("computes the pieces of a flat gradient in place", () => {
    const theta = G.state("theta", [20])
    const x = G.input("x", [8, 4])
    const w = G.reshape(G.slice(theta, [0], [16]), [4, 4])
    const b = G.slice(theta, [16], [4])
    const [dw, db] = gradients(G.sum(G.tanh(G.add(G.matmul(x, w), b))), [w, b])
    const flat = G.concat([G.flatten(dw), db])
    const lowered = lower(specOf({ norm: G.sum(G.square(flat)) }, { theta: { tensor: theta } }))
    assert.strictEqual(planOf(lowered).inPlace.size, 2)
  })

  it("shares memory between arrays that are needed at different times", () => {
    let x = G.input("x", [64, 64])
    for (let i = 0; i < 10; i++) x = G.matmul(x, x)
    const lowered = lower(specOf({ x }))
    // The input, the output, and two that take turns.
    const { own, temporary } = memoryOf(lowered)
    assert.isAtMost(own + temporary, 4 * 64 * 64 * 4)
  })
})
