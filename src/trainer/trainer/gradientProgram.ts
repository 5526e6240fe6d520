/**
 * Builds and runs the program that computes the gradient of one micro-batch: the forward pass of a decoder, the loss of an
 * objective, and backpropagation to the adapters of all runs or, without adapters, to all weights. The program does not
 * change weights: the trainer adds up the gradients, and the runs' optimisers apply the sums.
 *
 * @example
 * ```ts
 * const program = yield* compileGradient({ config, rows: 4, width: 256, block: 32, mixing, adapters: { shape, maxRuns: 8 } }, objective)
 * yield* program.writeBase(weights)
 * yield* program.writeAdapters(adapters.table, adapters.scalings)
 * yield* program.run(microBatch)
 * program.gradientOf(3) // the gradient of the adapter of run 3
 * ```
 */
import { Effect, Record } from "effect"
import { Backend, type BackendError, type Compiling, type Program } from "../../tensor/backend/Backend.ts"
import { attempt } from "../../base/config/attempt.ts"
import { GraphError } from "../../tensor/graph/GraphError.ts"
import { gradients } from "../../tensor/graph/gradients.ts"
import { concat, flatten, input, reshape, scatterAdd, sum } from "../../tensor/graph/ops.ts"
import type { NamedTensors } from "../../tensor/graph/Parameters.ts"
import type { ProgramSpec } from "../../tensor/graph/Program.ts"
import type { Tensor } from "../../tensor/graph/Tensor.ts"
import { columnsOf, type MetricSums, objectiveGraph, type TokenObjective } from "../../rl/losses/Losses.ts"
import * as Decoder from "../../decoder/networks/Decoder.ts"
import type { MicroBatch } from "../batches/MicroBatch.ts"
import type { Mixing } from "../batches/packUnits.ts"
import type { ReplayedExperts } from "../batches/routerReplay.ts"

/** The sizes of the programs of a trainer. */
export interface GradientShape {
  readonly config: Decoder.DecoderConfig
  /** The number of windows of a micro-batch. */
  readonly rows: number
  /** The number of tokens of a window. */
  readonly width: number
  /** The number of tokens of a block, which all belong to one adapter. */
  readonly block: number
  /** Whether all tokens of a micro-batch belong to one run, which makes its gradient cheaper, or to several. */
  readonly mixing: Mixing
  /** The adapters that are trained; null trains all weights of the model, for one run. */
  readonly adapters: { readonly shape: Decoder.AdapterShape; readonly maxRuns: number } | null
  /** The sizes of the model's experts, if the programs replay the routers that sampled. */
  readonly replayed?: ReplayedExperts | undefined
}

export interface GradientProgram {
  readonly name: string
  /** The device that runs the program, such as `wasm`. */
  readonly device: string
  /**
   * Identifies the memory of the weights: programs with the same holder share the weights that are written into one of them.
   */
  readonly holder: object
  /** Replaces the weights of the model. */
  readonly writeBase: (weights: NamedTensors) => Effect.Effect<void, BackendError>
  /** Replaces the weights of the reference model of the KL term. With adapters, the reference is the base model. */
  readonly writeReference: (weights: NamedTensors) => Effect.Effect<void, BackendError>
  /**
   * Replaces all adapters (one row of the table each) and their factors alpha / rank. Call it again after each change of
   * these arrays. A program for micro-batches of one run keeps the arrays, and copies only the adapter that it needs. Does
   * nothing without adapters.
   */
  readonly writeAdapters: (table: Float32Array, scalings: Float32Array) => Effect.Effect<void, BackendError>
  /** The device that runs the program of the reference model; undefined if the objective has no KL term. */
  readonly referenceDevice: string | undefined
  /**
   * Computes the gradient of a micro-batch. The functions below return its results until the next call. Without
   * `referenceLogProbabilities`, the program computes these, too.
   */
  readonly run: (microBatch: MicroBatch, referenceLogProbabilities?: Float32Array) => Effect.Effect<void, BackendError>
  /**
   * Returns the gradient of the adapter of a run that has tokens in the micro-batch. Without adapters, returns the gradient
   * of all weights, in the order of `parametersOf`.
   */
  readonly gradientOf: (run: number) => Float32Array
  /** Returns the loss of a run in the last micro-batch: its share of the loss of the run's whole step. */
  readonly lossOf: (run: number) => number
  /** Returns sums over those tokens of a run in the last micro-batch that the mask selects; see `Losses.meanMetrics`. */
  readonly sumsOf: (run: number) => MetricSums<number>
}

