/**
 * Compiles the programs that read samples by a model: one computes the log-probabilities of their tokens, another one the hidden
 * states that predict them.
 */
import { Effect, Record, type Scope, Semaphore } from "effect"
import { attempt } from "../../base/config/attempt.ts"
import * as Decoder from "../../decoder/networks/Decoder.ts"
import { Backend, type BackendError, type Compiling } from "../../tensor/backend/Backend.ts"
import { GraphError } from "../../tensor/graph/GraphError.ts"
import { input } from "../../tensor/graph/ops.ts"
import { countedTokens } from "../../rl/losses/tokenWeights.ts"
import type { NamedTensors } from "../../tensor/graph/Parameters.ts"
import type { ProgramSpec } from "../../tensor/graph/Program.ts"
import { makeMicroBatch, type MicroBatchShape } from "../batches/MicroBatch.ts"
import { unitsOf, write } from "../batches/packUnits.ts"
import type { TrainingSample } from "../batches/TrainingSample.ts"
import { feedPacked } from "../trainer/gradientProgram.ts"
import type { OwnWeights } from "../trainer/TrainedModel.ts"

interface ScoredModel {
  readonly config: Decoder.DecoderConfig
  readonly weights: NamedTensors
  /** The shape of the adapters that are passed to `score`; null for a model without an adapter. */
  readonly adapters: Decoder.AdapterShape | null
}

/** The number that a program computes for each token: its log-probability, or the hidden state after it. */
type Output = "logProbability" | "hidden"

export interface Scorer {
  /**
   * Computes the log-probability of each token of the samples that the mask selects; all others are 0. `own` replaces the
   * weights of the model, or is its adapter. Every sample has at most `width` tokens.
   */
  readonly score: (
    samples: ReadonlyArray<TrainingSample>,
    own?: OwnWeights,
  ) => Effect.Effect<ReadonlyArray<Float32Array>, BackendError>
}

const scoringSpec = (
  { config, adapters }: Pick<ScoredModel, "config" | "adapters">,
  { rows, width }: Pick<MicroBatchShape, "rows" | "width">,
  output: Output,
): ProgramSpec => {
  const weights = Decoder.statesOf(Decoder.parametersOf(config))
  const packed = Decoder.packedInputs(rows, width)
  const temperature = input("temperature_t", [rows, width])
  const own = adapters === null ? undefined : Decoder.oneAdapter(config, adapters)
  const hidden = Decoder.hiddenStates(config, weights, packed, own?.adapt)
  const computed =
    output === "hidden"
      ? hidden
      : Decoder.predictions(config, weights, hidden, { ...packed, temperature }).logProbability_t
  return {
    name: output === "hidden" ? "critic" : "teacher",
    inputs: {
      ...packed,
      temperature_t: temperature,
      ...(own === undefined ? {} : { adapter: own.adapter, scaling: own.scaling }),
    },
    state: Record.map(weights, (tensor) => ({ tensor })),
    outputs: { computed },
  }
}

/** The place of a token in a micro-batch. */
interface TokenPlace {
  readonly index: number
  /** The index of the token before it in its sample. */
  readonly before: number
  /** The results of the program for all tokens of the micro-batch. */
  readonly results: ArrayLike<number>
}

/** Is called for each token that the mask selects. `token` is its position in the sample. */
type Visit = (sample: TrainingSample, token: number, place: TokenPlace) => void

/**
 * Compiles a program for micro-batches of this shape, and returns the function that runs it. Several runs may share it: it reads
 * for one of them after another. It lives until the scope closes.
 */
