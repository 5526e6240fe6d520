/**
 * HDF5 files: groups, float32 datasets and attributes that are texts, and a policy laid out in them as RLtools does, so
 * that its loaders take it.
 *
 * @example
 * ```ts
 * encode({ attributes: { unit: "m" }, children: { lengths: { shape: [2], data: Float32Array.of(1, 2) } } })
 * actorToHdf5(actor, { checkpointName: "pendulum", meta: { environment: { name: "pendulum" } }, example })
 * ```
 */
import type { Schema } from "effect"
import {
  type Activation,
  checkExport,
  type DenseActor,
  type DenseLayer,
  type Example,
  outputSize,
  precisionOf,
} from "./DenseActor.ts"
import { complain } from "./ExportError.ts"
import { type Dataset, encode, type Group } from "./hdf5File.ts"

export { ExportError } from "./ExportError.ts"
export { type Attributes, type Dataset, encode, type Group, type Node } from "./hdf5File.ts"

export interface Hdf5Options {
  readonly checkpointName: string
  /** Kept as JSON. RLtools writes `{ environment: … }`. */
  readonly meta: Schema.Json
  /** What whoever loads the file can check himself by. */
  readonly example: Example
}

/**
 * A policy as RLtools' `checkpoint.h5`: `actor` is a sequence of layers, `example` an input and its output, each
 * [1, rows, numbers]. Throws an ExportError where RLtools has no such layer.
 *
 * RLtools' `mlp` has hidden layers that are all alike. Where the policy's are not, its layers stand in the sequence one
 * by one. Of the loaders, the one for browsers does not know GELU.
 */
export const actorToHdf5 = (actor: DenseActor, { checkpointName, meta, example }: Hdf5Options): Uint8Array => {
  const rows = checkExport(actor, example)
  // HDF5 gives back an empty text as no text at all, which RLtools' loader trips over.
  if (checkpointName === "") complain("a checkpoint needs a name")
  // There the env stretches or cuts off what a policy says.
  if (actor.bounds !== undefined) complain("RLtools has no layer for bounds of actions")
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

const numbered = (groups: ReadonlyArray<Group>): Group => ({
  children: Object.fromEntries(groups.map((group, index) => [index, group])),
})

const tensor = (shape: ReadonlyArray<number>, data: Float32Array): Dataset => ({
  shape,
  data,
  attributes: {
    type: "tensor",
    num_dims: String(shape.length),
    ...Object.fromEntries(shape.map((size, index) => [`dim_${index}`, String(size)])),
  },
})

const parameters = (shape: ReadonlyArray<number>, data: Float32Array): Group => ({
  children: { parameters: tensor(shape, data) },
})

const standardize = ({ inputs, normalisation }: DenseActor): ReadonlyArray<Group> => {
  if (normalisation === undefined) return []
  if (normalisation.clip !== undefined) {
    complain("RLtools' standardize has no limit: leave out the normalisation's clip where inputs stay within it")
  }
  const mean = parameters([inputs], normalisation.mean)
  const precision = parameters([inputs], precisionOf(normalisation))
  return [{ attributes: { type: "standardize" }, children: { mean, precision } }]
}

const activationNames: Readonly<Record<Activation, string | undefined>> = {
  identity: "IDENTITY",
  relu: "RELU",
  tanh: "TANH",
  sigmoid: "SIGMOID",
  gelu: "GELU",
  silu: undefined,
  softplus: undefined,
}

const denseGroup = ({ weights, biases, activation }: DenseLayer): Group => {
  const outputs = biases.length
  const named = activationNames[activation] ?? complain(`RLtools has no activation ${activation}`)
  return {
    attributes: { activation_function: named, type: "dense" },
    children: {
      weights: parameters([outputs, weights.length / outputs], weights),
      biases: parameters([outputs], biases),
    },
  }
}

const dense = ({ layers }: DenseActor): ReadonlyArray<Group> => {
  const groups = layers.map(denseGroup)
  const below = layers.slice(0, -1)
  const alike = below.every(
    ({ biases, activation }) => biases.length === below[0].biases.length && activation === below[0].activation,
  )
  if (below.length === 0 || !alike) return groups
  const [first] = groups
  const last = groups[groups.length - 1]
  return [
    {
      attributes: { type: "mlp", num_layers: String(groups.length) },
      children: { input_layer: first, hidden_layers: numbered(groups.slice(1, -1)), output_layer: last },
    },
  ]
}

const squash = ({ head }: DenseActor): ReadonlyArray<Group> =>
  head === "sample_and_squash" ? [{ attributes: { type: "sample_and_squash" }, children: {} }] : []
