/**
 * Holds the adapter of one model while it is trained: its numbers, the sum of its gradients, and the optimiser's moments.
 * `encodeState` and `restoreState` convert it to files and back, bit for bit.
 */
import { Effect } from "effect"
import { attempt } from "../../../base/config/attempt.ts"
import { FormatError } from "../../../base/formats/FormatError.ts"
import * as Safetensors from "../../../base/formats/safetensors.ts"
import type { Stream } from "../../../base/rng/Rng.ts"
import { EngineError } from "../../../decoder/inference/EngineError.ts"
import * as Decoder from "../../../decoder/networks/Decoder.ts"
import { layout, type NamedArray, type NamedTensors, type ParameterLayout } from "../../../tensor/graph/Parameters.ts"
import { TrainerError } from "../../TrainerError.ts"
import type { AdamSettings, AdamSteps } from "../training/AdamSteps.ts"
import type { AdapterRow } from "../training/TrainingPrograms.ts"

/** The settings of a model's adapter. */
interface AdapterChoice {
  readonly rank: number
  readonly trainsAttention: boolean
  readonly trainsMlp: boolean
}

/** The strength of all adapters: the factor of their outputs is this number, divided by the rank. */
export const alpha = 32

export interface AdapterInTraining {
  readonly choice: AdapterChoice
  /** Tables for a single adapter: the numbers, and the two moments. */
  readonly numbers: Decoder.MultiLoRA
  readonly first: Decoder.MultiLoRA
  readonly second: Decoder.MultiLoRA
  readonly gradient: Float32Array
  /** The number of gradients in the sum. */
  summands: number
  /** The number of updates. */
  steps: number
}

const attentionProjections: ReadonlyArray<Decoder.Projection> = ["q_proj", "k_proj", "v_proj", "o_proj"]

/** Tells whether a projection belongs to attention, not to a feed-forward network. */
export const isOfAttention = (projection: Decoder.Projection): boolean => attentionProjections.includes(projection)

/** Tells whether a model's adapter changes a parameter. */
const isTrained = (name: string, { trainsAttention, trainsMlp }: AdapterChoice): boolean =>
  attentionProjections.some((projection) => name.includes(`.${projection}.`)) ? trainsAttention : trainsMlp

/**
 * Makes a new adapter, which changes nothing yet. Matrices of projections that are not trained are zeros: then their
 * gradients are zeros, too.
 */
export const makeAdapter = (
  config: Decoder.DecoderConfig,
  shape: Decoder.AdapterShape,
  choice: AdapterChoice,
  random: Stream,
): AdapterInTraining => {
  const options = { rank: choice.rank, alpha }
  const table = () => new Decoder.MultiLoRA(config, shape, 1)
  const [numbers, first, second] = [table(), table(), table()]
  numbers.reset(0, options, random)
  for (const [name, { data }] of Object.entries(numbers.namedParametersOf(0)))
    if (!isTrained(name, choice)) data.fill(0)
  for (const moments of [first, second]) {
    moments.reset(0, options, random)
    moments.row(0).fill(0)
  }
  return { choice, numbers, first, second, gradient: new Float32Array(numbers.size), summands: 0, steps: 0 }
}

/** Returns the places of an adapter's parameters in its row. */
export const adapterLayout = (config: Decoder.DecoderConfig, shape: Decoder.AdapterShape): ParameterLayout =>
  layout(Decoder.adapterParametersOf(config, shape))

export const rowOf = ({ numbers }: AdapterInTraining): AdapterRow => ({
  row: numbers.row(0),
  scaling: numbers.scalings[0],
})

/** Forgets the gradients since the last update. */
export const clearGradient = (adapter: AdapterInTraining): void => {
  adapter.gradient.fill(0)
  adapter.summands = 0
}

