import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, type Layer, Scope } from "effect"
import { Backend, type BackendError, BackendUnavailable } from "../../../src/tensor/backend/Backend.ts"
import * as OnnxNode from "../../../src/tensor/backend/onnx-node.ts"
import * as Reference from "../../../src/tensor/backend/reference.ts"
import { gradients } from "../../../src/tensor/graph/gradients.ts"
import * as G from "../../../src/tensor/graph/ops.ts"
import { indicesFeed, type ProgramSpec } from "../../../src/tensor/graph/Program.ts"
import type { Tensor } from "../../../src/tensor/graph/Tensor.ts"

const compileWith = (layer: Layer.Layer<Backend, BackendUnavailable>, spec: ProgramSpec) =>
  Effect.gen(function* () {
    return yield* (yield* Backend).compile(spec)
  }).pipe(Effect.provide(layer))

const compile = (spec: ProgramSpec) => compileWith(OnnxNode.layerCpu(), spec)

const x = G.input("x", [4])
const s = G.state("s", [4])

const program = (outputs: Readonly<Record<string, Tensor>>, state: ProgramSpec["state"] = {}): ProgramSpec => ({
  name: "test",
  inputs: { x },
  state,
  outputs,
})

describe("onnx-node", () => {
  it.effect("feeds and results are the same arrays as long as the program lives", () =>
    Effect.gen(function* () {
      const doubling = yield* compile(program({ y: G.mul(x, 2) }))
      const { x: feed } = doubling.feeds
      const { y } = doubling.results
      for (const value of [1, 2, 3]) {
        feed.fill(value)
        yield* doubling.run
        assert.strictEqual(doubling.results.y, y)
        assert.deepStrictEqual([...y], new Array(4).fill(2 * value))
      }
      assert.strictEqual(doubling.device, "cpu")
      assert.strictEqual(doubling.iterations(), 1)
    }).pipe(Effect.scoped),
  )

  it.effect(
    "several threads add up rows without losing any",
    () =>
      Effect.gen(function* () {
        const [count, width] = [4096, 256]
        const [rows, updates] = [G.input("rows", [count], "i32"), G.input("updates", [count, width])]
        const sums = G.scatterAdd(rows, updates, 3)
        const inputs = { rows, updates }
        const spec: ProgramSpec = { name: "test", inputs, state: {}, outputs: { sums } }
        const scatter = yield* compileWith(OnnxNode.layerCpu({ threads: 2 }), spec)
        scatter.feeds.rows.forEach((_, at) => (scatter.feeds.rows[at] = at % 2))
        scatter.feeds.updates.fill(1)
        const expected = Float32Array.from({ length: 3 * width }, (_, at) => (at < 2 * width ? count / 2 : 0))
        for (let run = 0; run < 20; run++) {
          yield* scatter.run
          assert.deepStrictEqual(scatter.results.sums, expected)
        }
      }).pipe(Effect.scoped),
    { tags: "slow" },
  )

  it.effect(
    "several threads compute the same product as one",
    () =>
      Effect.gen(function* () {
        const [a, b] = [G.input("a", [256, 128]), G.input("b", [128, 256])]
        const spec: ProgramSpec = { name: "product", inputs: { a, b }, state: {}, outputs: { y: G.matmul(a, b) } }
        const results = yield* Effect.forEach([1, 3], (threads) =>
          Effect.gen(function* () {
            const product = yield* compileWith(OnnxNode.layerCpu({ threads }), spec)
            for (const feed of Object.values(product.feeds)) feed.forEach((_, at) => (feed[at] = Math.sin(at)))
            yield* product.run
            return product.results.y
          }),
        )
        results[0].forEach((expected, at) => assert.approximately(results[1][at], expected, 1e-4))
      }).pipe(Effect.scoped),
    { tags: "slow" },
  )

  it.effect("has the numbers of the reference where ONNX Runtime has an op for several of ours", () =>
    Effect.gen(function* () {
      const heads = G.input("heads", [2, 5, 3, 8])
      const angles = G.input("angles", [2, 5, 1, 4])
      const [wide, narrow] = [G.input("wide", [40, 1024]), G.input("narrow", [40, 8])]
      const [a, b] = G.split(heads, [4, 4], 3)
      const [cos, sin] = [G.cos(angles), G.sin(angles)]
      const rotated = G.concat([G.sub(G.mul(a, cos), G.mul(b, sin)), G.add(G.mul(b, cos), G.mul(a, sin))], 3)
      const [slope] = gradients(G.sum(G.mul(rotated, G.stopGradient(G.exp(heads)))), [heads])
      const scores = G.matmul(rotated, heads, { transposeB: true })
      const scale = G.input("scale", [1024])
      const normal = G.rmsNorm(wide, { scale, epsilon: 0.5 })
      const [normalSlope] = gradients(G.sum(G.square(normal)), [wide])
      const spec: ProgramSpec = {
        name: "fused",
        inputs: { heads, angles, wide, narrow, scale },
        state: {},
        outputs: {
          rotated,
          slope,
          scores,
          normal,
          normalSlope,
          mixed: G.matmul(scores, heads, { transposeA: true }),
          tall: G.matmul(wide, narrow, { transposeA: true }),
          tallOfTransposed: G.matmul(wide, G.transpose(narrow), { transposeA: true, transposeB: true }),
          sum: G.add(G.matmul(narrow, narrow, { transposeB: true }), G.matmul(wide, wide, { transposeB: true })),
        },
      }
      const [results, expected] = yield* Effect.forEach([OnnxNode.layerCpu(), Reference.layer], (layer) =>
        Effect.gen(function* () {
          const fused = yield* compileWith(layer, spec)
          for (const feed of Object.values(fused.feeds)) feed.forEach((_, at) => (feed[at] = Math.sin(at)))
          yield* fused.run
          return fused.results
        }),
      )
      for (const [name, numbers] of Object.entries(expected))
        // An assertion for each of two million numbers would take seconds.
        assert.strictEqual(
          numbers.findIndex(
            (number, at) => !(Math.abs(results[name][at] - number) <= 1e-5 * Math.max(1, Math.abs(number))),
          ),
          -1,
          name,
        )
    }).pipe(Effect.scoped),
  )

  it.effect("state starts as zeros, stays from run to run, and is copied when it is read and written", () =>
    Effect.gen(function* () {
      const adding = yield* compile(program({ before: s }, { s: { tensor: s, next: G.add(s, x) } }))
      adding.feeds.x.fill(1)
      assert.deepStrictEqual([...(yield* adding.read("s"))], [0, 0, 0, 0])
      yield* adding.run
      yield* adding.run
      const read = yield* adding.read("s")
      assert.deepStrictEqual([...read], [2, 2, 2, 2])
      assert.deepStrictEqual([...adding.results.before], [1, 1, 1, 1])
      read.fill(9)
      const numbers = Float32Array.of(1, 2, 3, 4)
      yield* adding.write("s", numbers)
      numbers.fill(9)
      yield* adding.run
      assert.deepStrictEqual([...(yield* adding.read("s"))], [2, 3, 4, 5])
      // After a run, the state is in an output of the session, no longer in the array that was written.
      yield* adding.write("s", new Float32Array(4))
      assert.deepStrictEqual([...(yield* adding.read("s"))], [0, 0, 0, 0])
    }).pipe(Effect.scoped),
  )

  it.effect("states can exchange their values", () =>
    Effect.gen(function* () {
      const t = G.state("t", [4])
      const exchange = yield* compile(program({}, { s: { tensor: s, next: t }, t: { tensor: t, next: s } }))
      yield* exchange.write("s", Float32Array.of(1, 2, 3, 4))
      for (const [run, first] of [0, 1, 0].entries()) {
        yield* exchange.run
        assert.strictEqual((yield* exchange.read("s"))[0], first, `run ${run}`)
      }
    }).pipe(Effect.scoped),
  )

  it.effect("an output can be an input, a constant, or the same as another output", () =>
    Effect.gen(function* () {
      const y = G.mul(x, 3)
      const many = yield* compile(
        program({ same: x, one: G.constant(1), y, again: y, old: s }, { s: { tensor: s, next: y } }),
      )
      many.feeds.x.set([1, 2, 3, 4])
      yield* many.run
      assert.deepStrictEqual(
        Object.values(many.results).map((data) => [...data]),
        [[1, 2, 3, 4], [1], [3, 6, 9, 12], [3, 6, 9, 12], [0, 0, 0, 0]],
      )
      assert.deepStrictEqual([...(yield* many.read("s"))], [3, 6, 9, 12])
    }).pipe(Effect.scoped),
  )

  it.effect("integers and bools keep their dtypes through every movement", () =>
    Effect.gen(function* () {
      const n = G.input("n", [2, 3], "i32")
      const b = G.input("b", [2, 3], "bool")
      const spec: ProgramSpec = {
        name: "kinds",
        inputs: { n, b },
        state: {},
        outputs: {
          sum: G.add(n, n),
          most: G.maximum(n, G.constant(Int32Array.of(0))),
          chosen: G.where(b, n, G.constant(Int32Array.of(-1))),
          flipped: G.where(b, G.not(b), G.less(n, n)),
          joined: G.concat([b, G.not(b)], 1),
          turned: G.transpose(b),
          part: G.slice(b, [0, 1], [2, 2]),
          padded: G.pad(b, [1, 0], [0, 1]),
          wide: G.broadcastTo(G.reshape(b, [1, 2, 3]), [2, 2, 3]),
          rows: G.gather(b, G.constant(Int32Array.of(1, 1, 0))),
          number: G.cast(b, "i32"),
          truth: G.cast(n, "bool"),
          cut: G.cast(G.mul(G.cast(n, "f32"), 0.7), "i32"),
          split: G.slice(n, [0, 0], [2, 1]),
          rest: G.slice(n, [0, 1], [2, 2]),
        },
      }
      const one = yield* compile(spec)
      const reference = yield* compileWith(Reference.layer, spec)
      for (const each of [one, reference]) {
        each.feeds.n.set([3, -2, 0, 7, -5, 1])
        each.feeds.b.set([1, 0, 1, 0, 0, 1])
        yield* each.run
      }
      assert.instanceOf(one.results.joined, Uint8Array)
      assert.instanceOf(one.results.chosen, Int32Array)
      assert.deepStrictEqual(one.results, reference.results)
    }).pipe(Effect.scoped),
  )

  it.effect("the same feeds give the same bits in every run and session", () =>
    Effect.gen(function* () {
      const a = G.input("a", [37, 50])
      const w = G.state("w", [50, 33])
      const y = G.softmax(G.tanh(G.matmul(a, w)))
      const spec: ProgramSpec = {
        name: "bits",
        inputs: { a },
        state: { w: { tensor: w, next: G.add(w, G.matmul(a, y, { transposeA: true })) } },
        outputs: { y, total: G.sum(y, 0) },
      }
      const outcome = Effect.gen(function* () {
        const each = yield* compile(spec)
        each.feeds.a.forEach((_, i, feed) => (feed[i] = Math.sin(i)))
        yield* each.write(
          "w",
          Float32Array.from({ length: 50 * 33 }, (_, i) => Math.cos(i)),
        )
        for (let run = 0; run < 3; run++) yield* each.run
        return [...(yield* each.read("w")), ...each.results.total]
      }).pipe(Effect.scoped)
      assert.deepStrictEqual(yield* outcome, yield* outcome)
    }),
  )
})

