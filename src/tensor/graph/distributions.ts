/** Defines the distributions from which policies draw actions: samples, log probabilities and entropies, as ops. */
import {
  add,
  argMax,
  broadcastTo,
  cast,
  clip,
  concat,
  cos,
  cumSum,
  div,
  exp,
  greater,
  greaterEqual,
  less,
  log,
  logSoftmax,
  matmul,
  minimum,
  mul,
  neg,
  oneHot,
  reshape,
  sigmoid,
  slice,
  softmax,
  softplus,
  sqrt,
  square,
  sub,
  sum,
  tanh,
  where,
} from "./ops.ts"
import { broadcastShapes, fail, sameShape } from "./ops/core.ts"
import type { Tensor } from "./Tensor.ts"

/**
 * A distribution of actions for each row of a batch, computed from the outputs of a policy's network. Uniform random
 * numbers for samples are an input, so that sampling happens in the graph while its randomness comes from outside.
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
  /** The tensors that determine the distribution: log probabilities, logits, or means and log deviations. */
  readonly parameters: ReadonlyArray<Tensor>
  /** Returns KL(p ‖ q) of each row, where q is this distribution, and p one of the same kind with these parameters. */
  readonly klFrom: (parameters: Distribution["parameters"]) => Tensor
  /**
   * Returns the outputs that an exported policy has for the distribution, each [batch, n]: `logits`, or `mean` and
   * `log_std`.
   */
  readonly outputs: () => Readonly<Record<string, Tensor>>
}

export interface Categorical extends Distribution {
  readonly logProbabilities: Tensor
}

/**
 * The logit or value that replaces that of a forbidden choice: the choice is never the best, and its probability is 0.
 */
const lowest = -1e30

/**
 * Replaces the logits or values of forbidden choices by a very low number. `allowed` has the same shape, with 1 for each
 * choice that is allowed and 0 for others, which get no gradient.
 *
 * @example
 * ```ts
 * Graph.softmax(withoutForbidden(Graph.constant([1, 5, 1], [1, 3]), Graph.constant([1, 0, 1], [1, 3]))) // [½, 0, ½]
 * ```
 */
export const withoutForbidden = (values: Tensor, allowed: Tensor | undefined): Tensor => {
  if (allowed === undefined) return values
  if (!sameShape(values.shape, allowed.shape)) fail("withoutForbidden", "expected equal shapes", values, allowed)
  return where(greater(allowed, 0), values, lowest)
}

/**
 * Makes a distribution over n discrete actions from logits of shape [batch, n]. Actions are i32 of shape [batch]. With
 * `allowed`, of the same shape as the logits, actions whose number there is 0 have the probability 0.
 */
export const categorical = (unmasked: Tensor, allowed?: Tensor): Categorical => {
  if (unmasked.shape.length !== 2) fail("categorical", "expected logits [batch, n]", unmasked)
  const logits = withoutForbidden(unmasked, allowed)
  const [, n] = logits.shape
  const logProbabilities = logSoftmax(logits)
  return {
    noiseSize: 1,
    logProbabilities,
    // The action is the number of cumulative probabilities that are not above the noise. Rounding can make the last one
    // less than 1, so the action is limited to n − 1.
    sample: (noise) => {
      const passed = sum(cast(greaterEqual(noise, cumSum(softmax(logits), -1)), "f32"), -1)
      const action = cast(minimum(passed, n - 1), "i32")
      if (allowed === undefined) return action
      // Because of the same rounding, a draw can be a forbidden action, about once in ten million draws: take the best
      // action then.
      return where(greater(sum(mul(oneHot(action, n), allowed), -1), 0), action, argMax(logits))
    },
    mode: () => argMax(logits),
    logProbability: (action) => {
      if (!sameShape(action.shape, logits.shape.slice(0, 1)))
        fail("categorical", "expected one action for each row", action, logits)
      return sum(mul(logProbabilities, oneHot(action, n)), -1)
    },
    entropy: () => neg(sum(mul(exp(logProbabilities), logProbabilities), -1)),
    parameters: [logProbabilities],
    klFrom: ([p]) => sum(mul(exp(p), sub(p, logProbabilities)), -1),
    outputs: () => ({ logits }),
  }
}

/** Returns `size` columns of a matrix, beginning with `from`; undefined if there is no matrix. */
const columnsOf = <T extends Tensor | undefined>(matrix: T, from: number, size: number): Tensor | T =>
  matrix === undefined ? matrix : slice(matrix, [0, from], [matrix.shape[0], size])

/** Returns one column of a matrix, of shape [rows]. */
const columnOf = (matrix: Tensor, index: number): Tensor => reshape(columnsOf(matrix, index, 1), [matrix.shape[0]])

/**
 * Makes a distribution over several independent choices, with `sizes[i]` options each, from the logits of all options,
 * of shape [batch, Σ sizes]. Actions are i32 of shape [batch, choices]. `allowed` has the shape of the logits.
 *
 * @example
 * ```ts
 * multiCategorical(Graph.input("logits", [8, 5]), [3, 2]).noiseSize // 2
 * ```
 */
