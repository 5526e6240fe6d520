/**
 * Checks that two ways to compile WebAssembly modules give the same bits: it compiles one program both ways, runs both
 * modules and compares their results. `wide-node.ts` calls it before it compiles the first module to wider vectors.
 *
 * The program is small and has a kernel of each kind: matrix products whose sizes are not multiples of the vectors'
 * size; sums over rows and over columns; every elementwise function of f32, i32 and bool; minibatches, whose rows are
 * gathered by index; gradients; and Adam. Its inputs include ±∞, ±0, subnormal numbers and NaN.
 */
import { Effect } from "effect"
import { gradients } from "../graph/gradients.ts"
import * as G from "../graph/ops.ts"
import { adam, clipGlobalNorm } from "../graph/optimisers.ts"
import { indicesFeed, type ProgramSpec } from "../graph/Program.ts"
import { simplify } from "../graph/simplify.ts"
import { type CompiledModule, compile, type ArrayAddress } from "../graph/wasm/compile.ts"
import type { Lanes } from "../graph/wasm/function.ts"
import { controlBytes } from "../graph/wasm/slices.ts"
import type { Tensor } from "../graph/Tensor.ts"
import type { BackendUnavailable, TensorData } from "./Backend.ts"
import { instantiate, type NativeCompiler, type NativeFunctions, plainModules, viewOf } from "./wasmModules.ts"

/** Compiles the bytes of a WebAssembly module. */
type Compile = (bytes: Uint8Array<ArrayBuffer>) => object

/** Describes the first difference between the results of two compilers, as a part of a sentence; undefined if equal. */
export const differenceBetween = (usual: Compile, other: Compile): string | undefined => {
  const compiled = checkModule({ lanes: 8 })
  const resultsBy = (compileModule: Compile) =>
    resultsOf(compiled, instantiate(compileModule(compiled.bytes), compiled))
  return differenceOf(resultsBy(usual), resultsBy(other))
}

/** Describes the first difference between the results of WebAssembly and of a native compiler; undefined if equal. */
export const nativeDifference = (
  compileNative: NativeCompiler,
  options: { readonly lanes: Lanes },
): Effect.Effect<string | undefined, BackendUnavailable> =>
  Effect.gen(function* () {
    const compiled = checkModule(options)
    const module = plainModules.module(compiled.bytes)
    const expected = resultsOf(compiled, instantiate(module, compiled))
    const { memory } = instantiate(module, compiled)
    const { functions } = yield* compileNative(compiled, memory.buffer)
    return differenceOf(expected, resultsOf(compiled, { memory, functions: { program: functions["program"] } }))
  })

/**
 * Describes the first difference between the results of WebAssembly and of a library's functions, for programs with the memory
 * of a run; undefined if equal. The memory is copied.
 */
export const differenceOn = (
  content: Uint8Array,
  compiled: CompiledModule,
  functionsIn: (memory: ArrayBufferLike) => Effect.Effect<NativeFunctions, BackendUnavailable>,
): Effect.Effect<string | undefined, BackendUnavailable> =>
  Effect.gen(function* () {
    const module = plainModules.module(compiled.bytes)
    const [one, other] = [instantiate(module, compiled), instantiate(module, compiled)]
    for (const { memory } of [one, other]) {
      new Uint8Array(memory.buffer).set(content)
      new Uint8Array(memory.buffer).set(compiled.constants.bytes, compiled.constants.address)
    }
    const { control } = compiled.shared?.division ?? {}
    // Threads that do not exist here may have left their numbers there.
    if (control !== undefined)
      for (const { memory } of [one, other]) new Uint8Array(memory.buffer).fill(0, control, control + controlBytes)
    const native = (yield* functionsIn(other.memory.buffer)).functions
    for (const [name, { results }] of Object.entries(compiled.programs)) {
      for (const { prepare, run } of [one.functions[name], native[name]]) {
        prepare()
        run()
      }
      const read = ({ memory }: Pick<typeof one, "memory">): Results =>
        new Map(Object.entries({ ...results, ...compiled.state }).map(([key, at]) => [key, viewOf(memory.buffer, at)]))
      const difference = differenceOf(read(one), read(other))
      if (difference !== undefined) return difference
    }
    return undefined
  })

/** Compiles the check program. */
export const checkModule = (options: { readonly lanes: Lanes }) => compile(simplify(checkProgram()), options)

type Results = ReadonlyMap<string, TensorData>

const differenceOf = (expected: Results, actual: Results): string | undefined => {
  for (const [name, values] of expected) {
    const at = values.findIndex((value, index) => !Object.is(value, actual.get(name)?.[index]))
    if (at >= 0) return `in a check, element ${at} of "${name}" was ${actual.get(name)?.[at]} instead of ${values[at]}`
  }
  return undefined
}

const [batch, count, rows] = [23, 3, 40]
const [observed, hidden, actions] = [5, 24, 18]
/** The length of `a`, `b`, `i` and `j`: two blocks of eight 4-element vectors, one such vector, and a part of one. */
const length = 71

