/**
 * Encodes a policy as an HDF5 file in the layout of RLtools (a C++ library for reinforcement learning), so that RLtools
 * can load it. Returns the bytes; `policyFiles.ts` calls it, and `rl/train/stepFolder.ts` writes the file.
 *
 * @example
 * ```ts
 * const example = DenseActor.exampleOf(denseActor, Float32Array.of(1, 0, 0))
 * actorToHdf5(denseActor, { checkpointName: "pendulum", meta: { environment: { name: "pendulum" } }, example })
 * ```
 */
import type { Schema } from "effect"
import {
  type ActorActivation,
  checkExport,
  type DenseActor,
  type DenseLayer,
  type Example,
  outputSize,
  precisionOf,
} from "./DenseActor.ts"
import { refuse } from "../policy/PolicyError.ts"
import { type Hdf5Dataset, encode, type Hdf5Group } from "../../base/formats/hdf5/Hdf5.ts"

export interface Hdf5Options {
  readonly checkpointName: string
  /** The metadata, saved as JSON. RLtools itself writes `{ environment: … }`. */
  readonly meta: Schema.Json
  /** Inputs and their outputs, with which a program that loads the file can check itself. */
  readonly example: Example
}

/**
 * Returns the bytes of RLtools' `checkpoint.h5`. Its group `actor` is a sequence of layers; its group `example` holds
 * inputs and their outputs, of shape [1, rows, size]. Throws a `PolicyError` if RLtools has no such layer, and an
 * `FormatError` if HDF5 cannot hold the name.
 *
 * If all hidden layers have the same size and activation, the layers are written as one `mlp`; otherwise each layer
 * becomes one item of the sequence. RLtools' loader for browsers does not know GELU.
 */
export const actorToHdf5 = (actor: DenseActor, { checkpointName, meta, example }: Hdf5Options): Uint8Array => {
  const rows = checkExport(actor, example)
  // HDF5 reads an empty text as a missing one, and RLtools' loader fails if the name is missing.
  if (checkpointName === "") refuse("checkpointName: expected a name, found an empty text")
  const layers = [...standardize(actor), ...dense(actor), ...squash(actor)]
  return encode({
    children: {
      actor: {
        attributes: { checkpoint_name: checkpointName, meta: JSON.stringify(meta), type: "sequential" },
        children: { layers: numbered(layers) },
      },
      example: {
        children: {
          input: tensor([1, rows, actor.inputs], example.input),
          output: tensor([1, rows, outputSize(actor)], example.output),
        },
      },
    },
  })
}

const numbered = (groups: ReadonlyArray<Hdf5Group>): Hdf5Group => ({
  children: Object.fromEntries(groups.map((group, index) => [index, group])),
})

const tensor = (shape: ReadonlyArray<number>, data: Float32Array): Hdf5Dataset => ({
  shape,
  data,
  attributes: {
    type: "tensor",
    num_dims: String(shape.length),
    ...Object.fromEntries(shape.map((size, index) => [`dim_${index}`, String(size)])),
  },
})

const parameters = (shape: ReadonlyArray<number>, data: Float32Array): Hdf5Group => ({
  children: { parameters: tensor(shape, data) },
})

const standardize = ({ inputs, normalisation }: DenseActor): ReadonlyArray<Hdf5Group> => {
  if (normalisation === undefined) return []
  const mean = parameters([inputs], normalisation.mean)
  const precision = parameters([inputs], precisionOf(normalisation))
  return [{ attributes: { type: "standardize" }, children: { mean, precision } }]
}

const activationNames: Readonly<Record<ActorActivation, string | undefined>> = {
  identity: "IDENTITY",
  relu: "RELU",
  tanh: "TANH",
  sigmoid: "SIGMOID",
  gelu: "GELU",
  silu: undefined,
  softplus: undefined,
}

const denseGroup = ({ weights, biases, activation }: DenseLayer): Hdf5Group => {
  const outputs = biases.length
  const activationName = activationNames[activation] ?? refuse(`activation: RLtools has no ${activation}`)
  return {
    attributes: { activation_function: activationName, type: "dense" },
    children: {
      weights: parameters([outputs, weights.length / outputs], weights),
      biases: parameters([outputs], biases),
    },
  }
}

/** Returns the layers as one `mlp` if all hidden layers are alike, otherwise as one group per layer. */
const dense = ({ layers }: DenseActor): ReadonlyArray<Hdf5Group> => {
  const groups = layers.map(denseGroup)
  const hidden = layers.slice(0, -1)
  const areAlike = hidden.every(
    ({ biases, activation }) => biases.length === hidden[0].biases.length && activation === hidden[0].activation,
  )
  if (hidden.length === 0 || !areAlike) return groups
  const [first] = groups
  const last = groups[groups.length - 1]
  return [
    {
      attributes: { type: "mlp", num_layers: String(groups.length) },
      children: { input_layer: first, hidden_layers: numbered(groups.slice(1, -1)), output_layer: last },
    },
  ]
}

const squash = ({ head }: DenseActor): ReadonlyArray<Hdf5Group> =>
  head === "sample_and_squash" ? [{ attributes: { type: "sample_and_squash" }, children: {} }] : []