describe("minibatches", () => {
  const rows = G.input("rows", [2, 1])
  const count = G.input("count", [])
  const iteration = G.state("iteration", [])
  const total = G.state("total", [])
  const next = G.add(total, G.mul(G.sum(rows), count))
  const steps = G.add(iteration, 1)
  const spec: ProgramSpec = {
    name: "minibatches",
    // Names that a loop uses too.
    inputs: { rows, count },
    state: { iteration: { tensor: iteration, next: steps }, total: { tensor: total, next } },
    outputs: { total: next, steps, rows, doubled: G.mul(rows, 2), count, one: G.constant(1) },
    minibatches: { rows: 5, batch: 2, count: 3, gathered: ["rows"] },
  }
  const filled = (wanted: ProgramSpec) =>
    Effect.gen(function* () {
      const each = yield* compile(wanted)
      each.feeds.rows.set([1, 2, 4, 8, 16])
      each.feeds.count[0] = 10
      each.feeds[indicesFeed].set([0, 1, 4, 4, 3, 2])
      return each
    })

  it.effect("pass the state from one to the next, and stack the outputs", () =>
    Effect.gen(function* () {
      const each = yield* filled(spec)
      yield* each.run
      assert.deepStrictEqual([...each.results.total], [30, 350, 470])
      assert.deepStrictEqual([...each.results.steps], [1, 2, 3])
      assert.deepStrictEqual([...each.results.rows], [1, 2, 16, 16, 8, 4])
      assert.deepStrictEqual([...each.results.doubled], [2, 4, 32, 32, 16, 8])
      assert.deepStrictEqual([...each.results.count], [10, 10, 10])
      assert.deepStrictEqual([...each.results.one], [1, 1, 1])
      assert.strictEqual(each.iterations(), 3)
      yield* each.run
      assert.deepStrictEqual([...(yield* each.read("total")), ...(yield* each.read("iteration"))], [940, 6])
    }).pipe(Effect.scoped),
  )

  it.effect("end after the first one in which continueWhile is false", () =>
    Effect.gen(function* () {
      const { minibatches } = spec
      if (minibatches === undefined) return assert.fail("there are minibatches")
      for (const [limit, done] of [
        [5, 1],
        [100, 2],
        [1000, 3],
      ]) {
        const each = yield* filled({ ...spec, minibatches: { ...minibatches, continueWhile: G.less(next, limit) } })
        yield* each.run
        assert.strictEqual(each.iterations(), done)
        // Rows of those that were not done stay as they were, whatever could be known beforehand.
        assert.deepStrictEqual([...each.results.doubled], [2, 4, 32, 32, 16, 8].fill(0, 2 * done))
        assert.deepStrictEqual(Array.from(each.results.total).slice(0, done), [30, 350, 470].slice(0, done))
        assert.deepStrictEqual([...(yield* each.read("iteration"))], [done])
        assert.deepStrictEqual([...(yield* each.read("total"))], [[30, 350, 470][done - 1]])
      }
    }).pipe(Effect.scoped),
  )

  it.effect("can be a single one, and can have no state", () =>
    Effect.gen(function* () {
      const alone = yield* compile({
        ...spec,
        state: {},
        outputs: { doubled: G.mul(rows, count) },
        minibatches: { rows: 5, batch: 2, count: 1, gathered: ["rows"] },
      })
      alone.feeds.rows.set([1, 2, 4, 8, 16])
      alone.feeds.count[0] = 10
      alone.feeds[indicesFeed].set([3, 0])
      yield* alone.run
      assert.deepStrictEqual([...alone.results.doubled], [80, 10])
    }).pipe(Effect.scoped),
  )

  it.effect("gather rows in the loop if gathering all before would need too much memory", () =>
    Effect.gen(function* () {
      const image = G.input("image", [64, 40_000])
      const seen = G.state("seen", [])
      const mean = G.mean(image)
      const large = yield* compile({
        name: "large",
        inputs: { image },
        state: { seen: { tensor: seen, next: G.add(seen, mean) } },
        outputs: { mean },
        minibatches: { rows: 2, batch: 64, count: 2, gathered: ["image"] },
      })
      large.feeds.image.fill(1, 0, 40_000)
      large.feeds[indicesFeed].fill(1, 64)
      yield* large.run
      assert.deepStrictEqual([...large.results.mean], [1, 0])
      assert.deepStrictEqual([...(yield* large.read("seen"))], [1])
    }).pipe(Effect.scoped),
  )
})

