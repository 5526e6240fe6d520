import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Backend, type Program } from "../../../src/tensor/backend/Backend.ts"
import * as Reference from "../../../src/tensor/backend/reference.ts"
import * as Wasm from "../../../src/tensor/backend/wasm.ts"
import { gradients } from "../../../src/tensor/graph/gradients.ts"
import * as G from "../../../src/tensor/graph/ops.ts"
import type { ProgramSpec } from "../../../src/tensor/graph/Program.ts"
import { type Shape, sizeOf, type Tensor } from "../../../src/tensor/graph/Tensor.ts"

/** Numbers between −2 and 2 that look random and never change. */
const numbers = (count: number, seed = 1): Float32Array => {
  let word = seed
  return Float32Array.from({ length: count }, () => {
    word = (Math.imul(word, 1664525) + 1013904223) >>> 0
    return word / 2 ** 30 - 2
  })
}

const compileWith = (layer: typeof Wasm.layer, spec: ProgramSpec) =>
  Effect.provide(
    Effect.flatMap(Backend, (backend) => backend.compile(spec)),
    layer,
  )

const fill = (program: Program): void => {
  Object.values(program.feeds).forEach((feed, index) => {
    const data = numbers(feed.length, index + 1)
    for (let i = 0; i < feed.length; i++) {
      feed[i] =
        feed instanceof Float32Array
          ? data[i]
          : feed instanceof Uint8Array
            ? Number(data[i] > 0)
            : Math.floor(data[i] + 2)
    }
  })
}

const assertClose = (found: ArrayLike<number>, expected: ArrayLike<number>, what: string, tolerance = 2e-5): void => {
  assert.strictEqual(found.length, expected.length, what)
  const scale = Math.max(1, ...Array.from(expected, (x) => (Number.isFinite(x) ? Math.abs(x) : 0)))
  for (let i = 0; i < found.length; i++) {
    const same =
      Object.is(found[i], expected[i]) ||
      found[i] === expected[i] ||
      Math.abs(found[i] - expected[i]) <= tolerance * scale ||
      (Number.isNaN(found[i]) && Number.isNaN(expected[i]))
    if (!same) assert.fail(`${what}: element ${i} is ${found[i]}, expected ${expected[i]}`)
  }
}

/** Runs the program on both backends, a few times, and compares all results and states after each run. */
const assertAgrees = (spec: ProgramSpec, tolerance?: number) =>
  Effect.gen(function* () {
    const wasm = yield* compileWith(Wasm.layer, spec)
    const reference = yield* compileWith(Reference.layer, spec)
    for (const [index, name] of Object.keys(spec.state).entries()) {
      const data = numbers(sizeOf(spec.state[name].tensor.shape), 100 + index)
      yield* wasm.write(name, data)
      yield* reference.write(name, data)
    }
    for (let run = 0; run < 3; run++) {
      fill(wasm)
      for (const name of Object.keys(spec.inputs)) reference.feeds[name].set(wasm.feeds[name])
      if (spec.minibatches !== undefined) {
        wasm.feeds.indices.forEach((_, i, indices) => (indices[i] = (i * 7 + run) % (spec.minibatches?.rows ?? 1)))
        reference.feeds.indices.set(wasm.feeds.indices)
      }
      yield* wasm.run
      yield* reference.run
      assert.strictEqual(wasm.iterations(), reference.iterations())
      for (const name of Object.keys(spec.outputs)) {
        assertClose(wasm.results[name], reference.results[name], `${spec.name} ${name}, run ${run}`, tolerance)
      }
      for (const name of Object.keys(spec.state)) {
        assertClose(
          yield* wasm.read(name),
          yield* reference.read(name),
          `${spec.name} state ${name}, run ${run}`,
          tolerance,
        )
      }
    }
  }).pipe(Effect.scoped)

/** One graph of its inputs, and the gradient of a weighted sum of its outcome. */
const assertOp = (
  name: string,
  shapes: ReadonlyArray<Shape>,
  build: (...inputs: ReadonlyArray<Tensor>) => Tensor,
  options: { readonly dtypes?: ReadonlyArray<Tensor["dtype"]>; readonly gradient?: boolean } = {},
) => {
  const inputs = shapes.map((shape, i) => G.input(`x${i}`, shape, options.dtypes?.[i] ?? "f32"))
  const y = build(...inputs)
  const outputs: Record<string, Tensor> = { y }
  if (y.dtype === "f32" && options.gradient !== false) {
    const loss = G.sum(G.mul(y, G.constant(numbers(sizeOf(y.shape), 77), y.shape)))
    const wanted = inputs.filter((input) => input.dtype === "f32")
    gradients(loss, wanted).forEach((slope, i) => (outputs[`slope${i}`] = slope))
  }
  return assertAgrees({
    name,
    inputs: Object.fromEntries(inputs.map((input, i) => [`x${i}`, input])),
    state: {},
    outputs,
  })
}

