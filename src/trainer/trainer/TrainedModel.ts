/**
 * Holds the weights that a trainer changes: an adapter of the base model for each run, or all weights of the model for a
 * single run. The other parts of the trainer treat both in the same way.
 *
 * @example
 * ```ts
 * const model = makeTrainedModel({ config, weights, lora: { shape: { rank: 8, targets: ["q_proj", "v_proj"] }, alpha: 16 }, maxRuns: 8 })
 * model.begin(0, { rank: null, alpha: null }, Rng.stream(1, "adapter", "run_a"))
 * const parameters = model.namedParametersOf(0) // arrays that the optimiser changes in place
 * ```
 */
import { Effect, Record } from "effect"
import type { BackendError } from "../../tensor/backend/Backend.ts"
import type { NamedTensors } from "../../tensor/graph/Parameters.ts"
import { sizeOf } from "../../tensor/graph/Tensor.ts"
import * as Decoder from "../../decoder/networks/Decoder.ts"
import type { Stream } from "../../base/rng/Rng.ts"
import type { LoraConfig } from "../config/OrchestratorConfig.ts"
import type { GradientProgram } from "./gradientProgram.ts"

/** The adapters of all runs: the largest rank, the projections with adapters, and the default alpha. */
interface LoraSettings {
  readonly shape: Decoder.AdapterShape
  readonly alpha: number
}

/** A copy of a run's weights, as programs take them: its adapter, or all weights of the model. */
export type OwnWeights =
  | { readonly _tag: "Adapter"; readonly row: Float32Array; readonly scaling: number }
  | { readonly _tag: "Whole"; readonly weights: NamedTensors }

interface TrainedModelOptions {
  readonly config: Decoder.DecoderConfig
  /** The weights of the base model, by name. Without adapters, a run begins with a copy of them. */
  readonly weights: NamedTensors
  /** The adapters; null trains all weights of the model, for one run at a time. */
  readonly lora: LoraSettings | null
  /** The number of runs that can be trained at once; 1 without adapters. */
  readonly maxRuns: number
}

export interface TrainedModel {
  readonly config: Decoder.DecoderConfig
  readonly lora: LoraSettings | null
  /** The number of parameters that a run trains. */
  readonly size: number
  /**
   * Sets new weights for a run: an adapter that changes nothing yet, or a copy of the model's weights. Throws an
   * `EngineError`.
   */
  readonly begin: (index: number, lora: LoraConfig, random: Stream) => void
  /**
   * Sets saved weights for a run, which `stateDictOf` returned. Throws an `EngineError`, and changes nothing, if they do not
   * fit.
   */
  readonly load: (index: number, lora: LoraConfig, saved: NamedTensors) => void
  /** Removes a run's weights. */
  readonly end: (index: number) => void
  /** Returns the arrays of a run's weights, which an optimiser changes in place. */
  readonly namedParametersOf: (index: number) => NamedTensors
  /** Returns copies of a run's weights, in the form in which files hold them. */
  readonly stateDictOf: (index: number) => NamedTensors
  /** Returns a copy of a run's weights, as programs take them. */
  readonly ownWeightsOf: (index: number) => OwnWeights
  /** Returns the rank and alpha of a run's adapter; undefined without adapters. */
  readonly adapterOf: (index: number) => Decoder.AdapterOptions | undefined
  /** Reports that the arrays of `namedParametersOf` have changed, so that they are written into the programs again. */
  readonly touch: () => void
  /** Writes the current weights into a program, unless it has them already. */
  readonly writeTo: (program: GradientProgram) => Effect.Effect<void, BackendError>
}

/** Makes a model without runs. */
export const makeTrainedModel = (options: TrainedModelOptions): TrainedModel => {
  const { config, weights, lora } = options
  return lora === null ? wholeModel(config, weights) : adaptedModel({ ...options, lora })
}

/** Remembers which revision of the weights each program has. Programs that share their weights count as one. */
const revisions = () => {
  const written = new WeakMap<object, number>()
  let current = 0
  return {
    touch: () => void current++,
    /** Runs `all` if the program has no weights yet, then `changed` if it lacks the current revision. */
    bring: (
      program: GradientProgram,
      all: Effect.Effect<void, BackendError>,
      changed: Effect.Effect<void, BackendError>,
    ): Effect.Effect<void, BackendError> =>
      Effect.suspend(() => {
        const before = written.get(program.holder)
        if (before === current) return Effect.void
        written.set(program.holder, current)
        return before === undefined ? Effect.andThen(all, changed) : changed
      }),
  }
}

const adaptedModel = ({
  config,
  weights,
  lora,
  maxRuns,
}: TrainedModelOptions & { readonly lora: LoraSettings }): TrainedModel => {
  const adapters = new Decoder.MultiLoRA(config, lora.shape, maxRuns)
  const { touch, bring } = revisions()
  const optionsOf = ({ rank, alpha }: LoraConfig): Decoder.AdapterOptions => ({
    rank: rank ?? lora.shape.rank,
    alpha: alpha ?? lora.alpha,
  })
  return {
    config,
    lora,
    size: adapters.size,
    begin: (index, settings, random) => {
      adapters.reset(index, optionsOf(settings), random)
      touch()
    },
    load: (index, settings, saved) => {
      adapters.load(index, optionsOf(settings), saved)
      touch()
    },
    end: (index) => {
      adapters.clear(index)
      touch()
    },
    namedParametersOf: (index) => adapters.namedParametersOf(index),
    stateDictOf: (index) => adapters.stateDictOf(index),
    ownWeightsOf: (index) => ({
      _tag: "Adapter",
      row: adapters.row(index).slice(),
      scaling: adapters.scalings[index],
    }),
    adapterOf: (index) => adapters.optionsOf(index),
    touch,
    writeTo: (program) =>
      bring(
        program,
        program.writeBase(weights),
        Effect.suspend(() => program.writeAdapters(adapters.table, adapters.scalings)),
      ),
  }
}

const wholeModel = (config: Decoder.DecoderConfig, initial: NamedTensors): TrainedModel => {
  const shapes = Record.map(Decoder.parametersOf(config), ({ shape }) => shape)
  const trained = Record.map(shapes, (shape) => ({ shape, data: new Float32Array(sizeOf(shape)) }))
  const { touch, bring } = revisions()
  const fill = (values: NamedTensors): void => {
    for (const [name, shape] of Object.entries(shapes)) {
      const found = values[name]
      const expected = `parameter "${name}": expected shape [${shape.join(", ")}]`
      if (found === undefined) throw Decoder.adapterError(`${expected}, found none`)
      if (found.shape.join() !== shape.join())
        throw Decoder.adapterError(`${expected}, found [${found.shape.join(", ")}]`)
    }
    for (const [name, { data }] of Object.entries(trained)) data.set(values[name].data)
    touch()
  }
  const copy = (): NamedTensors => Record.map(trained, ({ shape, data }) => ({ shape, data: data.slice() }))
  return {
    config,
    lora: null,
    size: Object.values(shapes).reduce((sum, shape) => sum + sizeOf(shape), 0),
    begin: () => fill(initial),
    load: (_, __, saved) => fill(saved),
    end: () => fill(initial),
    namedParametersOf: () => trained,
    stateDictOf: copy,
    ownWeightsOf: () => ({ _tag: "Whole", weights: copy() }),
    adapterOf: () => undefined,
    touch,
    writeTo: (program) =>
      bring(
        program,
        program.writeReference(initial),
        Effect.suspend(() => program.writeBase(trained)),
      ),
  }
}
