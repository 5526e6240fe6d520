/** Compiles the program that computes the log-probabilities of samples' tokens by a model. */
import { Effect, Record, type Scope } from "effect"
import { attempt } from "../../base/config/attempt.ts"
import * as Decoder from "../../decoder/networks/Decoder.ts"
import { Backend, type BackendError, type Compiling } from "../../tensor/backend/Backend.ts"
import { GraphError } from "../../tensor/graph/GraphError.ts"
import { input } from "../../tensor/graph/ops.ts"
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

interface Scorer {
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
): ProgramSpec => {
  const weights = Decoder.statesOf(Decoder.parametersOf(config))
  const packed = Decoder.packedInputs(rows, width)
  const temperature = input("temperature_t", [rows, width])
  const own = adapters === null ? undefined : Decoder.oneAdapter(config, adapters)
  const hidden = Decoder.hiddenStates(config, weights, packed, own?.adapt)
  const { logProbability_t } = Decoder.predictions(config, weights, hidden, { ...packed, temperature })
  return {
    name: "teacher",
    inputs: {
      ...packed,
      temperature_t: temperature,
      ...(own === undefined ? {} : { adapter: own.adapter, scaling: own.scaling }),
    },
    state: Record.map(weights, (tensor) => ({ tensor })),
    outputs: { logProbability: logProbability_t },
  }
}

/** Compiles the program, for micro-batches of this shape. It lives until the scope closes. */
export const compileScorer = Effect.fnUntraced(function* (
  { rows, width, block }: Omit<MicroBatchShape, "maxRuns">,
  { config, weights, adapters }: ScoredModel,
): Effect.fn.Return<Scorer, Effect.Error<Compiling<never>>, Backend | Scope.Scope> {
  const backend = yield* Backend
  const spec = yield* attempt(() => scoringSpec({ config, adapters }, { rows, width }), GraphError)
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
  return {
    score: Effect.fnUntraced(function* (samples, own) {
      yield* writeOwn(own)
      const scores = new Map(samples.map(({ id, tokens }) => [id, new Float32Array(tokens.length)]))
      for (const unit of unitsOf(packing, samples, { normalisation: { type: "token_mean" } })) {
        write(packing, [{ run: 0, ...unit }], [microBatch])
        feedPacked(feeds, microBatch)
        yield* program.run
        const all = results["logProbability"]
        for (const { sample, window, shared, start } of unit.samples) {
          const own = scores.get(sample.id)
          for (let at = shared; own !== undefined && at < own.length; at++)
            if (sample.mask[at] === 1) own[at] = all[window * width + start + at - shared]
        }
      }
      return samples.map(({ id, tokens }) => scores.get(id) ?? new Float32Array(tokens.length))
    }),
  }
})