describe("what goes wrong", () => {
  const failureOf = <A, R>(effect: Effect.Effect<A, BackendError, R>) =>
    Effect.map(Effect.flip(effect), (e) => e.message)

  it.effect("names states that do not exist or have another size", () =>
    Effect.gen(function* () {
      const each = yield* compile(program({ y: x }, { s: { tensor: s } }))
      assert.include(yield* failureOf(each.read("theta")), `no state "theta"`)
      assert.include(yield* failureOf(each.write("theta", new Float32Array(4))), `no state "theta"`)
      assert.include(yield* failureOf(each.write("s", new Float32Array(3))), "expected 4 numbers, found 3")
    }).pipe(Effect.scoped),
  )

  it.effect("is a typed error if ONNX Runtime fails: an index out of range names the program", () =>
    Effect.gen(function* () {
      const each = yield* compile(program({ y: G.gather(x, G.cast(x, "i32")) }))
      each.feeds.x.fill(99)
      const error = yield* Effect.flip(each.run)
      assert.strictEqual(error._tag, "BackendError")
      assert.strictEqual(error.program, "test")
      assert.throws(() => each.runSync?.(), /indices/)
      // The program survives it.
      each.feeds.x.fill(1)
      yield* each.run
      assert.deepStrictEqual([...each.results.y], [1, 1, 1, 1])
    }).pipe(Effect.scoped),
  )

  it.effect("is a typed error after the program's scope is closed", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const each = yield* Effect.provideService(compile(program({ y: x })), Scope.Scope, scope)
      yield* each.run
      yield* Scope.close(scope, Exit.void)
      assert.strictEqual((yield* Effect.flip(each.run))._tag, "BackendError")
    }),
  )

  it.effect("is a GraphError for programs that do not fit together", () =>
    Effect.gen(function* () {
      const undeclared = yield* Effect.flip(compile({ ...program({ y: x }), inputs: {} }))
      assert.strictEqual(undeclared._tag, "GraphError")
      assert.include(undeclared.message, `input "x" is used but not declared`)
    }).pipe(Effect.scoped),
  )
})

describe("devices", () => {
  for (const [device, layer, missing, remedy] of [
    ["cuda", OnnxNode.layerCuda(), /libonnxruntime_providers_cuda\.so/, "ONNXRUNTIME_NODE_INSTALL=cuda12"],
    ["webgpu", OnnxNode.layerWebGpu(), /WebGPU adapter|^libvulkan\.so\.1: cannot open/, "Vulkan"],
  ] as const) {
    it.effect(`${device} computes, or names what is missing and how to get it`, () =>
      Effect.gen(function* () {
        const outcome = yield* Effect.result(compileWith(layer, program({ y: G.mul(x, 2) })))
        if (outcome._tag === "Failure") {
          const error = outcome.failure
          if (!(error instanceof BackendUnavailable)) return assert.fail(String(error))
          assert.strictEqual(error.backend, device)
          assert.match(error.missing, missing)
          assert.include(error.remedy, remedy)
          assert.notInclude(error.message, "\n")
        } else {
          outcome.success.feeds.x.fill(2)
          yield* outcome.success.run
          assert.deepStrictEqual([...outcome.success.results.y], [4, 4, 4, 4])
        }
      }).pipe(Effect.scoped),
    )
  }
})