const compileReading = Effect.fnUntraced(function* (
  { rows, width, block }: Omit<MicroBatchShape, "maxRuns">,
  { config, weights, adapters }: ScoredModel,
  output: Output,
) {
  const backend = yield* Backend
  const spec = yield* attempt(() => scoringSpec({ config, adapters }, { rows, width }, output), GraphError)
  const program = yield* backend.compile(spec)
  const { feeds, results } = program
  const writeAll = (all: NamedTensors) =>
    Effect.forEach(Object.entries(all), ([name, { data }]) => program.write(name, data), { discard: true })
  yield* writeAll(weights)
  const packing = { rows, width, block, maxRuns: 1, ranks: 1, mixing: "one-run" as const }
  const microBatch = makeMicroBatch(packing)
  const writeOwn = (own: OwnWeights | undefined) => {
    if (own === undefined) return Effect.void
    if (own._tag === "Whole") return writeAll(own.weights)
    return Effect.sync(() => {
      feeds["adapter"].set(own.row)
      feeds["scaling"][0] = own.scaling
    })
  }
  const { withPermit } = Semaphore.makeUnsafe(1)
  return Effect.fnUntraced(function* (
    samples: ReadonlyArray<TrainingSample>,
    own: OwnWeights | undefined,
    visit: Visit,
  ): Effect.fn.Return<void, BackendError> {
    yield* writeOwn(own)
    for (const unit of unitsOf(packing, samples, { normalisation: { type: "token_mean" } })) {
      write(packing, [{ run: 0, ...unit }], [microBatch])
      feedPacked(feeds, microBatch)
      yield* program.run
      for (const { sample, window, shared, start } of unit.samples) {
        for (let token = shared; token < sample.tokens.length; token++) {
          if (sample.mask[token] !== 1) continue
          const index = window * width + start + token - shared
          visit(sample, token, { index, before: microBatch.contexts[index], results: results["computed"] })
        }
      }
    }
  }, withPermit)
})

/** Compiles the program that computes log-probabilities. */
export const compileScorer = Effect.fnUntraced(function* (
  shape: Omit<MicroBatchShape, "maxRuns">,
  model: ScoredModel,
): Effect.fn.Return<Scorer, Effect.Error<Compiling<never>>, Backend | Scope.Scope> {
  const read = yield* compileReading(shape, model, "logProbability")
  return {
    score: Effect.fnUntraced(function* (samples, own) {
      const scores = new Map(samples.map(({ id, tokens }) => [id, new Float32Array(tokens.length)]))
      yield* read(samples, own, ({ id }, token, { index, results }) => {
        const score = scores.get(id)
        if (score !== undefined) score[token] = results[index]
      })
      return samples.map(({ id, tokens }) => scores.get(id) ?? new Float32Array(tokens.length))
    }),
  }
})

/** The features of the contexts in a sample. */
interface ContextFeatures {
  /** The features of the contexts before the tokens that the mask selects, one after another: the hidden states that predict them. */
  readonly before: Float32Array
  /** The features of the context after the last of these tokens. */
  readonly after: Float32Array
}

export interface FeatureReader {
  /** The number of features of a context. */
  readonly size: number
  /** Computes the hidden states of the contexts, by the ids of the samples. `own` replaces the weights of the model, or is its adapter. */
  readonly features: (
    samples: ReadonlyArray<TrainingSample>,
    own: OwnWeights | undefined,
  ) => Effect.Effect<ReadonlyMap<string, ContextFeatures>, BackendError>
}

/** Compiles the program that computes hidden states. */
export const compileFeatures = Effect.fnUntraced(function* (
  shape: Omit<MicroBatchShape, "maxRuns">,
  model: ScoredModel,
): Effect.fn.Return<FeatureReader, Effect.Error<Compiling<never>>, Backend | Scope.Scope> {
  const read = yield* compileReading(shape, model, "hidden")
  const size = model.config.hiddenSize
  return {
    size,
    features: Effect.fnUntraced(function* (samples, own) {
      const all = new Map(
        samples.map(({ id, mask }) => [
          id,
          { before: new Float32Array(countedTokens(mask) * size), after: new Float32Array(size) },
        ]),
      )
      const filled = new Map<string, number>()
      yield* read(samples, own, ({ id }, _, { index, before, results }) => {
        const at = filled.get(id) ?? 0
        const features = all.get(id)
        if (features === undefined) return
        for (let feature = 0; feature < size; feature++) {
          features.before[at + feature] = results[before * size + feature]
          // The tokens come in order, so that of the last one stays.
          features.after[feature] = results[index * size + feature]
        }
        filled.set(id, at + size)
      })
      return all
    }),
  }
})
