/**
 * Compiles the programs of a Tinker server, which all its models share: the gradient of a loss, the log-probabilities of
 * targets, and the log-probabilities of all tokens. A model is the adapter that is given to each call.
 *
 * @example
 * ```ts
 * const programs = yield* makeTrainingPrograms({ config, weights, shape: { rank: 8, targets: Decoder.projections }, maxLength: 256 })
 * const { logProbabilities } = yield* programs.gradient(...gradientInputs)
 * ```
 */
import { Effect, Record, type Scope } from "effect"
import { attempt } from "../../../base/config/attempt.ts"
import * as Decoder from "../../../decoder/networks/Decoder.ts"
import { Backend, type BackendError, type Compiling, type Program } from "../../../tensor/backend/Backend.ts"
import { GraphError } from "../../../tensor/graph/GraphError.ts"
import { gradients } from "../../../tensor/graph/gradients.ts"
import { add, constant, flatten, gather, input, logSoftmax, mul, neg, reshape, sum } from "../../../tensor/graph/ops.ts"
import type { NamedTensors } from "../../../tensor/graph/Parameters.ts"
import type { ProgramSpec } from "../../../tensor/graph/Program.ts"
import type { Tensor } from "../../../tensor/graph/Tensor.ts"
import type { Datum, LossRequest } from "./Datum.ts"
import { columnNames, lossNames, slopeGraph } from "./lossFunctions.ts"
import { type WindowBatch, type WindowSize, windowSizes } from "./windows.ts"

/** The numbers of an adapter, as a program takes them. */
export interface AdapterRow {
  readonly row: Float32Array
  readonly scaling: number
}

interface TrainingProgramsOptions {
  readonly config: Decoder.DecoderConfig
  readonly weights: NamedTensors
  readonly shape: Decoder.AdapterShape
  /** The most tokens of an example. */
  readonly maxLength: number
}

export interface TrainingPrograms {
  readonly sizes: ReadonlyArray<WindowSize>
  /** Computes the log-probability of each target, at the index of its token in the batch. */
  readonly forward: (
    batch: WindowBatch,
    data: ReadonlyArray<TokensAndTargets>,
    adapter: AdapterRow,
  ) => Effect.Effect<Float32Array, BackendError>
  /** Computes the same, and the gradient of the loss. Both are valid until the next call. */
  readonly gradient: (
    batch: WindowBatch,
    request: LossRequest,
    adapter: AdapterRow,
  ) => Effect.Effect<{ readonly logProbabilities: Float32Array; readonly gradient: Float32Array }, BackendError>
  /** Computes the log-probabilities of all tokens after each token of one example, one row of the vocabulary each. */
  readonly distribution: (tokens: Int32Array, adapter: AdapterRow) => Effect.Effect<Float32Array, BackendError>
}

type TokensAndTargets = Pick<Datum, "tokens" | "targets">

type Build = (size: WindowSize) => ProgramSpec

/** Builds the part that all programs share: from tokens to the log-probabilities of all tokens, [rows · width, vocabulary]. */
const logProbabilityGraph = ({ config, shape }: TrainingProgramsOptions, { rows, width }: WindowSize) => {
  const weights = Decoder.statesOf(Decoder.parametersOf(config))
  const packed = Decoder.packedInputs(rows, width)
  const { adapter, scaling, adapt } = Decoder.oneAdapter(config, shape)
  const hidden = Decoder.hiddenStates(config, weights, packed, adapt)
  const flat = reshape(hidden, [rows * width, config.hiddenSize])
  const all = logSoftmax(Decoder.logitsOf(config, weights, flat))
  const { tokens, positions, ends } = packed
  return {
    all,
    adapter,
    inputs: { tokens, positions, ends, adapter, scaling },
    state: Record.map(weights, (tensor) => ({ tensor })),
  }
}

/** Selects the log-probability of each target, [rows · width]. */
const chosenBy = (all: Tensor, targets: Tensor, vocabSize: number): Tensor => {
  const firsts = constant(Int32Array.from({ length: all.shape[0] }, (_, token) => token * vocabSize))
  return gather(flatten(all), add(firsts, targets))
}

const targetsInput = ({ rows, width }: WindowSize): Tensor => input("targets", [rows * width], "i32")

const forwardSpec =
  (options: TrainingProgramsOptions): Build =>
  (size) => {
    const { all, inputs, state } = logProbabilityGraph(options, size)
    const targets = targetsInput(size)
    const logProbability = chosenBy(all, targets, options.config.vocabSize)
    return { name: "tinker.forward", inputs: { ...inputs, targets }, state, outputs: { logProbability } }
  }

