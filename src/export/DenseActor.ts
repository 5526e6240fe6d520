/**
 * A policy that is nothing but dense layers, as plain numbers: what files for other programs are made of. `hdf5.ts` makes
 * one that RLtools loads, `cheader.ts` one that any C++ compiler takes.
 *
 * @example
 * ```ts
 * const weights = yield* learner.weights
 * const actor: DenseActor = {
 *   inputs: 4,
 *   layers: [layer(weights, ["actor.0"], "tanh"), layer(weights, ["actor.1"], "tanh"), layer(weights, ["actor.2"], "identity")],
 * }
 * evaluate(actor, Float32Array.of(0, 0.1, 0, -0.1)) // what the policy prefers
 * ```
 *
 * Numbers are float32 throughout, and sums are taken in one order, bias first: code that does the same gets the same
 * bits, up to how its library rounds `tanh` and `exp`.
 */
import type { NamedTensors } from "../learner/Algorithm.ts"
import type { Activation as GraphActivation } from "../graph/layers.ts"
import { complain } from "./ExportError.ts"

export { ExportError } from "./ExportError.ts"

/** Those of the networks here; GELU is its tanh form. */
export type Activation = "identity" | GraphActivation

export interface DenseLayer {
  /** [outputs, inputs], row by row: the transpose of what a graph's `linear` keeps. */
  readonly weights: Float32Array
  /** As many as the layer has outputs. */
  readonly biases: Float32Array
  readonly activation: Activation
}

/** What inputs go through first: (x − mean) / deviation, cut off at ± clip where there is one. */
export interface Normalisation {
  readonly mean: Float32Array
  readonly deviation: Float32Array
  readonly clip?: number | undefined
}

/**
 * What the last layer's outputs mean. `sample_and_squash`: a mean and as many deviations, side by side, of which the
 * best action is tanh of the mean. The largest of some preferences is for the caller to find.
 */
export type Head = "identity" | "sample_and_squash"

/** How outputs become actions as the env takes them: stretched from −1 … 1 onto its bounds, or cut off at them. */
export interface Bounds {
  readonly low: Float32Array
  readonly high: Float32Array
  readonly scaled: boolean
}

export interface DenseActor {
  readonly inputs: number
  readonly normalisation?: Normalisation | undefined
  readonly layers: ReadonlyArray<DenseLayer>
  /** `identity` when left out. */
  readonly head?: Head | undefined
  /** Outputs are what they are when left out. */
  readonly bounds?: Bounds | undefined
}

/** Inputs and what the policy made of them, one row after another: for whoever loads a file to check himself by. */
export interface Example {
  readonly input: Float32Array
  readonly output: Float32Array
}

/** Numbers that come out of a row. */
export const outputSize = ({ layers, head }: DenseActor): number => {
  const last = layers.at(-1)?.biases.length ?? 0
  return head === "sample_and_squash" ? last / 2 : last
}

/** As `Normalisation` is applied everywhere: a factor, not a divisor. */
export const precisionOf = ({ deviation }: Normalisation): Float32Array => deviation.map((value) => 1 / value)

const { fround, tanh, exp, log1p } = Math

const activate: Readonly<Record<Activation, (x: number) => number>> = {
  identity: (x) => x,
  relu: (x) => (x > 0 ? x : 0),
  tanh,
  sigmoid: (x) => 1 / (1 + exp(-x)),
  silu: (x) => x / (1 + exp(-x)),
  softplus: (x) => Math.max(x, 0) + log1p(exp(-Math.abs(x))),
  gelu: (x) => 0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x))),
}

/** Rows of inputs → rows of outputs. Throws an ExportError where sizes do not fit. */
export const evaluate = (actor: DenseActor, input: Float32Array): Float32Array => {
  checkSizes(actor)
  const rows = rowsOf(actor, input)
  const outputs = outputSize(actor)
  const within = bounding(actor.bounds)
  const result = new Float32Array(rows * outputs)
  for (let row = 0; row < rows; row++) {
    const own = input.subarray(row * actor.inputs, (row + 1) * actor.inputs)
    const last = actor.layers.reduce(dense, normalised(actor, own))
    for (let index = 0; index < outputs; index++) {
      const value = actor.head === "sample_and_squash" ? fround(tanh(last[index])) : last[index]
      result[row * outputs + index] = within(value, index)
    }
  }
  return result
}

const bounding = (bounds: Bounds | undefined): ((value: number, index: number) => number) => {
  if (bounds === undefined) return (value) => value
  const { low, high, scaled } = bounds
  if (!scaled) return (value, index) => Math.min(Math.max(value, low[index]), high[index])
  const { half, middle } = stretchOf(bounds)
  return (value, index) => fround(value * half[index]) + middle[index]
}

/** What `scaled` multiplies by and adds. */
export const stretchOf = ({ low, high }: Bounds): { readonly half: Float32Array; readonly middle: Float32Array } => ({
  half: high.map((bound, index) => (bound - low[index]) / 2),
  middle: high.map((bound, index) => (bound + low[index]) / 2),
})

