import { assert, describe, it } from "@effect/vitest"
import { InferenceSession, Tensor as OrtTensor } from "onnxruntime-node"
import { toOnnx } from "../../../src/graph/onnx/export.ts"
import * as G from "../../../src/graph/ops.ts"
import type { ProgramSpec } from "../../../src/graph/Program.ts"
import { GraphError } from "../../../src/graph/GraphError.ts"

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
})
