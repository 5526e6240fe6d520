import { describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { Effect, Layer } from "effect"
import { Backend } from "../src/tensor/backend/Backend.ts"
import * as Wasm from "../src/tensor/backend/wasm.ts"
import { plainModules } from "../src/tensor/backend/wasmModules.ts"
import * as G from "../src/tensor/graph/ops.ts"
import type { ProgramSpec } from "../src/tensor/graph/Program.ts"
import { sizeOf, stridesOf } from "../src/tensor/graph/Tensor.ts"
import { commonDims, restride } from "../src/tensor/graph/wasm/ir.ts"
import { tries } from "../test/house/tries.ts"

/** Factorings of one size, in some order. */
const factorings = fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 1, maxLength: 5 })

const shuffled = (sizes: ReadonlyArray<number>) => fc.shuffledSubarray([...sizes], { minLength: sizes.length })

/** Positions in memory, in the order in which the elements are counted. */
const positions = (shape: ReadonlyArray<number>, strides: ReadonlyArray<number>): ReadonlyArray<number> => {
  let list = [0]
  shape.forEach((size, axis) => {
    list = list.flatMap((at) => Array.from({ length: size }, (_, i) => at + i * strides[axis]))
  })
  return list
}

const run = (
  spec: ProgramSpec,
  feeds: Readonly<Record<string, ReadonlyArray<number>>>,
  layer: Layer.Layer<Backend> = Wasm.layer,
) => {
  const program = Effect.runSync(
    Effect.scoped(
      Effect.provide(
        Effect.flatMap(Backend, (backend) => backend.compile(spec)),
        layer,
      ),
    ),
  )
  for (const [name, data] of Object.entries(feeds)) program.feeds[name].set(data)
  program.runSync?.()
  return program.results
}