const normalised = ({ normalisation }: DenseActor, input: Float32Array): Float32Array => {
  if (normalisation === undefined) return input
  const { mean, clip = Infinity } = normalisation
  const precision = precisionOf(normalisation)
  const limit = fround(clip)
  return input.map((value, index) => Math.min(Math.max(fround(value - mean[index]) * precision[index], -limit), limit))
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

/** What the policy makes of these rows, as an example. */
export const exampleOf = (actor: DenseActor, input: Float32Array): Example => ({
  input,
  output: evaluate(actor, input),
})

/**
 * A layer from a learner's weights, where `linear` keeps `NAME.weight` [inputs, outputs] and `NAME.bias`. Several names
 * are layers side by side on the same inputs: `["actor.mean", "actor.logStd"]` is what `sample_and_squash` takes.
 */
export const layer = (weights: NamedTensors, names: ReadonlyArray<string>, activation: Activation): DenseLayer => {
  const parts = names.map((name) => {
    const weight = weights[`${name}.weight`]
    const bias = weights[`${name}.bias`]
    if (weight === undefined || bias === undefined) return complain(`there is no layer "${name}" among the weights`)
    const [inputs, outputs] = weight.shape
    if (weight.shape.length !== 2 || bias.data.length !== outputs) return complain(`"${name}" is no dense layer`)
    return { inputs, weights: transposed(weight.data, inputs, outputs), biases: bias.data }
  })
  const sizes = new Set(parts.map(({ inputs }) => inputs))
  if (sizes.size !== 1) complain(`layers side by side need the same inputs: ${names.join(", ")}`)
  return {
    weights: joined(parts.map((part) => part.weights)),
    biases: joined(parts.map((part) => part.biases)),
    activation,
  }
}

const transposed = (data: Float32Array, inputs: number, outputs: number): Float32Array =>
  Float32Array.from({ length: data.length }, (_, at) => data[(at % inputs) * outputs + Math.floor(at / inputs)])

const joined = (arrays: ReadonlyArray<Float32Array>): Float32Array => {
  const all = new Float32Array(arrays.reduce((length, array) => length + array.length, 0))
  let at = 0
  for (const array of arrays) {
    all.set(array, at)
    at += array.length
  }
  return all
}

const isSize = (value: number): boolean => Number.isSafeInteger(value) && value > 0

const checkSizes = (actor: DenseActor): void => {
  const { inputs, normalisation, layers, head, bounds } = actor
  if (!isSize(inputs)) complain(`a policy cannot have ${inputs} inputs`)
  if (layers.length === 0) complain("a policy needs at least one layer")
  if (normalisation !== undefined) {
    const { mean, deviation } = normalisation
    if (mean.length !== inputs || deviation.length !== inputs) {
      complain(`the normalisation is of ${mean.length} and ${deviation.length} numbers, the input has ${inputs}`)
    }
  }
  let below = inputs
  for (const [index, { weights, biases }] of layers.entries()) {
    if (biases.length === 0) complain(`layer ${index} has no outputs`)
    if (weights.length !== below * biases.length) {
      complain(
        `layer ${index} has ${weights.length} weights, [${biases.length}, ${below}] needs ${below * biases.length}`,
      )
    }
    below = biases.length
  }
  if (head === "sample_and_squash" && below % 2 !== 0) {
    complain(`sample_and_squash takes a mean and a deviation for each action, found ${below} outputs`)
  }
  if (bounds !== undefined && [bounds.low, bounds.high].some(({ length }) => length !== outputSize(actor))) {
    complain(`the bounds are of ${bounds.low.length} and ${bounds.high.length} actions, found ${outputSize(actor)}`)
  }
}

const rowsOf = ({ inputs }: DenseActor, input: Float32Array): number => {
  if (input.length % inputs !== 0) complain(`${input.length} numbers are no rows of ${inputs} inputs`)
  return input.length / inputs
}

const checkFinite = (what: string, numbers: Float32Array): void => {
  const found = numbers.find((value) => !Number.isFinite(value))
  if (found !== undefined) complain(`${what} have the number ${found}`)
}

/** What every file needs of a policy and its example; how many rows the example has. Throws an ExportError. */
export const checkExport = (actor: DenseActor, { input, output }: Example): number => {
  checkSizes(actor)
  for (const [index, { weights, biases }] of actor.layers.entries()) {
    checkFinite(`layer ${index}'s weights`, weights)
    checkFinite(`layer ${index}'s biases`, biases)
  }
  if (actor.normalisation !== undefined) {
    const { mean, deviation, clip } = actor.normalisation
    checkFinite("the normalisation's means", mean)
    checkFinite("the normalisation's deviations", deviation)
    checkFinite("the normalisation's factors", precisionOf(actor.normalisation))
    if (deviation.some((value) => value <= 0)) complain("a deviation of the normalisation is not above 0")
    if (clip !== undefined && !(fround(clip) > 0 && Number.isFinite(fround(clip)))) {
      complain(`inputs cannot be cut off at ± ${clip}`)
    }
  }
  const rows = rowsOf(actor, input)
  if (rows === 0 || output.length !== rows * outputSize(actor)) {
    complain(
      `the example has ${input.length} numbers in and ${output.length} out, ${rows} rows of it need ${rows * outputSize(actor)}`,
    )
  }
  if (actor.bounds !== undefined) {
    checkFinite("the lower bounds", actor.bounds.low)
    checkFinite("the upper bounds", actor.bounds.high)
  }
  checkFinite("the example's inputs", input)
  checkFinite("the example's outputs", output)
  return rows
}
