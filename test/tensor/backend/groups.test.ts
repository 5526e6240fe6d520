import { assert, describe, it } from "@effect/vitest"
import { Effect, type Layer } from "effect"
import { Backend, BackendError, type BackendUnavailable } from "../../../src/tensor/backend/Backend.ts"
import * as OnnxNode from "../../../src/tensor/backend/onnx-node.ts"
import * as OnnxWeb from "../../../src/tensor/backend/onnx-web.ts"
import * as Reference from "../../../src/tensor/backend/reference.ts"
import * as Wasm from "../../../src/tensor/backend/wasm.ts"
import { GraphError } from "../../../src/tensor/graph/GraphError.ts"
import * as G from "../../../src/tensor/graph/ops.ts"
import type { ProgramSpec } from "../../../src/tensor/graph/Program.ts"
import { compileAll } from "../../../src/tensor/graph/wasm/compile.ts"
import type { Shape } from "../../../src/tensor/graph/Tensor.ts"
import { ort } from "./onnxWeb.ts"

const backends: Readonly<Record<string, Layer.Layer<Backend, BackendUnavailable>>> = {
  wasm: Wasm.layer,
  cpu: OnnxNode.layerCpu(),
  "onnx-web": OnnxWeb.layer(ort),
  reference: Reference.layer,
}

/** Multiplies rows by the weights; `w` does not change, so the wasm backend may prepare values from it. */
const acting = (rows: number): ProgramSpec => {
  const x = G.input("x", [rows, 3])
  const w = G.state("w", [3, 2])
  // The weights' exponential depends only on a state: it is computed before a run.
  return { name: "act", inputs: { x }, state: { w: { tensor: w } }, outputs: { y: G.matmul(x, G.exp(w)) } }
}

/** Adds the input to the weights. */
const training = (): ProgramSpec => {
  const slope = G.input("slope", [3, 2])
  const w = G.state("w", [3, 2])
  const steps = G.state("steps", [])
  return {
    name: "train",
    inputs: { slope },
    state: { w: { tensor: w, next: G.add(w, slope) }, steps: { tensor: steps, next: G.add(steps, 1) } },
    outputs: { before: w },
  }
}

/** Walks for three steps, and collects each place before the step, and a number that is the same at each step. */
const walking = (): ProgramSpec => {
  const step = G.input("step", [1, 2])
  const place = G.state("place", [2])
  const next = G.add(place, G.reshape(step, [2]))
  return {
    name: "walk",
    inputs: { step },
    state: {
      place: { tensor: place, next },
      places: { tensor: G.state("places", [3, 2]), next: place, stacked: true },
      doubled: { tensor: G.state("doubled", [3, 2]), next: G.mul(next, 2), stacked: true },
      ones: { tensor: G.state("ones", [3]), next: G.constant(1), stacked: true },
    },
    outputs: { next },
    minibatches: { rows: 3, batch: 1, count: 3, gathered: ["step"] },
  }
}

/** Reads what `walking` has collected. */
const looking = (): ProgramSpec => {
  const [places, doubled, ones] = [G.state("places", [3, 2]), G.state("doubled", [3, 2]), G.state("ones", [3])]
  return {
    name: "look",
    inputs: {},
    state: { places: { tensor: places }, doubled: { tensor: doubled }, ones: { tensor: ones } },
    outputs: { sum: G.add(places, doubled), ones: G.sum(ones) },
  }
}

const reading = (shape: Shape): ProgramSpec => {
  const cache = G.input("cache", shape)
  const scale = G.input("scale", [])
  return { name: "read", inputs: { cache, scale }, state: {}, outputs: { sum: G.mul(G.sum(cache), scale) } }
}

