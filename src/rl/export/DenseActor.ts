/**
 * Describes a policy that has only dense layers, as plain numbers (`DenseActor`), and computes its outputs.
 * `policyFiles.ts` makes the description from a learner's weights. `rltools.ts` encodes it as a file for RLtools (a C++
 * library for reinforcement learning). Everything here only computes.
 *
 * @example
 * ```ts
 * const weights = yield* learner.weights
 * const actor: DenseActor.DenseActor = {
 *   inputs: 4,
 *   layers: [layer(weights, ["actor.0"], "tanh"), layer(weights, ["actor.1"], "tanh"), layer(weights, ["actor.2"], "identity")],
 * }
 * evaluate(actor, Float32Array.of(0, 0.1, 0, -0.1)) // the preferences of the policy
 * ```
 *
 * All numbers are float32, and sums are taken in one order, bias first: code that does the same gets the same bits,
 * except for the rounding of `tanh` and `exp` in its library.
 */
import type { NamedTensors } from "../../tensor/graph/Parameters.ts"
import type { GraphActivation } from "../../tensor/graph/layers.ts"
import { refuse } from "../policy/PolicyError.ts"

/** The names of the activation functions of our networks. GELU is the tanh approximation. */
export type ActorActivation = "identity" | GraphActivation

export interface DenseLayer {
  /** The weights, of shape [outputs, inputs], row by row. This is the transpose of the weight in a graph's `linear`. */
  readonly weights: Float32Array
  /** The biases, one per output. */
  readonly biases: Float32Array
  readonly activation: ActorActivation
}

/** The normalisation of inputs before the first layer: (x − mean) / deviation. */
export interface InputNormalisation {
  readonly mean: Float32Array
  readonly deviation: Float32Array
}

/**
 * Says how to read the outputs of the last layer. `sample_and_squash`: the outputs are the means, then the logarithms
 * of as many standard deviations; the best action is tanh of the mean. `identity`: the outputs are the action or, for
 * discrete actions, one preference per action; the caller takes the action with the largest.
 */
export type Head = "identity" | "sample_and_squash"

/** A policy: it normalises `inputs` numbers, passes them through the layers, and applies the head. */
export interface DenseActor {
  readonly inputs: number
  readonly normalisation?: InputNormalisation | undefined
  readonly layers: ReadonlyArray<DenseLayer>
  /** How to read the outputs of the last layer. Default: `identity`. */
  readonly head?: Head | undefined
}

/** Inputs of the policy and the outputs for them, row by row. A program that loads the file can check itself with these. */
export interface Example {
  readonly input: Float32Array
  readonly output: Float32Array
}

/** Returns the number of outputs per row. */
export const outputSize = ({ layers, head }: DenseActor): number => {
  const last = layers.at(-1)?.biases.length ?? 0
  return head === "sample_and_squash" ? last / 2 : last
}

/** Returns 1 / deviation. All code multiplies by this instead of dividing, so that all programs round in the same way. */
export const precisionOf = ({ deviation }: InputNormalisation): Float32Array => deviation.map((value) => 1 / value)

const { fround, tanh, exp, log1p } = Math

const activate: Readonly<Record<ActorActivation, (x: number) => number>> = {
  identity: (x) => x,
  relu: (x) => (x > 0 ? x : 0),
  tanh,
  sigmoid: (x) => 1 / (1 + exp(-x)),
  silu: (x) => x / (1 + exp(-x)),
  softplus: (x) => Math.max(x, 0) + log1p(exp(-Math.abs(x))),
  gelu: (x) => 0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x))),
}

/** Computes the outputs for rows of inputs. Throws a `PolicyError` if sizes do not match. */
export const evaluate = (actor: DenseActor, input: Float32Array): Float32Array => {
  checkSizes(actor)
  const rows = rowsOf(actor, input)
  const outputs = outputSize(actor)
  const result = new Float32Array(rows * outputs)
  for (let row = 0; row < rows; row++) {
    const rowInput = input.subarray(row * actor.inputs, (row + 1) * actor.inputs)
    const last = actor.layers.reduce(dense, normalised(actor, rowInput))
    for (let index = 0; index < outputs; index++) {
      result[row * outputs + index] = actor.head === "sample_and_squash" ? tanh(last[index]) : last[index]
    }
  }
  return result
}

const normalised = ({ normalisation }: DenseActor, input: Float32Array): Float32Array => {
  if (normalisation === undefined) return input
  const { mean } = normalisation
  const precision = precisionOf(normalisation)
  return input.map((value, index) => fround(value - mean[index]) * precision[index])
}

const dense = (input: Float32Array, { weights, biases, activation }: DenseLayer): Float32Array => {
  const inputs = input.length
  const result = new Float32Array(biases.length)
  for (let output = 0; output < biases.length; output++) {
    let sum = biases[output]
    for (let index = 0; index < inputs; index++) {
      sum = fround(sum + fround(weights[output * inputs + index] * input[index]))
    }
    result[output] = activate[activation](sum)
  }
  return result
}