/** Returns a function that sets the numbers, the moments and the number of updates of now again. */
const undoing = (adapter: AdapterInTraining): (() => void) => {
  const { steps } = adapter
  const rows = [adapter.numbers, adapter.first, adapter.second].map((table) => table.row(0))
  const before = rows.map((row) => row.slice())
  return () => {
    rows.forEach((row, at) => row.set(before[at]))
    adapter.steps = steps
  }
}

/** An adapter with what is needed to update it. */
interface AdapterUpdate {
  readonly adapter: AdapterInTraining
  /** The name of the model, for messages. */
  readonly place: string
  readonly steps: AdamSteps
  readonly settings: AdamSettings
}

/**
 * Updates an adapter by the sum of its gradients. Returns the norm of the sum and a function that undoes the update. If it fails,
 * nothing has changed; it fails with a `TrainerError` if the client has to change its requests.
 */
export const updateAdapter = Effect.fnUntraced(function* ({ adapter, place, steps, settings }: AdapterUpdate) {
  const { numbers, first, second, gradient } = adapter
  if (adapter.summands === 0)
    return yield* TrainerError.at(place, "there is no gradient; send forward_backward before optim_step")
  const undo = undoing(adapter)
  const rows = { parameters: numbers.row(0), first: first.row(0), second: second.row(0) }
  const norm = yield* steps.step({ place, ...rows, steps: adapter.steps, gradient }, settings)
  adapter.steps++
  return { norm, undo }
})

const prefixed = (prefix: string, tensors: NamedTensors): ReadonlyArray<readonly [string, NamedArray]> =>
  Object.entries(tensors).map(([name, tensor]) => [`${prefix}.${name}`, tensor])

/** The file of an adapter's numbers and moments. */
export const stateFile = "state.safetensors"

/** Encodes the numbers and the moments of an adapter. */
export const encodeState = ({ numbers, first, second }: AdapterInTraining): Uint8Array =>
  Safetensors.encode(
    Object.fromEntries([
      ...prefixed("numbers", numbers.stateDictOf(0)),
      ...prefixed("first", first.stateDictOf(0)),
      ...prefixed("second", second.stateDictOf(0)),
    ]),
  )

/**
 * Sets what `encodeState` has encoded, and returns a function that undoes it. With `moments: false`, the moments become zeros.
 * Fails, and changes nothing, if the adapter is another one.
 */
export const restoreState = Effect.fnUntraced(function* (
  adapter: AdapterInTraining,
  bytes: Uint8Array,
  { steps, moments }: { readonly steps: number; readonly moments: boolean },
): Effect.fn.Return<() => void, TrainerError> {
  const refuse = ({ message }: { readonly message: string }) => TrainerError.at(stateFile, message)
  const tensors = yield* Effect.mapError(
    attempt(() => Safetensors.decode(bytes), FormatError),
    refuse,
  )
  const parts: Record<"numbers" | "first" | "second", Record<string, NamedArray>> = {
    numbers: {},
    first: {},
    second: {},
  }
  for (const [name, { shape, data }] of Object.entries(tensors)) {
    const [, part, own] = /^(numbers|first|second)\.(.+)$/s.exec(name) ?? []
    if ((part !== "numbers" && part !== "first" && part !== "second") || !(data instanceof Float32Array))
      return yield* TrainerError.at(stateFile, `tensor "${name}": the adapter has no such part of float32`)
    parts[part][own] = { shape, data }
  }
  const options = { rank: adapter.choice.rank, alpha }
  const undo = undoing(adapter)
  const setting = Effect.mapError(
    attempt(() => {
      adapter.numbers.load(0, options, parts.numbers)
      if (!moments) {
        for (const table of [adapter.first, adapter.second]) table.row(0).fill(0)
        return
      }
      adapter.first.load(0, options, parts.first)
      adapter.second.load(0, options, parts.second)
    }, EngineError),
    refuse,
  )
  yield* Effect.tapError(setting, () => Effect.sync(undo))
  adapter.steps = moments ? steps : 0
  return undo
})