/** Maps the inputs of the program that an objective needs to the arrays of a micro-batch. */
export const columnArrays = {
  advantage_t: "advantages",
  inferenceLogProbability_t: "logprobs",
  sequence_t: "sequences",
} as const satisfies Record<string, keyof MicroBatch>

/** The input for the log-probabilities of the reference model, which another program computes. */
const referenceColumn = "referenceLogProbability_t"

/**
 * Copies the tokens of a micro-batch, and how they were sampled, to the inputs of a program: if it replays routers, also the
 * experts.
 */
export const feedPacked = (feeds: Program["feeds"], microBatch: MicroBatch): void => {
  for (const name of ["tokens", "positions", "contexts", "ends"] as const) feeds[name].set(microBatch[name])
  feeds["temperature_t"].set(microBatch.temperatures)
  feeds["experts"]?.set(microBatch.experts)
}

type Compiled<A> = Effect.Effect<A, Effect.Error<Compiling<never>>, Backend | Effect.Services<Compiling<never>>>

const hasReference = (objective: TokenObjective): boolean => columnsOf(objective).includes(referenceColumn)

/**
 * Compiles the gradient program of an objective. If the objective has a KL term, also compiles the program of the reference
 * model.
 */
export const compileGradient = Effect.fnUntraced(function* (
  shape: GradientShape,
  objective: TokenObjective,
): Effect.fn.Return<GradientProgram, Effect.Error<Compiled<never>>, Effect.Services<Compiled<never>>> {
  if (shape.adapters !== null && hasReference(objective)) return (yield* compileTogether(shape, [objective]))[0]
  const backend = yield* Backend
  const specs = yield* attempt(
    () => ({ gradient: gradientSpec(shape, objective), reference: referenceSpec(shape) }),
    GraphError,
  )
  const gradient = yield* backend.compile(specs.gradient)
  const reference = hasReference(objective) ? yield* backend.compile(specs.reference) : undefined
  return programOf(shape, { gradient, reference, holder: gradient, kept: noAdapters() })
})

/**
 * Compiles the programs of several objectives, for runs with adapters. All programs share the weights of the base model, also
 * as the reference model, which is the base model without adapters. On `wasm` they also share the memory for temporary
 * values.
 */
export const compileGradients = (
  shape: GradientShape,
  objectives: ReadonlyArray<TokenObjective>,
): Compiled<ReadonlyArray<GradientProgram>> =>
  shape.adapters === null || objectives.length === 1
    ? Effect.forEach(objectives, (objective) => compileGradient(shape, objective))
    : compileTogether(shape, objectives)

const compileTogether = Effect.fnUntraced(function* (
  shape: GradientShape,
  objectives: ReadonlyArray<TokenObjective>,
): Effect.fn.Return<ReadonlyArray<GradientProgram>, Effect.Error<Compiled<never>>, Effect.Services<Compiled<never>>> {
  const backend = yield* Backend
  const specs = yield* attempt((): Record<string, ProgramSpec> => {
    const all = objectives.map((objective, at) => [`gradient-${at}`, gradientSpec(shape, objective)] as const)
    return Object.fromEntries(objectives.some(hasReference) ? [...all, ["reference", referenceSpec(shape)]] : all)
  }, GraphError)
  const sharedFeeds = hasOneAdapter(shape) ? ["adapter", "scaling"] : ["scalings"]
  const group = yield* backend.compileAll(specs, { sharedFeeds })
  const kept = noAdapters()
  return objectives.map((objective, at) => {
    const reference = hasReference(objective) ? group["reference"] : undefined
    return programOf(shape, { gradient: group[`gradient-${at}`], reference, holder: group, kept })
  })
})