describe("wasm", () => {
  it("strides over other dims read the same elements in the same order", () => {
    const cases = factorings.chain((shape) =>
      fc.record({ shape: fc.constant(shape), order: shuffled(shape.map((_, axis) => axis)), dims: shuffled(shape) }),
    )
    fc.assert(
      fc.property(cases, ({ shape, order, dims }) => {
        // A transposed array: strides of the original, in another order.
        const strides = order.map((axis) => stridesOf(shape)[axis])
        const own = order.map((axis) => shape[axis])
        const found = restride(own, strides, dims)
        return found === undefined || positions(dims, found).join() === positions(own, strides).join()
      }),
    )
  })

  it("strides over finer dims are always found", () => {
    fc.assert(
      fc.property(factorings, fc.nat(), (shape, cut) => {
        // Two neighbouring dims become one in the coarser shape.
        const at = cut % shape.length
        const coarse =
          at + 1 < shape.length ? [...shape.slice(0, at), shape[at] * shape[at + 1], ...shape.slice(at + 2)] : shape
        const strides = coarse.map((_, axis) => 7 * axis + 1)
        const found = restride(coarse, strides, shape)
        return found !== undefined && positions(shape, found).join() === positions(coarse, strides).join()
      }),
    )
  })

  it("common dims refine both shapes, or there are none", () => {
    const pair = factorings.chain((a) => fc.tuple(fc.constant(a), shuffled(a)))
    fc.assert(
      fc.property(pair, ([a, b]) => {
        const dims = commonDims(a, b)
        if (dims === undefined) return true
        return (
          sizeOf(dims) === sizeOf(a) &&
          restride(
            a,
            stridesOf(a).map((s) => 3 * s),
            dims,
          ) !== undefined &&
          restride(
            b,
            stridesOf(b).map((s) => 3 * s),
            dims,
          ) !== undefined
        )
      }),
    )
  })

  /** A product of whole numbers, which need no rounding, so equality is demanded. */
  const isProduct = (
    [m, k, n]: readonly [number, number, number],
    [transposeA, transposeB]: readonly [boolean, boolean],
    layer?: Layer.Layer<Backend>,
  ): boolean => {
    const a = G.input("a", transposeA ? [k, m] : [m, k])
    const b = G.input("b", transposeB ? [n, k] : [k, n])
    const left = Array.from({ length: m * k }, (_, i) => ((i * 37) % 19) - 9)
    const right = Array.from({ length: k * n }, (_, i) => ((i * 53) % 23) - 11)
    const y = G.matmul(a, b, { transposeA, transposeB })
    const spec = { name: "product", inputs: { a, b }, state: {}, outputs: { y } }
    const found = run(spec, { a: left, b: right }, layer).y
    for (let i = 0; i < m; i++) {
      for (let j = 0; j < n; j++) {
        let sum = 0
        for (let l = 0; l < k; l++)
          sum += left[transposeA ? l * m + i : i * k + l] * right[transposeB ? j * k + l : l * n + j]
        if (found[i * n + j] !== sum) return false
      }
    }
    return true
  }
  /** Backends with the tiles for wider vectors. */
  const wideTiles = ([8, 16] as const).map((lanes) =>
    Layer.succeed(Backend, Wasm.make({ ...plainModules, lanes: () => lanes })),
  )
  const transposes = fc.tuple(fc.boolean(), fc.boolean())

  it("a product of any shape equals the sums that define it", () => {
    const size = fc.integer({ min: 1, max: 40 })
    fc.assert(
      fc.property(fc.tuple(size, size, size), transposes, (sizes, transposed) => isProduct(sizes, transposed)),
      { numRuns: tries(150) },
    )
  })

  it("a large product, computed in blocks and with tiles for usual and for wide vectors, equals these sums", () => {
    const sizes = fc.tuple(
      fc.oneof(fc.integer({ min: 16, max: 180 }), fc.constantFrom(128, 144, 176, 288)),
      fc.integer({ min: 60, max: 120 }),
      fc.integer({ min: 60, max: 100 }),
    )
    fc.assert(fc.property(sizes, transposes, fc.constantFrom(Wasm.layer, ...wideTiles), isProduct), {
      numRuns: tries(25),
    })
  })

  it("a product of a long inner dimension, whose parts are computed one after another, equals these sums", () => {
    const size = fc.integer({ min: 1, max: 40 })
    const sizes = fc.tuple(size, fc.integer({ min: 250, max: 520 }), size)
    fc.assert(fc.property(sizes, transposes, fc.constantFrom(Wasm.layer, ...wideTiles), isProduct), {
      numRuns: tries(25),
    })
  })

  it("a sum over any axes of any shape, however strided, adds each element once", () => {
    const shapes = fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 4 })
    const cases = shapes.chain((shape) =>
      fc.record({
        shape: fc.constant(shape),
        order: shuffled(shape.map((_, axis) => axis)),
        axes: fc.subarray(shape.map((_, axis) => axis)),
      }),
    )
    fc.assert(
      fc.property(cases, ({ shape, order, axes }) => {
        const x = G.input("x", shape)
        const data = Array.from({ length: sizeOf(shape) }, (_, i) => ((i * 31) % 17) - 8)
        const y = G.sum(G.transpose(x, order), axes)
        const found = run({ name: "sum", inputs: { x }, state: {}, outputs: { y } }, { x: data }).y
        const strides = order.map((axis) => stridesOf(shape)[axis])
        const own = order.map((axis) => shape[axis])
        const kept = own.flatMap((size, axis) => (axes.includes(axis) ? [] : [size]))
        const expected = new Array<number>(sizeOf(kept)).fill(0)
        const target = positions(
          own,
          own.map((_, axis) =>
            axes.includes(axis)
              ? 0
              : stridesOf(kept)[own.slice(0, axis).filter((_, before) => !axes.includes(before)).length],
          ),
        )
        positions(own, strides).forEach((at, i) => (expected[target[i]] += data[at]))
        return expected.every((value, i) => value === found[i])
      }),
      { numRuns: tries(150) },
    )
  })
})