/** Computes the policy's outputs for rows of inputs; returns the inputs and the outputs as an example. */
export const exampleOf = (actor: DenseActor, input: Float32Array): Example => ({
  input,
  output: evaluate(actor, input),
})

/**
 * Makes a dense layer from a learner's weights, where a linear layer has the arrays `NAME.weight` of shape [inputs,
 * outputs] and `NAME.bias`. If there are several names, such as `["actor.mean", "actor.logStd"]` for
 * `sample_and_squash`, the result has the outputs of all these layers, one after another.
 */
export const layer = (weights: NamedTensors, names: ReadonlyArray<string>, activation: ActorActivation): DenseLayer => {
  const parts = names.map((name) => {
    const weight = weights[`${name}.weight`]
    const bias = weights[`${name}.bias`]
    if (weight === undefined || bias === undefined) return refuse(`the weights have no layer "${name}"`)
    const [inputs, outputs] = weight.shape
    if (weight.shape.length !== 2 || bias.data.length !== outputs)
      return refuse(`"${name}" is not a dense layer; expected a weight [inputs, outputs] and a bias [outputs]`)
    return { inputs, weights: transposed(weight.data, inputs, outputs), biases: bias.data }
  })
  const sizes = new Set(parts.map(({ inputs }) => inputs))
  if (sizes.size !== 1) refuse(`${names.join(", ")}: expected layers with the same number of inputs`)
  return {
    weights: joined(parts.map((part) => part.weights)),
    biases: joined(parts.map((part) => part.biases)),
    activation,
  }
}

const transposed = (data: Float32Array, inputs: number, outputs: number): Float32Array =>
  Float32Array.from({ length: data.length }, (_, at) => data[(at % inputs) * outputs + Math.floor(at / inputs)])

const joined = (arrays: ReadonlyArray<Float32Array>): Float32Array =>
  Float32Array.from(arrays.flatMap((array) => [...array]))

const isSize = (value: number): boolean => Number.isSafeInteger(value) && value > 0

const checkSizes = (actor: DenseActor): void => {
  const { inputs, normalisation, layers, head } = actor
  if (!isSize(inputs)) refuse(`inputs: expected a positive whole number, found ${inputs}`)
  if (layers.length === 0) refuse("layers: expected at least one layer, found none")
  if (normalisation !== undefined) {
    const { mean, deviation } = normalisation
    if (mean.length !== inputs || deviation.length !== inputs) {
      const sizes = `${mean.length} and ${deviation.length}`
      refuse(`normalisation: expected ${inputs} means and deviations, one per input, found ${sizes}`)
    }
  }
  let inputsOfLayer = inputs
  for (const [index, { weights, biases }] of layers.entries()) {
    if (biases.length === 0) refuse(`layer ${index}: expected at least one output, found none`)
    if (weights.length !== inputsOfLayer * biases.length) {
      refuse(
        `layer ${index}: expected ${inputsOfLayer * biases.length} weights for [${biases.length}, ${inputsOfLayer}], found ${weights.length}`,
      )
    }
    inputsOfLayer = biases.length
  }
  if (head === "sample_and_squash" && inputsOfLayer % 2 !== 0) {
    refuse(`sample_and_squash: expected a mean and a deviation for each action, found ${inputsOfLayer} outputs`)
  }
}

const rowsOf = ({ inputs }: DenseActor, input: Float32Array): number => {
  if (input.length % inputs !== 0) refuse(`input: expected rows of ${inputs} numbers, found ${input.length} numbers`)
  return input.length / inputs
}

const checkFinite = (where: string, numbers: Float32Array): void => {
  const wrong = numbers.find((value) => !Number.isFinite(value))
  if (wrong !== undefined) refuse(`${where}: expected finite numbers, found ${wrong}`)
}

/** Checks that sizes match and numbers are finite; returns the example's number of rows. Throws a `PolicyError`. */
export const checkExport = (actor: DenseActor, { input, output }: Example): number => {
  checkSizes(actor)
  for (const [index, { weights, biases }] of actor.layers.entries()) {
    checkFinite(`layer ${index}: weights`, weights)
    checkFinite(`layer ${index}: biases`, biases)
  }
  if (actor.normalisation !== undefined) {
    const { mean, deviation } = actor.normalisation
    checkFinite("normalisation: means", mean)
    checkFinite("normalisation: deviations", deviation)
    checkFinite("normalisation: 1 / deviation", precisionOf(actor.normalisation))
    if (deviation.some((value) => value <= 0)) refuse("normalisation: expected deviations above 0")
  }
  const rows = rowsOf(actor, input)
  if (rows === 0 || output.length !== rows * outputSize(actor)) {
    refuse(
      `example: expected at least one row and ${outputSize(actor)} outputs per row, found ${rows} rows and ${output.length} outputs`,
    )
  }
  checkFinite("example: inputs", input)
  checkFinite("example: outputs", output)
  return rows
}
