import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Backend, BackendError } from "../../../src/tensor/backend/Backend.ts"
import * as Reference from "../../../src/tensor/backend/reference.ts"
import { GraphError } from "../../../src/tensor/graph/GraphError.ts"
import * as G from "../../../src/tensor/graph/ops.ts"
import type { ProgramSpec } from "../../../src/tensor/graph/Program.ts"

const compile = (spec: ProgramSpec) => Effect.flatMap(Backend, (backend) => backend.compile(spec))

/** A sum that each run adds a weighted row of observations to. */
const running = (): ProgramSpec => {
  const x = G.input("x", [2])
  const on = G.input("on", [2], "bool")
  const total = G.state("total", [2])
  const rate = G.state("rate", [])
  return {
    name: "running",
    inputs: { x, on },
    state: {
      total: { tensor: total, next: G.add(total, G.mul(G.where(on, x, 0), rate)) },
      rate: { tensor: rate },
    },
    outputs: { before: total, on: G.not(on), biggest: G.argMax(x) },
  }
}

describe("reference", () => {
  it.effect("has feeds and results with the tensors' dtypes, which live as long as the program", () =>
    Effect.gen(function* () {
      const program = yield* compile(running())
      const { x, on } = program.feeds
      assert.instanceOf(x, Float32Array)
      assert.instanceOf(on, Uint8Array)
      assert.instanceOf(program.results.biggest, Int32Array)
      const { biggest } = program.results
      x.set([1, 2])
      on.set([1, 0])
      yield* program.run
      assert.deepStrictEqual([...biggest], [1])
      assert.deepStrictEqual([...program.results.on], [0, 1])
      assert.strictEqual(program.device, "reference")
      assert.strictEqual(program.iterations(), 1)
    }).pipe(Effect.scoped, Effect.provide(Reference.layer)),
  )

  it.effect("keeps state from run to run, and reads the old state in the run that replaces it", () =>
    Effect.gen(function* () {
      const program = yield* compile(running())
      assert.deepStrictEqual(yield* program.read("total"), Float32Array.of(0, 0))
      yield* program.write("rate", Float32Array.of(0.5))
      program.feeds.x.set([2, 4])
      program.feeds.on.set([1, 1])
      program.runSync?.()
      program.runSync?.()
      assert.deepStrictEqual([...program.results.before], [1, 2])
      assert.deepStrictEqual(yield* program.read("total"), Float32Array.of(2, 4))
      assert.deepStrictEqual(yield* program.read("rate"), Float32Array.of(0.5))
    }).pipe(Effect.scoped, Effect.provide(Reference.layer)),
  )

  it.effect("copies state when it is read and written", () =>
    Effect.gen(function* () {
      const program = yield* compile(running())
      const numbers = Float32Array.of(1, 2)
      yield* program.write("total", numbers)
      numbers[0] = 9
      const taken = yield* program.read("total")
      taken[1] = 9
      assert.deepStrictEqual(yield* program.read("total"), Float32Array.of(1, 2))
    }).pipe(Effect.scoped, Effect.provide(Reference.layer)),
  )

  it.effect("computes in doubles, and keeps state in float32", () =>
    Effect.gen(function* () {
      const s = G.state("s", [])
      const step = G.input("step", [])
      const program = yield* compile({
        name: "small steps",
        inputs: { step },
        state: { s: { tensor: s, next: G.add(s, step) } },
        outputs: { twice: G.sub(G.add(G.add(s, step), step), s) },
      })
      yield* program.write("s", Float32Array.of(1))
      // Below half a unit in the last place of a float32.
      program.feeds.step[0] = 2 ** -26
      for (let i = 0; i < 16; i++) yield* program.run
      assert.deepStrictEqual(program.results.twice, Float32Array.of(2 ** -25))
      assert.deepStrictEqual(yield* program.read("s"), Float32Array.of(1))
    }).pipe(Effect.scoped, Effect.provide(Reference.layer)),
  )

  it.effect("exchanges states that take each other's value", () =>
    Effect.gen(function* () {
      const [a, b] = [G.state("a", []), G.state("b", [])]
      const program = yield* compile({
        name: "swap",
        inputs: {},
        state: { a: { tensor: a, next: b }, b: { tensor: b, next: a } },
        outputs: {},
      })
      yield* program.write("a", Float32Array.of(1))
      yield* program.write("b", Float32Array.of(2))
      yield* program.run
      assert.deepStrictEqual([...(yield* program.read("a")), ...(yield* program.read("b"))], [2, 1])
    }).pipe(Effect.scoped, Effect.provide(Reference.layer)),
  )

  it.effect("names a state that does not exist, and the size of a state", () =>
    Effect.gen(function* () {
      const program = yield* compile(running())
      const missing = yield* Effect.flip(program.read("weights"))
      assert.instanceOf(missing, BackendError)
      assert.strictEqual(missing.message, 'there is no state "weights"')
      const short = yield* Effect.flip(program.write("total", Float32Array.of(1)))
      assert.strictEqual(short.message, 'state "total": expected 2 numbers, found 1')
    }).pipe(Effect.scoped, Effect.provide(Reference.layer)),
  )

  it.effect("rejects an inconsistent program with a GraphError", () =>
    Effect.gen(function* () {
      const x = G.input("x", [2])
      const error = yield* Effect.flip(compile({ name: "bad", inputs: {}, state: {}, outputs: { y: G.neg(x) } }))
      assert.instanceOf(error, GraphError)
      assert.strictEqual(error.message, 'bad: input "x" is used but not declared')
    }).pipe(Effect.scoped, Effect.provide(Reference.layer)),
  )
})