const engine: object = Reflect.get(globalThis, "WebAssembly")

type Around = <A, E, R>(body: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>

/** Puts something else in the place of a part of an engine, while `body` runs. */
const replacing =
  (whole: object, part: string, other: unknown): Around =>
  (body) =>
    Effect.acquireUseRelease(
      Effect.sync(() => {
        const before: unknown = Reflect.get(whole, part)
        Reflect.set(whole, part, other)
        return before
      }),
      () => body,
      (before) => Effect.sync(() => Reflect.set(whole, part, before)),
    )

/** Fails as the engine of an edge worker does when it is asked to compile a module. */
const refuse = function (): never {
  throw new Error("disallowed by embedder")
}

describe("wasm", () => {
  const shapes: ReadonlyArray<Shape> = [[], [1], [3], [16], [37], [5, 2], [7, 1], [4, 4, 3]]

  it.effect("computes every unary op and its gradient as the reference does", () =>
    Effect.gen(function* () {
      const ops = {
        neg: G.neg,
        abs: G.abs,
        sign: G.sign,
        exp: G.exp,
        sin: G.sin,
        cos: G.cos,
        tanh: G.tanh,
        sigmoid: G.sigmoid,
        relu: G.relu,
        softplus: G.softplus,
        floor: G.floor,
        gelu: G.gelu,
        silu: G.silu,
        stopGradient: G.stopGradient,
        clip: (x: Tensor) => G.clip(x, -0.5, 0.7),
      }
      for (const [name, op] of Object.entries(ops)) {
        for (const shape of shapes) yield* assertOp(name, [shape], (x) => op(x))
      }
      const positive = { log: G.log, sqrt: G.sqrt, reciprocal: G.reciprocal }
      for (const [name, op] of Object.entries(positive)) {
        for (const shape of shapes) yield* assertOp(name, [shape], (x) => op(G.add(G.abs(x), 0.1)))
      }
    }),
  )

  it.effect("computes every binary op, comparison and where, broadcast in every way", () =>
    Effect.gen(function* () {
      const pairs: ReadonlyArray<readonly [Shape, Shape]> = [
        [[6], [6]],
        [[4, 5], [5]],
        [
          [4, 5],
          [4, 1],
        ],
        [
          [3, 1],
          [1, 8],
        ],
        [[], [9]],
        [
          [2, 3, 4],
          [3, 1],
        ],
        [
          [2, 1, 4],
          [1, 3, 1],
        ],
        [
          [128, 2],
          [128, 1],
        ],
      ]
      const ops = {
        add: G.add,
        sub: G.sub,
        mul: G.mul,
        minimum: G.minimum,
        maximum: G.maximum,
        div: (a: Tensor, b: Tensor) => G.div(a, G.add(G.abs(b), 0.1)),
        pow: (a: Tensor, b: Tensor) => G.pow(G.add(G.abs(a), 0.1), b),
        where: (a: Tensor, b: Tensor) => G.where(G.less(a, b), G.mul(a, 2), b),
      }
      for (const [name, op] of Object.entries(ops)) {
        for (const pair of pairs) yield* assertOp(name, pair, op)
      }
      const tests = {
        less: G.less,
        lessEqual: G.lessEqual,
        greater: G.greater,
        greaterEqual: G.greaterEqual,
        equal: (a: Tensor, b: Tensor) => G.equal(G.floor(a), G.floor(b)),
        notEqual: (a: Tensor, b: Tensor) => G.notEqual(G.floor(a), G.floor(b)),
      }
      for (const [name, op] of Object.entries(tests)) {
        for (const pair of pairs) yield* assertOp(name, pair, op)
      }
    }),
  )

  it.effect("computes with integers and bools, and casts between kinds", () =>
    Effect.gen(function* () {
      for (const shape of shapes) {
        const ints = { dtypes: ["i32", "i32"] } as const
        yield* assertOp(
          "integers",
          [shape, shape],
          (a, b) => G.sub(G.mul(G.add(a, b), G.minimum(a, b)), G.maximum(a, b)),
          ints,
        )
        yield* assertOp("integer tests", [shape, shape], (a, b) => G.or(G.less(a, b), G.equal(a, b)), ints)
        yield* assertOp("to float", [shape, shape], (a, b) => G.div(G.cast(a, "f32"), G.add(G.cast(b, "f32"), 1)), ints)
        yield* assertOp("to bool", [shape], (a) => G.not(G.cast(a, "bool")), { dtypes: ["i32"] })
        yield* assertOp("truncation", [shape], (a) => G.cast(G.mul(a, 3.3), "i32"))
        const bools = { dtypes: ["bool", "bool"] } as const
        yield* assertOp("bools", [shape, shape], (a, b) => G.and(G.or(a, b), G.not(G.and(a, b))), bools)
        yield* assertOp(
          "bool to float",
          [shape, shape],
          (a, b) => G.add(G.cast(a, "f32"), G.mul(G.cast(b, "f32"), 2)),
          bools,
        )
        yield* assertOp("bool to int", [shape, shape], (a, b) => G.where(a, G.cast(b, "i32"), G.cast(a, "i32")), bools)
      }
    }),
  )

  it.effect(
    "multiplies matrices of every shape, transposed and batched",
    () =>
      Effect.gen(function* () {
        for (const [m, k, n] of [
          [1, 1, 1],
          [1, 5, 1],
          [4, 4, 8],
          [5, 7, 9],
          [8, 64, 2],
          [9, 33, 1],
          [2, 3, 40],
          [3, 20, 13],
          [17, 6, 3],
          [64, 30, 2],
          [33, 18, 66],
          [1, 64, 65],
          [7, 3, 4],
        ]) {
          for (const [transposeA, transposeB] of [
            [false, false],
            [true, false],
            [false, true],
            [true, true],
          ]) {
            yield* assertOp(
              `matmul ${m} ${k} ${n} ${transposeA} ${transposeB}`,
              [transposeA ? [k, m] : [m, k], transposeB ? [n, k] : [k, n], [n]],
              (a, b, bias) => G.tanh(G.add(G.matmul(a, b, { transposeA, transposeB }), bias)),
            )
          }
        }
        yield* assertOp(
          "batched",
          [
            [2, 5, 6],
            [2, 6, 7],
          ],
          (a, b) => G.matmul(a, b),
        )
        yield* assertOp(
          "broadcast on the left",
          [
            [5, 6],
            [3, 6, 7],
          ],
          (a, b) => G.relu(G.matmul(a, b)),
        )
        yield* assertOp(
          "broadcast on the right",
          [
            [3, 2, 5, 6],
            [2, 6, 2],
          ],
          (a, b) => G.matmul(a, b),
        )
        yield* assertOp("broadcast on both", [[3, 1, 5, 6], [4, 9, 6], [9]], (a, b, c) =>
          G.add(G.matmul(a, b, { transposeB: true }), c),
        )
        yield* assertOp("of views", [[2, 10, 12]], (x) =>
          G.matmul(G.slice(x, [0, 2, 1], [2, 5, 8]), G.transpose(G.slice(x, [0, 1, 3], [2, 6, 8]))),
        )
        yield* assertOp("of one with itself", [[6, 6]], (x) => G.matmul(x, x))
        yield* assertOp(
          "with everything behind it",
          [[9, 6], [6, 10], [10], [9, 1], [9, 10]],
          (a, b, row, column, all) => {
            const y = G.tanh(G.add(G.matmul(a, b), row))
            return G.mul(G.add(G.mul(y, column), all), G.sub(1, G.square(y)))
          },
        )
      }),
    { tags: "slow" },
  )

  it.effect(
    "reduces over any axes",
    () =>
      Effect.gen(function* () {
        const ops = { sum: G.sum, mean: G.mean, max: G.max, min: G.min }
        for (const [name, op] of Object.entries(ops)) {
          for (const shape of [[1], [7], [64], [1000], [5, 2], [128, 2], [3, 37], [66, 64], [2, 3, 4], [4, 5, 1, 9]]) {
            const axes = shape.map((_, axis) => axis)
            for (let set = 1; set < 2 ** axes.length; set++) {
              const chosen = axes.filter((axis) => (set >> axis) % 2 === 1)
              yield* assertOp(`${name} of [${shape}] over ${chosen}`, [shape], (x) => op(x, chosen))
            }
          }
          yield* assertOp(
            `${name} of an expression`,
            [
              [6, 20],
              [6, 1],
            ],
            (x, y) => op(G.mul(G.exp(x), y), 1, { keepDims: true }),
          )
        }
      }),
    { tags: "slow" },
  )

  it.effect("computes softmax, argmax and running sums", () =>
    Effect.gen(function* () {
      for (const shape of [[1], [6], [4, 2], [130, 2], [3, 33], [2, 3, 5]]) {
        yield* assertOp("softmax", [shape], (x) => G.softmax(G.mul(x, 5)))
        yield* assertOp("logSoftmax", [shape], (x) => G.logSoftmax(G.mul(x, 5)))
        for (let axis = 0; axis < shape.length; axis++) {
          yield* assertOp("argMax", [shape], (x) => G.argMax(x, axis))
          yield* assertOp("argMax of equals", [shape], (x) => G.argMax(G.floor(x), axis))
          for (const exclusive of [false, true]) {
            for (const reverse of [false, true]) {
              yield* assertOp(`cumSum ${axis} ${exclusive} ${reverse}`, [shape], (x) =>
                G.cumSum(x, axis, { exclusive, reverse }),
              )
            }
          }
        }
      }
    }),
  )

  it.effect("moves elements", () =>
    Effect.gen(function* () {
      yield* assertOp("transpose", [[3, 4, 5]], (x) => G.tanh(G.transpose(x, [2, 0, 1])))
      yield* assertOp("reshape of a transpose", [[6, 4]], (x) => G.exp(G.reshape(G.transpose(x), [3, 8])))
      yield* assertOp("broadcastTo", [[3, 1]], (x) => G.broadcastTo(x, [2, 3, 4]))
      yield* assertOp("slice", [[5, 6, 7]], (x) => G.slice(x, [1, 2, 3], [3, 2, 4]))
      yield* assertOp(
        "concat first",
        [
          [2, 3],
          [4, 3],
          [1, 3],
        ],
        (...x) => G.concat(x.map(G.tanh), 0),
      )
      yield* assertOp(
        "concat last",
        [
          [2, 3],
          [2, 1],
          [2, 6],
        ],
        (...x) => G.concat(x.map(G.tanh), -1),
      )
      yield* assertOp("concat of concats", [[2], [3]], (x, y) =>
        G.concat([G.concat([G.exp(x), G.exp(y)]), y, G.exp(x), x]),
      )
      yield* assertOp(
        "concat of bools",
        [
          [2, 3],
          [2, 2],
        ],
        (x, y) => G.concat([G.less(x, 0), G.less(y, 0)], 1),
      )
      yield* assertOp("pad", [[3, 4]], (x) => G.pad(x, [1, 0], [2, 3], 1.5))
      yield* assertOp("pad with zeros", [[3, 4]], (x) => G.pad(G.exp(x), [0, 2], [1, 1]))
      const index = { dtypes: ["f32", "i32"] } as const
      for (const rest of [[], [1], [4], [3, 7], [17], [100]]) {
        yield* assertOp("gather", [[4, ...rest], [9]], (x, i) => G.gather(x, i), index)
        yield* assertOp(
          "gather by a matrix",
          [
            [4, ...rest],
            [3, 2],
          ],
          (x, i) => G.gather(x, i),
          index,
        )
      }
      yield* assertOp("gather of bools", [[4, 5], [9]], (x, i) => G.gather(G.less(x, 0), i), index)
      yield* assertOp("oneHot", [[7]], (i) => G.oneHot(i, 3), { dtypes: ["i32"] })
      yield* assertOp("oneHot in use", [[5, 4], [5]], (x, i) => G.sum(G.mul(G.oneHot(i, 4), x), -1), index)
    }),
  )

  it.effect("convolves", () =>
    Effect.gen(function* () {
      for (const strides of [1, 2, [2, 1]] as const) {
        for (const padding of [0, 1, "same", [1, 0, 2, 1]] as const) {
          yield* assertOp(
            "conv2d",
            [
              [2, 3, 7, 6],
              [4, 3, 3, 2],
            ],
            (x, w) => G.conv2d(x, w, { strides, padding }),
          )
        }
      }
    }),
  )

  it.effect("replaces all states at once, in place or not", () =>
    Effect.gen(function* () {
      const a = G.state("a", [9])
      const b = G.state("b", [9])
      const m = G.state("m", [3, 3])
      const x = G.input("x", [9])
      const next = G.add(G.mul(a, 0.5), x)
      yield* assertAgrees({
        name: "states",
        inputs: { x },
        state: {
          a: { tensor: a, next },
          b: { tensor: b, next: a },
          m: { tensor: m, next: G.tanh(G.matmul(m, G.reshape(b, [3, 3]))) },
        },
        outputs: { old: a, next, late: G.sum(G.mul(G.reshape(m, [9]), next)), b },
      })
      yield* assertAgrees({
        name: "exchange",
        inputs: {},
        state: { a: { tensor: a, next: b }, b: { tensor: b, next: a } },
        outputs: {},
      })
      yield* assertAgrees({
        name: "read from elsewhere",
        inputs: {},
        state: { a: { tensor: a, next: G.add(a, G.concat([G.slice(a, [1], [8]), G.slice(a, [0], [1])])) } },
        outputs: { sum: G.sum(a) },
      })
    }),
  )

  it.effect("runs minibatches in one call, until continueWhile is false", () =>
    Effect.gen(function* () {
      const batch = 6
      const x = G.input("x", [batch, 3])
      const y = G.input("y", [batch])
      const done = G.input("done", [batch], "bool")
      const rate = G.input("rate", [])
      const w = G.state("w", [3, 1])
      const steps = G.state("steps", [])
      const error = G.sub(G.reshape(G.matmul(x, w), [batch]), G.where(done, 0, y))
      const loss = G.mean(G.square(error))
      const [slope] = gradients(loss, [w])
      const next = G.sub(w, G.mul(slope, G.mul(G.exp(rate), 0.01)))
      const count = G.add(steps, 1)
      const spec = (stop: number): ProgramSpec => ({
        name: "regression",
        inputs: { x, y, done, rate },
        state: { w: { tensor: w, next }, steps: { tensor: steps, next: count } },
        outputs: { loss, error, step: G.cast(count, "i32") },
        minibatches: { rows: 20, batch, count: 5, gathered: ["x", "y", "done"], continueWhile: G.less(count, stop) },
      })
      yield* assertAgrees(spec(1000))
      yield* assertAgrees(spec(7))
    }),
  )

  it.effect("computes its preparation again after a state was written", () =>
    Effect.gen(function* () {
      const x = G.input("x", [2, 8])
      const w = G.state("w", [3, 8])
      const program = yield* compileWith(Wasm.layer, {
        name: "act",
        inputs: { x },
        state: { w: { tensor: w } },
        outputs: { y: G.matmul(x, w, { transposeB: true }) },
      })
      program.feeds.x.fill(1)
      for (const value of [1, 2]) {
        yield* program.write("w", new Float32Array(24).fill(value))
        program.runSync?.()
        assert.deepStrictEqual([...program.results.y], new Array(6).fill(8 * value))
      }
    }).pipe(Effect.scoped),
  )

  it.effect("rejects what it cannot compile with clear errors", () =>
    Effect.gen(function* () {
      const x = G.input("x", [2])
      const spec = { name: "wrong", inputs: { x }, state: {}, outputs: { y: G.exp(x) } }
      const program = yield* compileWith(Wasm.layer, spec)
      const unknown = yield* Effect.flip(program.read("w"))
      assert.include(unknown.message, `no state "w"`)
      const empty = G.input("x", [0, 3])
      const refused = yield* Effect.flip(
        compileWith(Wasm.layer, { ...spec, inputs: { x: empty }, outputs: { y: G.exp(empty) } }),
      )
      assert.strictEqual(refused._tag, "GraphError")
      assert.include(refused.message, "empty")
    }).pipe(Effect.scoped),
  )

  it.effect("tells what to do if an engine cannot compile at run time, as in edge workers", () =>
    Effect.gen(function* () {
      const x = G.input("x", [2])
      const spec = { name: "act", inputs: { x }, state: {}, outputs: { y: G.exp(x) } }
      const refused = yield* Effect.flip(compileWith(Wasm.layer, spec))
      assert.strictEqual(refused._tag, "BackendUnavailable")
      assert.include(refused.message, "compiles no WebAssembly at run time (disallowed by embedder)")
      assert.include(refused.message, "provide Reference.layer")
    }).pipe(Effect.scoped, replacing(engine, "Module", refuse)),
  )

  const engines: Readonly<Record<string, Around>> = {
    "no WebAssembly": replacing(globalThis, "WebAssembly", undefined),
    "no WebAssembly SIMD": (body) =>
      body.pipe(
        replacing(engine, "Module", refuse),
        replacing(engine, "validate", () => false),
      ),
  }
  for (const [missing, without] of Object.entries(engines))
    it.effect(`tells what to do if an engine has ${missing}`, () =>
      Effect.gen(function* () {
        const x = G.input("x", [2])
        const spec = { name: "act", inputs: { x }, state: {}, outputs: { y: G.exp(x) } }
        const refused = yield* Effect.flip(compileWith(Wasm.layer, spec))
        assert.include(refused.message, `this engine has ${missing}. `)
      }).pipe(Effect.scoped, without),
    )
})