/** The adapters of all runs that were last written to any program of a group. */
interface KeptAdapters {
  table: Float32Array
  scalings: Float32Array
}

const noAdapters = (): KeptAdapters => ({ table: new Float32Array(0), scalings: new Float32Array(0) })

interface Parts {
  readonly gradient: Program
  readonly reference: Program | undefined
  readonly holder: object
  readonly kept: KeptAdapters
}

/** Tells whether a program gets only one adapter instead of the table of all adapters. */
const hasOneAdapter = ({ adapters, mixing }: GradientShape): boolean => adapters !== null && mixing === "one-run"

const programOf = (shape: GradientShape, { gradient, reference, holder, kept }: Parts): GradientProgram => {
  const { rows, width, block, adapters } = shape
  /** The number of runs whose results the program returns: all of them, or 1 if a micro-batch has only one run. */
  const places = adapters === null || hasOneAdapter(shape) ? 1 : adapters.maxRuns
  const writeAll = (program: Program, weights: NamedTensors) =>
    Effect.forEach(Object.entries(weights), ([name, { data }]) => program.write(name, data), { discard: true })
  const all = gradient.results["gradient"]
  const size = all.length / places
  const { gradient: _, losses, ...sums } = gradient.results
  const placeOf = (run: number): number => (places === 1 ? 0 : run)
  /** Copies to the inputs the adapters of the micro-batch's tokens. */
  const feedAdapters = ({ loraNumTokens }: MicroBatch): void => {
    if (adapters === null) return
    const tokens = rows * width
    const { feeds } = gradient
    if (!hasOneAdapter(shape))
      return void feeds["blockAdapters"].set(Decoder.blockAdaptersOf({ loraNumTokens, tokens, block }))
    const [run] = Decoder.blockAdaptersOf({ loraNumTokens, tokens, block: tokens })
    feeds["adapter"].set(kept.table.subarray(run * size, (run + 1) * size))
    feeds["scaling"][0] = kept.scalings[run]
  }
  return {
    name: gradient.name,
    device: gradient.device,
    holder,
    writeBase: (weights) => writeAll(gradient, weights),
    writeReference: (weights) =>
      adapters !== null || reference === undefined ? Effect.void : writeAll(reference, weights),
    writeAdapters: (table, scalings) =>
      Effect.suspend(() => {
        if (adapters === null) return Effect.void
        if (hasOneAdapter(shape)) {
          Object.assign(kept, { table, scalings })
          return Effect.void
        }
        gradient.feeds["scalings"].set(scalings)
        return gradient.write("adapters", table)
      }),
    referenceDevice: reference?.device,
    run: Effect.fnUntraced(function* (microBatch, referenceLogProbabilities) {
      feedPacked(gradient.feeds, microBatch)
      gradient.feeds["weight_t"].set(microBatch.weights)
      for (const [column, array] of Object.entries(columnArrays)) gradient.feeds[column]?.set(microBatch[array])
      feedAdapters(microBatch)
      if (reference !== undefined) {
        if (referenceLogProbabilities === undefined) {
          feedPacked(reference.feeds, microBatch)
          yield* reference.run
        }
        gradient.feeds[referenceColumn].set(referenceLogProbabilities ?? reference.results["logProbability"])
      }
      yield* gradient.run
    }),
    gradientOf: (run) =>
      all instanceof Float32Array ? all.subarray(placeOf(run) * size, (placeOf(run) + 1) * size) : new Float32Array(0),
    lossOf: (run) => losses[placeOf(run)],
    sumsOf: (run) => ({ tokens: 0, ...Record.map(sums, (all) => all[placeOf(run)]) }),
  }
}