const gradientSpec =
  (options: TrainingProgramsOptions): Build =>
  (size) => {
    const { all, adapter, inputs, state } = logProbabilityGraph(options, size)
    const targets = targetsInput(size)
    const logProbability_t = chosenBy(all, targets, options.config.vocabSize)
    const column = (name: string): Tensor => input(name, [size.rows * size.width])
    const columns = {
      weights: column("weights"),
      logprobs: column("logprobs"),
      advantages: column("advantages"),
      clipLow: column("clipLow"),
      clipHigh: column("clipHigh"),
    }
    const chosen = input("chosen", [lossNames.length])
    const beta = input("beta", [])
    const slope_t = slopeGraph({ columns, logProbability_t, chosen, beta })
    const [gradient] = gradients(neg(sum(mul(slope_t, logProbability_t))), [adapter])
    return {
      name: "tinker.gradient",
      inputs: { ...inputs, targets, ...columns, chosen, beta },
      state,
      outputs: { gradient, logProbability: logProbability_t },
    }
  }

const distributionSpec =
  (options: TrainingProgramsOptions): Build =>
  ({ width }) => {
    const { all, inputs, state } = logProbabilityGraph(options, { rows: 1, width })
    return { name: "tinker.distribution", inputs, state, outputs: { all } }
  }

/** Writes the tokens of a batch and the adapter into the inputs of a program. */
const feed = (
  { feeds }: Program,
  { size: { width }, placed }: WindowBatch,
  data: ReadonlyArray<Pick<Datum, "tokens">>,
  { row, scaling }: AdapterRow,
): void => {
  const { tokens, positions, ends } = feeds
  for (const array of [tokens, positions, ends]) array.fill(0)
  for (const { index, start } of placed) {
    const own = data[index].tokens
    const offset = start % width
    tokens.set(own, start)
    for (let at = 0; at < own.length; at++) {
      positions[start + at] = at
      ends[start + at] = offset + own.length
    }
  }
  feeds["adapter"].set(row)
  feeds["scaling"][0] = scaling
}

const feedTargets = ({ feeds }: Program, { placed }: WindowBatch, data: ReadonlyArray<TokensAndTargets>): void => {
  feeds["targets"].fill(0)
  for (const { index, start } of placed) feeds["targets"].set(data[index].targets, start)
}

const floats = (data: ArrayLike<number>): Float32Array =>
  data instanceof Float32Array ? data : Float32Array.from(data)

const nameOf = (kind: string, { rows, width }: WindowSize): string => `${kind}-${rows}x${width}`

/** Compiles the programs of all sizes, which share the weights of the base model. */
export const makeTrainingPrograms = Effect.fnUntraced(function* (
  options: TrainingProgramsOptions,
): Effect.fn.Return<TrainingPrograms, Effect.Error<Compiling<never>>, Backend | Scope.Scope> {
  const sizes = windowSizes(options.maxLength)
  const specs = yield* attempt((): Record<string, ProgramSpec> => {
    const builds = { forward: forwardSpec(options), gradient: gradientSpec(options) }
    const widths = new Set(sizes.map(({ width }) => width))
    return Object.fromEntries([
      ...Object.entries(builds).flatMap(([name, build]) =>
        sizes.map((size) => [nameOf(name, size), build(size)] as const),
      ),
      ...Array.from(
        widths,
        (width) => [`distribution-${width}`, distributionSpec(options)({ rows: 1, width })] as const,
      ),
    ])
  }, GraphError)
  const group = yield* (yield* Backend).compileAll(specs, { sharedFeeds: ["adapter", "scaling"] })
  const [first] = Object.values(group)
  for (const [name, { data }] of Object.entries(options.weights)) yield* first.write(name, data)
  return {
    sizes,
    forward: Effect.fnUntraced(function* (batch, data, adapter) {
      const program = group[nameOf("forward", batch.size)]
      feed(program, batch, data, adapter)
      feedTargets(program, batch, data)
      yield* program.run
      return floats(program.results["logProbability"])
    }),
    gradient: Effect.fnUntraced(function* (batch, request, adapter) {
      const program = group[nameOf("gradient", batch.size)]
      feed(program, batch, request.data, adapter)
      feedTargets(program, batch, request.data)
      const { feeds, results } = program
      for (const name of columnNames) {
        feeds[name].fill(0)
        for (const { index, start } of batch.placed) feeds[name].set(request.data[index].columns[name], start)
      }
      feeds["chosen"].fill(0)
      feeds["chosen"][lossNames.indexOf(request.loss)] = 1
      feeds["beta"][0] = request.beta
      yield* program.run
      return { logProbabilities: floats(results["logProbability"]), gradient: floats(results["gradient"]) }
    }),
    distribution: Effect.fnUntraced(function* (tokens, adapter) {
      const { width } = sizes.find((size) => size.width >= tokens.length) ?? sizes[sizes.length - 1]
      const program = group[`distribution-${width}`]
      feed(program, { size: { rows: 1, width }, placed: [{ index: 0, start: 0 }] }, [{ tokens }], adapter)
      yield* program.run
      return floats(program.results["all"])
    }),
  }
})
