import { assert, describe, it } from "@effect/vitest"
import { InferenceSession, Tensor as OrtTensor } from "onnxruntime-node"
import { readEmbedded } from "../../../../src/tensor/graph/onnx/embedded.ts"
import { onnxTemplate, toOnnx } from "../../../../src/tensor/graph/onnx/export.ts"
import * as G from "../../../../src/tensor/graph/ops.ts"
import type { ProgramSpec } from "../../../../src/tensor/graph/Program.ts"
import { type Tensor, topologicalOrder } from "../../../../src/tensor/graph/Tensor.ts"
import { GraphError } from "../../../../src/tensor/graph/GraphError.ts"

const x = G.input("x", [2, 3])
const theta = G.state("theta", [8])
const [w, b] = G.split(theta, [6, 2])
const policy: ProgramSpec = {
  name: "policy",
  inputs: { x },
  state: { theta: { tensor: theta, next: G.mul(theta, 2) } },
  outputs: { gemm0: G.add(G.matmul(x, G.reshape(w, [3, 2])), b), greedy: G.argMax(G.matmul(x, G.reshape(w, [3, 2]))) },
}
const weights = { theta: Float32Array.of(1, 2, 3, 4, 5, 6, 10, 20) }

const refusal = (body: () => unknown): string => {
  try {
    body()
  } catch (error) {
    if (error instanceof GraphError) return error.message
    throw error
  }
  return "nothing was refused"
}

describe("toOnnx", () => {
  it("writes a file that another ONNX runtime runs, with the program's names", async () => {
    const session = await InferenceSession.create(toOnnx(policy, { weightsAsInitializers: weights }))
    assert.deepStrictEqual(session.inputNames, ["x"])
    assert.deepStrictEqual(session.outputNames, ["gemm0", "greedy"])
    const { gemm0, greedy } = await session.run({
      x: new OrtTensor("float32", Float32Array.of(1, 0, 0, -1, 1, 1), [2, 3]),
    })
    assert.deepStrictEqual([...gemm0.dims], [2, 2])
    assert.deepStrictEqual(Array.from(gemm0.data, Number), [11, 22, 17, 28])
    assert.deepStrictEqual(Array.from(greedy.data, Number), [1, 1])
    await session.release()
  })

  it("rejects missing weights, weights of another size, and programs that learn", () => {
    assert.include(
      refusal(() => toOnnx(policy, { weightsAsInitializers: {} })),
      `the weights for state "theta" are missing`,
    )
    assert.include(
      refusal(() => toOnnx(policy, { weightsAsInitializers: { theta: new Float32Array(7) } })),
      "7 weights",
    )
    const learning = { ...policy, minibatches: { rows: 2, batch: 2, count: 1, gathered: [] } }
    assert.include(
      refusal(() => toOnnx(learning, { weightsAsInitializers: weights })),
      "minibatches",
    )
    const same = { ...policy, outputs: { x: G.neg(x) } }
    assert.include(
      refusal(() => toOnnx(same, { weightsAsInitializers: weights })),
      "both an input and an output",
    )
  })

  /** Runs a model on some of the rows [1, 2, 3], [2, 3, 4], …; returns the shape and the numbers of each output. */
  const onRows = async (model: Uint8Array, rows: number) => {
    const session = await InferenceSession.create(model)
    const numbers = Float32Array.from({ length: 3 * rows }, (_, at) => 1 + Math.floor(at / 3) + (at % 3))
    const results = await session.run({ x: new OrtTensor("float32", numbers, [rows, 3]) })
    await session.release()
    return Object.fromEntries(Object.entries(results).map(([name, { dims, data }]) => [name, [dims, [...data]]]))
  }

  it("makes a model for any number of rows of a function from a number of rows", async () => {
    const specOf = (rows: number): ProgramSpec => {
      const x = G.input("x", [rows, 3])
      const product = G.matmul(x, G.reshape(w, [3, 2]))
      const outputs = {
        // Constants and shapes that depend on the number of rows, also on multiples of it.
        beside: G.concat([G.constant(new Float32Array(2 * rows).fill(7), [rows, 2]), product], 1),
        flat: G.reshape(G.reshape(product, [2 * rows, 1]), [rows, 1, 2]),
        wide: G.add(G.broadcastTo(b, [rows, 2]), 1),
        padded: G.pad(x, [0, 1], [0, 0], 9),
        whole: G.reshape(G.sum(x, 1), [rows]),
      }
      return { name: "policy", inputs: { x }, state: { theta: { tensor: theta } }, outputs }
    }
    const model = toOnnx(specOf, { weightsAsInitializers: weights })
    for (const rows of [1, 3]) {
      const expected = await onRows(toOnnx(specOf(rows), { weightsAsInitializers: weights }), rows)
      assert.deepStrictEqual(await onRows(model, rows), expected)
      assert.deepStrictEqual(expected.beside[0], [rows, 4])
    }
  })

  it("rejects a program that computes with the number of rows, moves them to another axis, or has none", () => {
    const refused = (outputOf: (x: Tensor, rows: number) => Tensor, first = (rows: number) => rows) =>
      refusal(() =>
        toOnnx(
          (rows) => {
            const x = G.input("x", [first(rows), 3])
            return { name: "policy", inputs: { x }, state: {}, outputs: { y: outputOf(x, rows) } }
          },
          { weightsAsInitializers: {} },
        ),
      )
    const expected = "expected a program for any number of rows, but"
    assert.include(
      refused((x, rows) => G.mul(x, rows)),
      `${expected} its Mul depends on it`,
    )
    assert.include(
      refused((x) => G.transpose(x)),
      `${expected} y has an axis that depends on it`,
    )
    assert.include(
      refused(
        (x) => x,
        () => 4,
      ),
      `${expected} expected an input with a row for each observation, found none`,
    )
  })

  it("makes the same model of a template as at once, for each of its weights", () => {
    const main = (rows: number): ProgramSpec => {
      const x = G.input("x", [rows, 3])
      return { ...policy, inputs: { x }, outputs: { y: G.matmul(x, G.reshape(w, [3, 2])) } }
    }
    const noisy = { ...policy, inputs: { x }, outputs: { y: G.add(G.matmul(x, G.reshape(w, [3, 2])), b) } }
    const template = onnxTemplate(main, { main: main(1), noisy })
    for (const scale of [1, 2]) {
      const theta = weights.theta.map((each) => each * scale)
      const bytes = template({ theta }, "about it")
      const atOnce = toOnnx(main, {
        weightsAsInitializers: { theta },
        embedded: { about: "about it", programs: { main: main(1), noisy } },
      })
      assert.deepStrictEqual(bytes, atOnce)
      const read = readEmbedded(bytes) ?? assert.fail("expected programs in the metadata")
      assert.strictEqual(read.about, "about it")
      const constants = topologicalOrder(Object.values(read.programs.noisy.outputs)).flatMap(({ op }) =>
        op.kind === "constant" ? [[...op.data]] : [],
      )
      // The second one is only in the metadata.
      assert.sameDeepMembers(constants, [[...theta.subarray(0, 6)], [...theta.subarray(6)]])
    }
  })
})