export const multiCategorical = (logits: Tensor, sizes: ReadonlyArray<number>, allowed?: Tensor): Distribution => {
  const total = sizes.reduce((sum, size) => sum + size, 0)
  if (logits.shape.length !== 2 || logits.shape[1] !== total)
    fail("multiCategorical", `expected logits [batch, ${total}]`, logits)
  const [rows] = logits.shape
  let from = 0
  const choices = sizes.map((size) => {
    const choice = categorical(columnsOf(logits, from, size), columnsOf(allowed, from, size))
    from += size
    return choice
  })
  const together = (columns: ReadonlyArray<Tensor>): Tensor =>
    concat(
      columns.map((each) => reshape(each, [rows, 1])),
      1,
    )
  const added = (terms: ReadonlyArray<Tensor>): Tensor => terms.reduce((one, other) => add(one, other))
  return {
    noiseSize: sizes.length,
    sample: (noise) => together(choices.map((choice, index) => choice.sample(columnsOf(noise, index, 1)))),
    mode: () => together(choices.map((choice) => choice.mode())),
    logProbability: (action) => {
      if (!sameShape(action.shape, [rows, sizes.length]))
        fail("multiCategorical", `expected actions [batch, ${sizes.length}]`, action, logits)
      return added(choices.map((choice, index) => choice.logProbability(columnOf(action, index))))
    },
    entropy: () => added(choices.map((choice) => choice.entropy())),
    parameters: choices.flatMap((choice) => choice.parameters),
    klFrom: (parameters) => added(choices.map((choice, index) => choice.klFrom([parameters[index]]))),
    outputs: () => ({
      logits: concat(
        choices.map((choice) => choice.outputs().logits),
        1,
      ),
    }),
  }
}

/**
 * Makes a distribution over n independent switches from logits of shape [batch, n]: the probability of 1 is the sigmoid
 * of the logit. Actions are i32 of shape [batch, n].
 */
export const bernoulli = (logits: Tensor): Distribution => {
  if (logits.shape.length !== 2) fail("bernoulli", "expected logits [batch, n]", logits)
  const probability = sigmoid(logits)
  return {
    noiseSize: logits.shape[1],
    sample: (noise) => cast(less(noise, probability), "i32"),
    mode: () => cast(greater(logits, 0), "i32"),
    // log σ(x) = −softplus(−x) and log(1 − σ(x)) = −softplus(x), so log p(a) = a x − softplus(x).
    logProbability: (action) => {
      if (!sameShape(action.shape, logits.shape)) fail("bernoulli", "expected actions [batch, n]", action, logits)
      return sum(sub(mul(cast(action, "f32"), logits), softplus(logits)), -1)
    },
    entropy: () => sum(sub(softplus(logits), mul(probability, logits)), -1),
    parameters: [logits],
    // This follows from log p(a) above, with the expectation E[a] = σ(p) under the logits p.
    klFrom: ([p]) => sum(add(sub(mul(sigmoid(p), sub(p, logits)), softplus(p)), softplus(logits)), -1),
    outputs: () => ({ logits }),
  }
}

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
    parameters: [mean, logDeviation],
    klFrom: ([otherMean, otherLogDeviation]) => {
      const difference = sub(otherLogDeviation, logDeviation)
      const distance = square(div(sub(otherMean, mean), deviation))
      return sum(sub(mul(sub(add(exp(mul(difference, 2)), distance), 1), 0.5), difference), -1)
    },
    outputs: () => ({ mean, log_std: broadcastTo(logDeviation, mean.shape) }),
  }
}

export interface StateDependent {
  /** The features of each row, [batch, f]. */
  readonly features: Tensor
  /** The deviations of the elements of the matrix from features to noise, [f, n]. */
  readonly deviation: Tensor
}

/**
 * Makes Gaussians whose noise is a function of the features of a row (Raffin et al. 2021, arXiv:2005.05719): the action
 * is mean + features · M, where the elements of M are normal with mean 0 and the standard deviations `deviation`. As
 * long as M stays the same, equal rows have equal actions. Over all M, an action has the variance features² ·
 * deviation². A sample takes 2 f n uniform numbers per row; if only one row of them is passed, all rows share one
 * matrix.
 *
 * @example
 * ```ts
 * const policy = stateDependentGaussian(Graph.constant([0.5], [1, 1]), {
 *   features: Graph.constant([1, 2], [1, 2]),
 *   deviation: Graph.constant([0.1, 0.1], [2, 1]),
 * })
 * policy.noiseSize // 4
 * ```
 */
export const stateDependentGaussian = (mean: Tensor, { features, deviation }: StateDependent): Gaussian => {
  const [rows, f] = features.shape
  const [, n] = deviation.shape
  if (!sameShape(mean.shape, [rows, n]) || deviation.shape[0] !== f)
    fail("stateDependentGaussian", "expected means [batch, n], features [batch, f], deviations [f, n]", mean, deviation)
  const variance = matmul(square(features), square(deviation))
  const base = diagonalGaussian(mean, mul(log(add(variance, 1e-6)), 0.5))
  const noiseSize = 2 * f * n
  return {
    ...base,
    noiseSize,
    sample: (noise) => {
      const normal = normalFromUniform(noise)
      if (noise.shape[0] === 1) return add(mean, matmul(features, mul(reshape(normal, [f, n]), deviation)))
      const matrices = mul(reshape(normal, [rows, f, n]), deviation)
      return add(mean, reshape(matmul(reshape(features, [rows, 1, f]), matrices), [rows, n]))
    },
  }
}

/** Computes KL(p ‖ q) of each row, of two distributions of one kind. */
export const divergence = (p: Distribution, q: Distribution): Tensor => q.klFrom(p.parameters)

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

export const squashedGaussian = (mean: Tensor, logDeviation: Tensor): SquashedGaussian =>
  squashed(diagonalGaussian(mean, logDeviation))

/** Squashes the samples of Gaussians by tanh, as `squashedGaussian` does. */
export const squashed = (base: Gaussian): SquashedGaussian => {
  const { mean } = base
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
    // Squashing changes neither the parameters nor the KL divergence, so the base computes both.
    parameters: base.parameters,
    klFrom: base.klFrom,
    outputs: base.outputs,
  }
}
