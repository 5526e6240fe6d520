/** Makes layers that normalise by batch renormalisation, for CrossQ. */
import { constant, zeros } from "../../tensor/graph/initialisers.ts"
import { type GraphActivation, activations, linear } from "../../tensor/graph/layers.ts"
import { add, clip, div, greater, mean, mul, sqrt, square, stopGradient, sub, where } from "../../tensor/graph/ops.ts"
import type { Tensor } from "../../tensor/graph/Tensor.ts"
import type { Declarations, Weights } from "./trunk.ts"

/**
 * The constants of batch renormalisation, as in sb3-contrib: the bounds of r and d, the share by which a batch changes
 * the running statistics, and an ε.
 */
const [largestScale, largestShift, momentum, epsilon] = [3, 5, 0.01, 0.001]

/**
 * The statistics of normalising layers after a batch, by the names of their parameters. Gradients never change them.
 */
export type Statistics = Readonly<Record<string, Tensor>>

/** A value after a layer, with the statistics of the layers before it. */
export interface Normalised {
  readonly value: Tensor
  readonly statistics: Statistics
}

/** A layer that normalises each of its inputs. */
export interface BatchRenorm {
  readonly parameters: Declarations
  /** Normalises by the running statistics, as acting does. */
  readonly apply: (weights: Weights, x: Tensor) => Tensor
  /** Normalises by the statistics of the batch, and returns the next running statistics. */
  readonly learn: (weights: Weights, x: Tensor) => Normalised
}

/**
 * Makes a layer of batch renormalisation (Ioffe 2017, arXiv:1702.03275), as CrossQ uses it. For the first `warmUp`
 * batches it is plain batch normalisation; after that, it corrects a batch's statistics towards the running statistics:
 *
 * y = scale · (x − m) / √(v + ε) + bias m = μ_B − d σ_B / r v = σ_B² / r² r = clip(s_B / s, 1/3, 3) d = clip((μ_B − μ)
 * / s, −5, 5), without a gradient
 *
 * where μ_B and σ_B are the mean and deviation of the batch, s_B = √(σ_B² + ε), and μ and s are the running mean and
 * deviation.
 */
export const batchRenorm = (name: string, inputs: number, warmUp: number): BatchRenorm => {
  const [scale, bias, average, variance, batches] = ["scale", "bias", "mean", "variance", "batches"].map(
    (parameter) => `${name}.${parameter}`,
  )
  const normalised = (weights: Weights, x: Tensor, center: Tensor, spread: Tensor): Tensor =>
    add(mul(div(sub(x, center), sqrt(add(spread, epsilon))), weights[scale]), weights[bias])
  return {
    parameters: {
      [scale]: { shape: [inputs], init: constant(1) },
      [bias]: { shape: [inputs], init: zeros },
      [average]: { shape: [inputs], init: zeros },
      [variance]: { shape: [inputs], init: constant(1) },
      [batches]: { shape: [1], init: zeros },
    },
    apply: (weights, x) => normalised(weights, x, stopGradient(weights[average]), stopGradient(weights[variance])),
    learn: (weights, x) => {
      const [rows] = x.shape
      const [running, runningVariance, seen] = [average, variance, batches].map((key) => stopGradient(weights[key]))
      const center = mean(x, 0)
      // The sample variance, which divides by the number of rows minus 1, as in PyTorch.
      const spread = mul(mean(square(sub(x, center)), 0), rows / Math.max(1, rows - 1))
      const runningDeviation = sqrt(add(runningVariance, epsilon))
      const warm = greater(seen, warmUp)
      const r = clip(div(stopGradient(sqrt(add(spread, epsilon))), runningDeviation), 1 / largestScale, largestScale)
      const d = clip(div(sub(stopGradient(center), running), runningDeviation), -largestShift, largestShift)
      // A column of equal numbers has the variance 0, where the gradient of the root is infinite.
      const corrected = sub(center, div(mul(d, sqrt(add(spread, 1e-12))), r))
      const next = (from: Tensor, to: Tensor): Tensor => add(from, mul(sub(stopGradient(to), from), momentum))
      return {
        value: normalised(weights, x, where(warm, corrected, center), where(warm, div(spread, square(r)), spread)),
        statistics: {
          [average]: next(running, center),
          [variance]: next(runningVariance, spread),
          [batches]: add(seen, 1),
        },
      }
    },
  }
}

/** A network of dense layers with a normalisation before each of them. */
export interface NormalisedMlp {
  readonly parameters: Declarations
  readonly outputs: number
  readonly apply: (weights: Weights, x: Tensor) => Tensor
  readonly learn: (weights: Weights, x: Tensor) => Normalised
}

/**
 * Makes hidden layers with a normalisation before each one, and after the last one: what follows them is a head.
 */
export const normalisedMlp = (
  name: string,
  inputs: number,
  {
    hidden,
    activation,
    warmUp,
  }: { readonly hidden: ReadonlyArray<number>; readonly activation: GraphActivation; readonly warmUp: number },
): NormalisedMlp => {
  const sizes = [inputs, ...hidden]
  const norms = sizes.map((size, index) => batchRenorm(`${name}.norm${index}`, size, warmUp))
  const layers = hidden.map((size, index) => linear(`${name}.${index}`, sizes[index], size))
  const dense = (weights: Weights, index: number, x: Tensor): Tensor =>
    index === layers.length ? x : activations[activation](layers[index].apply(weights, x))
  return {
    parameters: Object.assign({}, ...[...norms, ...layers].map(({ parameters }) => parameters)),
    outputs: sizes[sizes.length - 1],
    apply: (weights, x) => norms.reduce((value, norm, index) => dense(weights, index, norm.apply(weights, value)), x),
    learn: (weights, x) =>
      norms.reduce<Normalised>(
        (before, norm, index) => {
          const { value, statistics } = norm.learn(weights, before.value)
          return { value: dense(weights, index, value), statistics: { ...before.statistics, ...statistics } }
        },
        { value: x, statistics: {} },
      ),
  }
}

/** Writes statistics into a flat vector of weights, over whatever the optimiser did to them. */
export const withStatistics = (
  layout: { readonly tensorsOf: (theta: Tensor) => Weights; readonly flatten: (weights: Weights) => Tensor },
  theta: Tensor,
  statistics: Statistics,
): Tensor => layout.flatten({ ...layout.tensorsOf(theta), ...statistics })