describe("reference, with minibatches", () => {
  /** Adds up the rows it sees, and stops after the first sum above a limit. */
  const summing = (limit?: number): ProgramSpec => {
    const x = G.input("x", [2, 3])
    const scale = G.input("scale", [])
    const total = G.state("total", [3])
    const next = G.add(total, G.mul(G.sum(x, 0), scale))
    return {
      name: "summing",
      inputs: { x, scale },
      state: { total: { tensor: total, next } },
      outputs: { first: G.slice(G.flatten(x), [0], [3]), sum: G.sum(next) },
      minibatches: {
        rows: 4,
        batch: 2,
        count: 3,
        gathered: ["x"],
        ...(limit === undefined ? {} : { continueWhile: G.lessEqual(G.sum(next), limit) }),
      },
    }
  }

  const indices = [3, 0, 1, 1, 2, 3]
  const fill = (program: { readonly feeds: Readonly<Record<string, { set: (data: ArrayLike<number>) => void }>> }) => {
    program.feeds.x.set([0, 0, 1, 10, 0, 1, 20, 0, 1, 30, 0, 1])
    program.feeds.scale.set([1])
    program.feeds.indices.set(indices)
  }

  it.effect("reads the rows of the index matrix, and stacks the outputs", () =>
    Effect.gen(function* () {
      const program = yield* compile(summing())
      assert.strictEqual(program.feeds.x.length, 12)
      assert.instanceOf(program.feeds.indices, Int32Array)
      fill(program)
      yield* program.run
      assert.strictEqual(program.iterations(), 3)
      assert.deepStrictEqual([...program.results.first], [30, 0, 1, 10, 0, 1, 20, 0, 1])
      assert.deepStrictEqual([...program.results.sum], [32, 54, 106])
      assert.deepStrictEqual(yield* program.read("total"), Float32Array.of(100, 0, 6))
    }).pipe(Effect.scoped, Effect.provide(Reference.layer)),
  )

  it.effect("stops after the first iteration in which continueWhile is false", () =>
    Effect.gen(function* () {
      const program = yield* compile(summing(50))
      fill(program)
      yield* program.run
      assert.strictEqual(program.iterations(), 2)
      assert.deepStrictEqual(program.results.sum.slice(0, 2), Float32Array.of(32, 54))
      assert.deepStrictEqual(yield* program.read("total"), Float32Array.of(50, 0, 4))
    }).pipe(Effect.scoped, Effect.provide(Reference.layer)),
  )
})