/** Makes the check program. Its outputs include the result of each elementwise function. */
export const checkProgram = (): ProgramSpec => {
  const x = G.input("x", [batch, observed])
  const label = G.input("label", [batch], "i32")
  const a = G.input("a", [length])
  const b = G.input("b", [length])
  const i = G.input("i", [length], "i32")
  const j = G.input("j", [length], "i32")
  const sizes = [observed * hidden, hidden, hidden * hidden, hidden * actions]
  const size = sizes.reduce((sum, one) => sum + one, 0)
  const theta = G.state("theta", [size])
  const [first, bias, second, third] = G.split(theta, sizes)
  const weights = [first, bias, second, third]

  const inner = G.tanh(G.add(G.matmul(x, G.reshape(first, [observed, hidden])), bias))
  const outer = G.relu(G.matmul(inner, G.reshape(second, [hidden, hidden])))
  const logits = G.matmul(outer, G.reshape(third, [hidden, actions]))
  const chosen = G.sum(G.mul(G.logSoftmax(logits), G.oneHot(label, actions)), 1)
  const loss = G.sub(G.mean(G.square(logits)), G.mean(chosen))
  const slopes = gradients(loss, weights)
  const slope = G.concat(slopes.map((one) => G.flatten(one)))
  const { moments, next } = adam({ size, learningRate: 0.01, epsilon: 1e-5 }).update(theta, clipGlobalNorm(slope, 0.5))

  const isLess = G.less(a, b)
  const functions = {
    ...mapped([G.neg, G.abs, G.sign, G.exp, G.log, G.sqrt, G.reciprocal, G.sin, G.tanh, G.sigmoid], [a]),
    ...mapped([G.relu, G.floor], [a]),
    ...mapped([G.add, G.sub, G.mul, G.div, G.pow, G.minimum, G.maximum, G.lessEqual, G.equal], [a, b]),
    clip: G.clip(a, -1, 1),
    where: G.where(isLess, a, b),
    and: G.and(isLess, G.not(G.greater(a, G.constant(0)))),
    integers: G.where(G.less(i, j), G.add(i, G.mul(j, j)), G.sub(G.minimum(i, j), G.maximum(i, j))),
    toInteger: G.cast(G.clip(b, -1e6, 1e6), "i32"),
    toFloat: G.add(G.cast(i, "f32"), G.cast(G.notEqual(i, j), "f32")),
    running: G.cumSum(logits, 0),
    runningBack: G.cumSum(logits, 1, { reverse: true, exclusive: true }),
    largest: G.max(inner, 0),
    least: G.min(inner, 1),
    transposed: G.exp(G.transpose(inner)),
    // A loop of four steps, which GCC 12 gets wrong if it may choose the counters.
    corner: G.mul(G.transpose(G.reshape(G.slice(b, [0], [16]), [4, 4])), 2),
    whole: G.sum(inner),
  }
  return {
    name: "check of widened kernels",
    inputs: { x, label, a, b, i, j },
    state: { theta: { tensor: theta, next }, ...moments },
    outputs: { loss, logits, slope, ...functions },
    minibatches: { rows, batch, count, gathered: ["x", "label"] },
  }
}

/** The special numbers among the inputs of the elementwise functions; the other inputs are ordinary numbers. */
const special = [0, -0, Infinity, -Infinity, NaN, 1e-40, -1e-40, 3.4e38, 0.5, -0.5]

/** Returns `size` numbers between −2 and 2 that look random. The same seed always gives the same numbers. */
const numbers = (size: number, seed: number): ReadonlyArray<number> => {
  let word = seed
  return Array.from({ length: size }, () => {
    word = (Math.imul(word, 1664525) + 1013904223) >>> 0
    return word / 2 ** 30 - 2
  })
}

/** Returns the results and states after three runs of the program's module, compiled in one way. */
const resultsOf = (
  module: CompiledModule<"program">,
  { functions, memory }: Pick<ReturnType<typeof instantiate<"program">>, "functions" | "memory">,
): Results => {
  const { state } = module
  const { feeds, results } = module.programs.program
  const { prepare, run } = functions.program
  const view = (place: ArrayAddress): TensorData => viewOf(memory.buffer, place)
  const fill = (place: ArrayAddress, seed: number, change: (value: number, index: number) => number): void =>
    view(place).set(numbers(place.length, seed).map(change))
  const whole = (value: number): number => Math.round(1000 * value)
  fill(feeds.x, 1, (value) => value)
  fill(feeds.label, 2, (value) => Math.floor((value + 2) * 4))
  // Every second element of `a` and every third element of `b` is a special number.
  fill(feeds.a, 3, (value, index) => (index % 2 === 0 ? value : special[(index >> 1) % special.length]))
  fill(feeds.b, 4, (value, index) => (index % 3 > 0 ? value : special[(index / 3) % special.length]))
  fill(feeds.i, 5, whole)
  fill(feeds.j, 6, (value, index) => (index % 5 === 0 ? index : whole(value)))
  fill(feeds[indicesFeed], 7, (value) => Math.floor((value + 2) * (rows / 4)))
  fill(state.theta, 8, (value) => value / 4)
  prepare()
  for (let times = 0; times < 3; times++) run()
  return new Map(Object.entries({ ...results, ...state }).map(([name, place]) => [name, view(place)]))
}

/** Applies each function to the same inputs; returns the results by the names of the functions. */
const mapped = <A extends ReadonlyArray<Tensor>>(
  functions: ReadonlyArray<(...inputs: A) => Tensor>,
  inputs: A,
): Readonly<Record<string, Tensor>> =>
  Object.fromEntries(
    functions.map((apply) => {
      const tensor = apply(...inputs)
      return ["fn" in tensor.op ? tensor.op.fn : tensor.op.kind, tensor]
    }),
  )