for (const [name, layer] of Object.entries(backends)) {
  describe(`a group on ${name}`, () => {
    const compileAll: Backend["Service"]["compileAll"] = (specs, options) =>
      Effect.flatMap(Backend, (backend) => backend.compileAll(specs, options)).pipe(Effect.provide(layer))

    it.effect("shares its states: written through any program, replaced by any, seen by all", () =>
      Effect.gen(function* () {
        const { one, three, train } = yield* compileAll({ one: acting(1), three: acting(3), train: training() })
        assert.deepStrictEqual([...(yield* train.read("w"))], [0, 0, 0, 0, 0, 0])
        for (const feed of [one.feeds.x, three.feeds.x]) feed.fill(1)
        yield* one.run
        assert.deepStrictEqual([...one.results.y], [3, 3])

        const ln2 = Math.fround(Math.log(2))
        yield* three.write("w", new Float32Array(6).fill(ln2))
        for (const program of [one, three]) {
          yield* program.run
          for (const y of program.results.y) assert.closeTo(y, 6, 1e-5)
        }

        train.feeds.slope.fill(ln2)
        yield* train.run
        assert.deepStrictEqual([...train.results.before], new Array(6).fill(ln2))
        for (const program of [three, one]) {
          yield* program.run
          for (const y of program.results.y) assert.closeTo(y, 12, 1e-5)
          assert.deepStrictEqual([...(yield* program.read("w"))], new Array(6).fill(2 * ln2))
        }

        // A state that a run has replaced can be written again.
        yield* one.write("w", new Float32Array(6))
        yield* train.run
        assert.deepStrictEqual([...train.results.before], new Array(6).fill(0))
        assert.deepStrictEqual([...(yield* train.read("steps"))], [2])
      }).pipe(Effect.scoped),
    )

    it.effect("copies a state: to a new array, or to one that is given", () =>
      Effect.gen(function* () {
        const { train } = yield* compileAll({ train: training() })
        yield* train.write("w", Float32Array.of(1, 2, 3, 4, 5, 6))
        const into = new Float32Array(6)
        const copy = yield* train.read("w")
        assert.strictEqual(yield* train.read("w", into), into)
        train.feeds.slope.fill(1)
        yield* train.run
        // The run changes neither copy.
        for (const numbers of [copy, into]) assert.deepStrictEqual([...numbers], [1, 2, 3, 4, 5, 6])
        const error = yield* Effect.flip(train.read("w", new Float32Array(7)))
        assert.include(error.message, 'state "w": expected 6 numbers, found 7')
      }).pipe(Effect.scoped),
    )

    it.effect("passes on what a program has collected in its loop", () =>
      Effect.gen(function* () {
        const { walk, look } = yield* compileAll({ walk: walking(), look: looking() })
        yield* walk.write("place", Float32Array.of(10, 20))
        walk.feeds.step.set([1, 2, 3, 4, 5, 6])
        walk.feeds.indices.set([0, 1, 2])
        for (const from of [
          [10, 20],
          [19, 32],
        ]) {
          yield* walk.run
          yield* look.run
          const [x, y] = from
          const places = [x, y, x + 1, y + 2, x + 4, y + 6]
          const after = [x + 1, y + 2, x + 4, y + 6, x + 9, y + 12]
          assert.deepStrictEqual([...walk.results.next], after)
          assert.deepStrictEqual([...(yield* look.read("places"))], places)
          assert.deepStrictEqual(
            [...look.results.sum],
            places.map((place, at) => place + 2 * after[at]),
          )
          assert.strictEqual(look.results.ones[0], 3)
        }
      }).pipe(Effect.scoped),
    )

    it.effect("has feeds of its own for each program, except for shared ones", () =>
      Effect.gen(function* () {
        const { a, b } = yield* compileAll({ a: reading([4]), b: reading([4]) }, { sharedFeeds: ["cache"] })
        a.feeds.cache.set([1, 2, 3, 4])
        a.feeds.scale[0] = 2
        b.feeds.scale[0] = 3
        yield* a.run
        yield* b.run
        assert.deepStrictEqual([a.results.sum[0], b.results.sum[0]], [20, 30])
        b.feeds.cache[3] = 0
        yield* a.run
        assert.strictEqual(a.results.sum[0], 12)
      }).pipe(Effect.scoped),
    )

    it.effect("lets a program with fewer rows read the first rows of a shared feed", () =>
      Effect.gen(function* () {
        const specs = { few: reading([2, 2]), many: reading([3, 2]) }
        const { few, many } = yield* compileAll(specs, { sharedFeeds: ["cache"] })
        for (const { feeds } of [few, many]) feeds.scale[0] = 1
        many.feeds.cache.set([1, 2, 3, 4, 5, 6])
        yield* few.run
        yield* many.run
        assert.deepStrictEqual([few.feeds.cache.length, few.results.sum[0], many.results.sum[0]], [4, 10, 21])
        few.feeds.cache[0] = 11
        yield* many.run
        assert.strictEqual(many.results.sum[0], 31)
      }).pipe(Effect.scoped),
    )

    it.effect("names both programs and shapes of arrays that do not fit", () =>
      Effect.gen(function* () {
        const w = G.state("w", [3])
        const other: ProgramSpec = { name: "other", inputs: {}, state: { w: { tensor: w } }, outputs: { w } }
        const state = yield* Effect.flip(compileAll({ act: acting(1), other }))
        assert.instanceOf(state, GraphError)
        assert.strictEqual(state.message, 'other: state "w": expected f32 [3, 2] as in "act", found f32 [3]')
        const specs = { a: reading([4, 2]), b: reading([4, 3]) }
        const feed = yield* Effect.flip(compileAll(specs, { sharedFeeds: ["cache"] }))
        assert.strictEqual(feed.message, 'b: shared feed "cache": expected f32 [4, 2] as in "a", found f32 [4, 3]')
        const unknown = yield* Effect.flip(compileAll(specs, { sharedFeeds: ["cahce"] }))
        assert.strictEqual(unknown.message, 'sharedFeeds "cahce": expected an input of one of the programs "a", "b"')
      }).pipe(Effect.scoped),
    )

    it.effect("keeps a program's errors about states that only other programs have", () =>
      Effect.gen(function* () {
        const { act } = yield* compileAll({ act: acting(1), train: training() })
        const error = yield* Effect.flip(act.read("steps"))
        assert.instanceOf(error, BackendError)
        assert.strictEqual(error.message, 'there is no state "steps"')
      }).pipe(Effect.scoped),
    )
  })
}

