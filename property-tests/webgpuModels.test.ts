/** The models for WebGPU's provider compute what the models for other providers do. Here the CPU's provider runs both. */
import { createRequire } from "node:module"
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { emit, feedInput, stateInput } from "../src/tensor/graph/onnx/emit.ts"
import { indicesFeed, type ProgramSpec } from "../src/tensor/graph/Program.ts"
import * as G from "../src/tensor/graph/ops.ts"
import { sizeOf } from "../src/tensor/graph/Tensor.ts"
import { feedShapes } from "../src/tensor/graph/validate.ts"
import { agree } from "./support/agreement.ts"
import { choices, grow } from "./support/randomGraph.ts"
import { tries } from "../test/house/tries.ts"

const ort: typeof import("onnxruntime-common") = createRequire(import.meta.url)("onnxruntime-node")

const numbers = (length: number, seed: number): Float32Array =>
  Float32Array.from({ length }, (_, at) => Math.sin(at * 7 + seed))

/** Runs a model of the program, and returns its outputs by name. */
const outputsOf = async (spec: ProgramSpec, indices: ReadonlyArray<number>, webgpu: boolean) => {
  const { bytes } = emit(spec, { webgpu })
  const session = await ort.InferenceSession.create(bytes, { logSeverityLevel: 4 })
  const inputs: Record<string, InstanceType<typeof ort.Tensor>> = {}
  for (const [index, [name, { shape, dtype }]] of Object.entries(feedShapes(spec)).entries())
    inputs[feedInput(name)] =
      dtype === "i32"
        ? new ort.Tensor(
            "int32",
            name === indicesFeed ? Int32Array.from(indices) : new Int32Array(sizeOf(shape)),
            shape,
          )
        : new ort.Tensor("float32", numbers(sizeOf(shape), index), shape)
  for (const [index, [name, { tensor, stacked }]] of Object.entries(spec.state).entries())
    if (stacked !== true)
      inputs[stateInput(name)] = new ort.Tensor("float32", numbers(sizeOf(tensor.shape), index + 9), tensor.shape)
  const fetched = await session.run(inputs)
  await session.release()
  return Object.entries(fetched).map(([name, { data }]) => [name, Array.from(Object.values(data), Number)] as const)
}

const [rows, batch] = [9, 6]

describe("models for WebGPU", () => {
  it("compute what other models compute, for any graph and number of iterations", () =>
    fc.assert(
      fc.asyncProperty(
        choices,
        fc
          .integer({ min: 1, max: 12 })
          .chain((count) => fc.array(fc.nat(rows - 1), { minLength: count * batch, maxLength: count * batch })),
        fc.boolean(),
        async (picked, indices, endsEarly) => {
          const spec = grow(picked)
          const steps = G.state("steps", [])
          const next = G.add(steps, 1)
          const minibatches = {
            rows,
            batch,
            count: indices.length / batch,
            gathered: ["a", "c"],
            ...(endsEarly ? { continueWhile: G.less(next, 3) } : {}),
          }
          const looped = { ...spec, state: { ...spec.state, steps: { tensor: steps, next } }, minibatches }
          const expected = await outputsOf(looped, indices, false)
          const found = new Map(await outputsOf(looped, indices, true))
          for (const [name, values] of expected) assert.isUndefined(agree(found.get(name) ?? [], values), name)
        },
      ),
      { numRuns: tries(60) },
    ))

  it("have no loop with a fixed number of iterations, nor ops without a kernel", async () => {
    const [x, s] = [G.input("x", [1, 4]), G.state("s", [1, 4])]
    const grown = G.add(s, x)
    const wide = G.state("wide", [36])
    const parts = G.split(wide, [1, 2, 3, 4, 5, 6, 7, 8])
    const isLarge = G.or(G.greater(grown, 1), G.and(G.less(grown, 0), G.greater(x, 0)))
    const spec: ProgramSpec = {
      name: "loop",
      inputs: { x },
      state: {
        s: { tensor: s, next: G.add(G.mul(G.sign(grown), 0.5), G.logSoftmax(grown)) },
        wide: { tensor: wide, next: G.concat(parts.toReversed()) },
      },
      outputs: { isLarge },
      minibatches: { rows: 3, batch: 1, count: 3, gathered: ["x"] },
    }
    const opsOf = (webgpu: boolean): ReadonlyArray<string> => {
      // Each op's name follows the tag 0x22 of the field op_type and its length.
      const text = Buffer.from(emit(spec, { webgpu }).bytes).toString("latin1")
      return ["Scan", "LogSoftmax", "Sign", "And", "Or", "Split"].filter((op) =>
        text.includes(`"${String.fromCharCode(op.length)}${op}`),
      )
    }
    assert.deepStrictEqual(opsOf(false), ["Scan", "LogSoftmax", "Sign", "And", "Or", "Split"])
    assert.deepStrictEqual(opsOf(true), [])
    const expected = await outputsOf(spec, [0, 1, 2], false)
    const found = new Map(await outputsOf(spec, [0, 1, 2], true))
    for (const [name, values] of expected) assert.isUndefined(agree(found.get(name) ?? [], values), name)
  })
})
