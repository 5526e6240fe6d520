/** Defines the distributions of actions of policies: their samples, log probabilities and entropies, as ops. */
import {
  add,
  argMax,
  broadcastTo,
  cast,
  clip,
  cos,
  cumSum,
  div,
  exp,
  greaterEqual,
  log,
  logSoftmax,
  minimum,
  mul,
  neg,
  oneHot,
  slice,
  softmax,
  softplus,
  sqrt,
  square,
  sub,
  sum,
  tanh,
} from "./ops.ts"
import { broadcastShapes, fail, sameShape } from "./ops/core.ts"
import type { Tensor } from "./Tensor.ts"

/**
 * A distribution of actions for each row of a batch, as a policy's network outputs it. Sampling takes uniform numbers as an
 * input, so that it happens in the graph while the randomness stays outside.
 */
export interface Distribution {
  /** The number of uniform numbers in [0, 1) that a sample of one row needs. */
  readonly noiseSize: number
  /** Computes sampled actions from uniform noise of shape [batch, noiseSize]. */
  readonly sample: (noise: Tensor) => Tensor
  /** Returns the most probable action of each row. */
  readonly mode: () => Tensor
  /** Returns the log probability of each row's action, as a tensor of shape [batch]. */
  readonly logProbability: (action: Tensor) => Tensor
  /** Returns the entropy of each row's distribution, as a tensor of shape [batch]. */
  readonly entropy: () => Tensor
}

export interface Categorical extends Distribution {
  readonly logProbabilities: Tensor
}

/** Makes a distribution over n discrete actions from logits of shape [batch, n]. Actions are i32 of shape [batch]. */
export const categorical = (logits: Tensor): Categorical => {
  if (logits.shape.length !== 2) fail("categorical", "expected logits [batch, n]", logits)
  const [, n] = logits.shape
  const logProbabilities = logSoftmax(logits)
  return {
    noiseSize: 1,
    logProbabilities,
    // The action is the number of cumulative probabilities that are not above the noise. By rounding the last can be
    // below 1, so the action is limited to n − 1.
    sample: (noise) => {
      const passed = sum(cast(greaterEqual(noise, cumSum(softmax(logits), -1)), "f32"), -1)
      return cast(minimum(passed, n - 1), "i32")
    },
    mode: () => argMax(logits),
    logProbability: (action) => {
      if (!sameShape(action.shape, logits.shape.slice(0, 1)))
        fail("categorical", "expected one action for each row", action, logits)
      return sum(mul(logProbabilities, oneHot(action, n)), -1)
    },
    entropy: () => neg(sum(mul(exp(logProbabilities), logProbabilities), -1)),
  }
}

/** Computes KL(p ‖ q) of each row. */
export const categoricalKl = (p: Categorical, q: Categorical): Tensor =>
  sum(mul(exp(p.logProbabilities), sub(p.logProbabilities, q.logProbabilities)), -1)

export interface Gaussian extends Distribution {
  readonly mean: Tensor
  readonly logDeviation: Tensor
}

const halfLogTau = 0.9189385332046727 // ½ log 2π

/** Computes standard normal numbers [batch, n] from uniform numbers [batch, 2n], by the method of Box and Muller. */
export const normalFromUniform = (noise: Tensor): Tensor => {
  const [batch, twice] = noise.shape
  if (noise.shape.length !== 2 || twice % 2 !== 0) fail("normalFromUniform", "expected noise [batch, 2n]", noise)
  const n = twice / 2
  // 1 − u is in (0, 1], so the logarithm is finite.
  const radius = sqrt(mul(log(sub(1, slice(noise, [0, 0], [batch, n]))), -2))
  return mul(radius, cos(mul(slice(noise, [0, n], [batch, n]), 2 * Math.PI)))
}

/**
 * Makes independent normal distributions from means of shape [batch, n] and logarithms of standard deviations of shape [n]
 * or [batch, n]. Actions are f32 of shape [batch, n].
 */
export const diagonalGaussian = (mean: Tensor, logDeviation: Tensor): Gaussian => {
  if (mean.shape.length !== 2) fail("diagonalGaussian", "expected means [batch, n]", mean)
  if (!sameShape(broadcastShapes("diagonalGaussian", mean, logDeviation), mean.shape))
    fail("diagonalGaussian", "expected log deviations [n] or [batch, n]", mean, logDeviation)
  const [, n] = mean.shape
  const deviation = exp(logDeviation)
  return {
    noiseSize: 2 * n,
    mean,
    logDeviation,
    sample: (noise) => add(mean, mul(deviation, normalFromUniform(noise))),
    mode: () => mean,
    logProbability: (action) => {
      const z = div(sub(action, mean), deviation)
      return sum(sub(mul(square(z), -0.5), add(logDeviation, halfLogTau)), -1)
    },
    entropy: () => sum(broadcastTo(add(logDeviation, 0.5 + halfLogTau), mean.shape), -1),
  }
}

/** Computes KL(p ‖ q) of each row. */
export const gaussianKl = (p: Gaussian, q: Gaussian): Tensor => {
  const ratio = exp(mul(sub(p.logDeviation, q.logDeviation), 2))
  const distance = square(div(sub(p.mean, q.mean), exp(q.logDeviation)))
  const terms = sub(mul(sub(add(ratio, distance), 1), 0.5), sub(p.logDeviation, q.logDeviation))
  return sum(terms, -1)
}

/**
 * The distribution of tanh(raw), where `raw` has a diagonal Gaussian distribution (`base`), so that actions are between
 * −1 and 1. To learn from a sample, keep the `raw` that `sampleBoth` returns with the action, and call
 * `logProbabilityOfRaw`: `logProbability` must compute atanh of the action, which is inexact near ±1.
 */
export interface SquashedGaussian extends Distribution {
  readonly base: Gaussian
  readonly sampleBoth: (noise: Tensor) => { readonly raw: Tensor; readonly action: Tensor }
  readonly logProbabilityOfRaw: (raw: Tensor) => Tensor
}

export const squashedGaussian = (mean: Tensor, logDeviation: Tensor): SquashedGaussian => {
  const base = diagonalGaussian(mean, logDeviation)
  // log(1 − tanh²x) = 2 (log 2 − x − softplus(−2x)), in which no digits cancel.
  const logSlope = (raw: Tensor) => mul(sub(sub(Math.LN2, raw), softplus(mul(raw, -2))), 2)
  const logProbabilityOfRaw = (raw: Tensor) => sub(base.logProbability(raw), sum(logSlope(raw), -1))
  const edge = 1 - 1e-6
  const atanh = (action: Tensor) => {
    const inside = clip(action, -edge, edge)
    return mul(log(div(add(1, inside), sub(1, inside))), 0.5)
  }
  return {
    base,
    noiseSize: base.noiseSize,
    sampleBoth: (noise) => {
      const raw = base.sample(noise)
      return { raw, action: tanh(raw) }
    },
    logProbabilityOfRaw,
    sample: (noise) => tanh(base.sample(noise)),
    mode: () => tanh(mean),
    logProbability: (action) => logProbabilityOfRaw(atanh(action)),
    // There is no closed form. This estimate is the Gaussian's entropy plus the log slope of tanh at the mean.
    entropy: () => add(base.entropy(), sum(logSlope(mean), -1)),
  }
}