describe("a group on wasm", () => {
  it.effect("is one module with one memory, in which a shared feed lies once", () =>
    Effect.gen(function* () {
      const backend = yield* Backend
      const specs = { a: reading([4]), b: reading([4]) }
      const { a, b } = yield* backend.compileAll(specs, { sharedFeeds: ["cache"] })
      assert.strictEqual(a.feeds.cache.buffer, b.feeds.cache.buffer)
      assert.strictEqual(a.feeds.cache.byteOffset, b.feeds.cache.byteOffset)
      assert.notStrictEqual(a.feeds.scale.byteOffset, b.feeds.scale.byteOffset)
    }).pipe(Effect.scoped, Effect.provide(Wasm.layer)),
  )

  it.effect("keeps values that only depend on states once, and computes them again after a run that changes them", () =>
    Effect.gen(function* () {
      // Products of many rows read a transposed copy of weights that are not large.
      const product = (rows: number): ProgramSpec => {
        const x = G.input("x", [rows, 256])
        const w = G.state("w", [128, 256])
        const y = G.matmul(x, w, { transposeB: true })
        return { name: `product ${rows}`, inputs: { x }, state: { w: { tensor: w } }, outputs: { y } }
      }
      const bytesOf = (specs: Readonly<Record<string, ProgramSpec>>): number =>
        compileAll(specs).programs.a.feeds.x.address
      const copy = 4 * 128 * 256
      const [one, two] = [{ a: product(32) }, { a: product(32), b: product(33) }]
      // The feed of the first program comes after the states and the values that they share.
      assert.isAbove(bytesOf(one), 2 * copy)
      assert.isBelow(bytesOf(two) - bytesOf(one), copy / 2)

      const w = G.state("w", [128, 256])
      const train = { name: "train", inputs: {}, state: { w: { tensor: w, next: G.add(w, 1) } }, outputs: {} }
      const backend = yield* Backend
      const { a, b, c } = yield* backend.compileAll({ a: product(32), b: product(33), c: train })
      for (const { feeds } of [a, b]) feeds.x.fill(1)
      for (const expected of [0, 256, 512]) {
        for (const program of [a, b]) {
          yield* program.run
          assert.isTrue(program.results.y.every((y) => y === expected))
        }
        yield* c.run
      }
    }).pipe(Effect.scoped, Effect.provide(Wasm.layer)),
  )

  it.effect("says how much memory its programs need if it is too much", () =>
    Effect.gen(function* () {
      const backend = yield* Backend
      const x = G.input("x", [2 ** 28])
      const specs = Object.fromEntries(
        ["a", "b"].map((name) => [name, { name, inputs: { x }, state: {}, outputs: { y: G.neg(x) } }]),
      )
      const error = yield* Effect.flip(backend.compileAll(specs))
      assert.match(error.message, /^a, b: these programs need 4\.0 GiB of memory, more than the 2 GiB of a module; use/)
    }).pipe(Effect.scoped, Effect.provide(Wasm.layer)),
  )
})

describe("a group on cpu", () => {
  it.effect("keeps a frozen state inside of the model, and loads the model again after a change", () =>
    Effect.gen(function* () {
      const spec = acting(1)
      const frozen = { ...spec, state: { w: { ...spec.state.w, frozen: true } } }
      const backend = yield* Backend
      const { act, train } = yield* backend.compileAll({ act: frozen, train: training() })
      const alone = yield* backend.compile(frozen)
      for (const program of [act, alone]) program.feeds.x.fill(1)
      const ln2 = Math.fround(Math.log(2))
      for (const program of [act, alone]) {
        yield* program.run
        assert.deepStrictEqual([...program.results.y], [3, 3])
        yield* program.write("w", new Float32Array(6).fill(ln2))
        yield* program.run
        for (const y of program.results.y) assert.closeTo(y, 6, 1e-5)
        assert.deepStrictEqual([...(yield* program.read("w"))], new Array(6).fill(ln2))
      }
      train.feeds.slope.fill(ln2)
      yield* train.run
      yield* act.run
      for (const y of act.results.y) assert.closeTo(y, 12, 1e-5)
    }).pipe(Effect.scoped, Effect.provide(OnnxNode.layerCpu())),
  )

  it.effect("loads a session at the first run of its program, and refuses to run after its scope", () =>
    Effect.gen(function* () {
      const { act } = yield* Effect.scoped(
        Effect.flatMap(Backend, (backend) => backend.compileAll({ act: acting(1), train: training() })),
      )
      const error = yield* Effect.flip(act.run)
      assert.match(error.message, /the scope in which it was compiled is closed/)
    }).pipe(Effect.provide(OnnxNode.layerCpu())),
  )
})