/** The part of the gradient's graph that depends on how adapters are assigned to tokens. */
interface Routed extends Pick<ProgramSpec, "inputs" | "state"> {
  readonly adapt?: Decoder.Adapt
  /** The tensor of the trained parameters; undefined if these are all weights. */
  readonly trained?: Tensor
  /** Sums values of tokens by run. */
  readonly total: (x_t: Tensor) => Tensor
}

const routedBy = (shape: GradientShape): Routed => {
  const { config, rows, width, block, adapters } = shape
  if (adapters === null) return { inputs: {}, state: {}, total: (x_t) => sum(x_t) }
  if (hasOneAdapter(shape)) {
    const { adapter, scaling, adapt } = Decoder.oneAdapter(config, adapters.shape)
    return { inputs: { adapter, scaling }, state: {}, adapt, trained: adapter, total: (x_t) => sum(x_t) }
  }
  const blocks = (rows * width) / block
  const routing = { shape: adapters.shape, adapters: adapters.maxRuns, blocks }
  const { table, blockAdapters, scalings, adapt } = Decoder.routedAdapters(config, routing)
  return {
    inputs: { blockAdapters, scalings },
    state: { adapters: { tensor: table } },
    adapt,
    trained: table,
    // All tokens of a block belong to one run.
    total: (x_t) => scatterAdd(blockAdapters, sum(reshape(x_t, [blocks, block]), 1), adapters.maxRuns),
  }
}

const gradientSpec = (shape: GradientShape, objective: TokenObjective): ProgramSpec => {
  const { config, rows, width, replayed } = shape
  const weights = Decoder.statesOf(Decoder.parametersOf(config))
  const packed = Decoder.packedInputs(rows, width, replayed && config)
  const column = (name: string): Tensor => input(name, [rows, width], name === "sequence_t" ? "i32" : "f32")
  const columns = Object.fromEntries(
    ["temperature_t", "weight_t", ...columnsOf(objective)].map((name) => [name, column(name)]),
  )
  const { inputs, state, adapt, trained, total } = routedBy(shape)
  const hidden = Decoder.hiddenStates(config, weights, packed, adapt)
  const { logProbability_t, entropy_t } = Decoder.predictions(config, weights, hidden, {
    ...packed,
    temperature: columns["temperature_t"],
  })
  const { loss, losses, metrics } = objectiveGraph(
    objective,
    { ...columns, logProbability_t, entropy_t, weight_t: columns["weight_t"] },
    { total },
  )
  const slopes = gradients(loss, trained === undefined ? Object.values(weights) : [trained])
  return {
    name: `${objective.type}.gradient`,
    inputs: { ...packed, ...columns, ...inputs },
    state: { ...Record.map(weights, (tensor) => ({ tensor })), ...state },
    outputs: { gradient: concat(slopes.map(flatten)), losses, ...metrics },
  }
}

/** Describes the program that computes the log-probabilities of the model without adapters. */
export const referenceSpec = ({
  config,
  rows,
  width,
  replayed,
}: Pick<GradientShape, "config" | "rows" | "width" | "replayed">): ProgramSpec => {
  const weights = Decoder.statesOf(Decoder.parametersOf(config))
  const packed = Decoder.packedInputs(rows, width, replayed && config)
  const temperature = input("temperature_t", [rows, width])
  const hidden = Decoder.hiddenStates(config, weights, packed)
  const { logProbability_t } = Decoder.predictions(config, weights, hidden, { ...packed, temperature })
  return {
    name: "reference",
    inputs: { ...packed, temperature_t: temperature },
    state: Record.map(weights, (tensor) => ({ tensor })),
    outputs: { logProbability: logProbability_t },
  }
}
