/**
 * Implements the backend `auto`, which chooses between `wasm` and ONNX Runtime for each graph. `named-node.ts` makes
 * it.
 */
import { Effect } from "effect"
import type { ProgramSpec } from "../graph/Program.ts"
import { isElementwise, sizeOf, type Tensor, topologicalOrder } from "../graph/Tensor.ts"
import { rootsOf } from "../graph/validate.ts"
import type { Backend, BackendUnavailable, Compiling } from "./Backend.ts"

/**
 * Makes a backend that chooses for each graph, or for each group of graphs that share states: `wasm` for small graphs, where
 * calling a session (a model loaded by ONNX Runtime) takes longer than the arithmetic; a session for larger graphs, and for
 * those that `wasm` cannot compile.
 *
 * The choice follows from a model of the costs, not from measurements on this machine: the same graph gets the same backend
 * on every machine, and a run stays reproducible from its seed. If ONNX Runtime is not installed, all graphs run on `wasm`,
 * and `warnings` names the programs that would have run in a session.
 */
export const auto = (options: {
  readonly wasm: Backend["Service"]
  /** Makes the backend for sessions. It runs when the first graph needs a session, because loading ONNX Runtime is slow. */
  readonly session: Effect.Effect<Backend["Service"], BackendUnavailable>
}): Backend["Service"] => {
  let unavailable: BackendUnavailable | undefined
  /** The names of the programs that needed a session while ONNX Runtime was not installed. */
  const displaced: Array<string> = []
  /** Makes programs on the backend that is expected to be faster; if that one cannot compile them, on the other. */
  const choose = <A>(
    specs: ReadonlyArray<ProgramSpec>,
    compileOn: (service: Backend["Service"]) => Compiling<A>,
  ): Compiling<A> => {
    const session = Effect.tapError(options.session, (error) =>
      Effect.sync(() => {
        unavailable = error
        for (const { name } of specs) if (!displaced.includes(name)) displaced.push(name)
      }),
    )
    const onSession = Effect.flatMap(session, compileOn)
    const onWasm = compileOn(options.wasm)
    const [first, second] = prefersWasm(...specs) ? [onWasm, onSession] : [onSession, onWasm]
    return Effect.catchTag(first, ["GraphError", "BackendUnavailable"], () => second)
  }
  const compile: Backend["Service"]["compile"] = (spec) => choose([spec], (service) => service.compile(spec))
  const compileAll: Backend["Service"]["compileAll"] = (specs, groupOptions) =>
    choose(Object.values(specs), (service) => service.compileAll(specs, groupOptions))
  const warnings = Effect.gen(function* () {
    const wasmWarnings = yield* options.wasm.warnings ?? Effect.succeed([])
    if (unavailable === undefined) return wasmWarnings
    // "cpu" is the name of the backend that runs all graphs in ONNX Runtime.
    const moved = `on "wasm" instead of "cpu", with other last bits: ${displaced.join(", ")}`
    return [...wasmWarnings, `${moved}. ${unavailable.message}`]
  })
  const { improve } = options.wasm
  return { name: "auto", compile, compileAll, warnings, ...(improve === undefined ? {} : { improve }) }
}

/**
 * The model of the costs. `run` is the time of a call in microseconds, and `node` that of each node of the graph.
 * `multiplyAdds` and `elements` are speeds: how many multiply-adds, and how many elements of elementwise functions, are
 * computed in one microsecond. An array with more than `cache` elements does not stay in the caches until the next node
 * of a session reads it: `spilled` such elements take one more microsecond. On `wasm` this costs nothing, since it
 * computes large batches in bands that fit the caches. The numbers were fitted to 56 programs of six algorithms, with
 * networks of 32-32 to 512-512 units and minibatches of 1 to 32,768 rows, on one core of an AMD EPYC with 256-bit
 * vectors; the numbers for arrays that leave the caches were fitted to 25 updates of two networks, with 32 to 512 units
 * and 64 to 32,768 rows. The same numbers are used on every machine, so that the choice is the same everywhere.
 */
const session = { run: 10, node: 0.19, multiplyAdds: 82_000, elements: 4500, spilled: 4700, cache: 1 << 19 }
const wasm = { multiplyAdds: 40_000, elements: 14_000 }

/** Estimates how many microseconds a run of a program takes as WebAssembly. */
export const microsecondsOnWasm = (spec: ProgramSpec): number => costsOf(spec).onWasm

/**
 * Tells whether a run of each of the graphs is expected to take less time as a WebAssembly module than in sessions. Programs
 * that share states run on the same backend, so the sum of their times decides. Sessions take no states of int8.
 */
export const prefersWasm = (...specs: ReadonlyArray<ProgramSpec>): boolean => {
  if (specs.some(({ state }) => Object.values(state).some(({ tensor }) => tensor.dtype === "i8"))) return true
  const costs = specs.map(costsOf)
  const sum = (key: "onWasm" | "inSession"): number => costs.reduce((total, cost) => total + cost[key], 0)
  return sum("onWasm") <= sum("inSession")
}

/** The expected times of a run in microseconds. */
const costsOf = (spec: ProgramSpec): { readonly onWasm: number; readonly inSession: number } => {
  const tensors = topologicalOrder(rootsOf(spec))
  const total = (countOf: (tensor: Tensor) => number): number =>
    tensors.reduce((sum, tensor) => sum + countOf(tensor), 0)
  const multiplyAdds = total(multiplyAddsOf)
  const elements = total(({ op, shape }) => (isElementwise(op) ? sizeOf(shape) : 0))
  const nodes = tensors.filter(({ inputs }) => inputs.length > 0).length
  // Other ops with large results, such as those on a decoder's cache, change only a part of an array.
  const spilled = total(({ op, shape }) =>
    (isElementwise(op) || op.kind === "matmul") && sizeOf(shape) > session.cache ? sizeOf(shape) : 0,
  )
  const iterations = spec.minibatches?.count ?? 1
  const onWasm = iterations * (multiplyAdds / wasm.multiplyAdds + elements / wasm.elements)
  const inSession =
    session.run +
    iterations *
      (nodes * session.node +
        multiplyAdds / session.multiplyAdds +
        elements / session.elements +
        spilled / session.spilled)
  return { onWasm, inSession }
}

/** Counts the multiply-adds of a matrix product or a convolution; 0 for any other op. */
export const multiplyAddsOf = ({ op, inputs, shape }: Tensor): number => {
  switch (op.kind) {
    case "matmul": {
      const a = inputs[0].shape
      return sizeOf(shape) * a[a.length - (op.transposeA ? 2 : 1)]
    }
    case "conv2d":
      return (sizeOf(shape) * sizeOf(inputs[1].shape)) / inputs[1].shape[0]
    case "conv2dInputGrad":
      return (sizeOf(inputs[0].shape) * sizeOf(inputs[1].shape)) / inputs[1].shape[0]
    case "conv2dWeightGrad":
      return (sizeOf(inputs[1].shape) * sizeOf(shape)) / shape[0]
    default:
      return 0
  }
}
