/**
 * Learns the values of contexts, and computes advantages of tokens by them (generalised advantage estimation). The value of a
 * context is linear in its features, the hidden state x of the decoder that predicts the next token:
 *
 *     V = x · w / √n + b
 *
 * These are plain functions. The state is a value: learning returns a new one.
 */
import { gae } from "../../rl/returns/Returns.ts"
import type { CriticConfig } from "./CriticConfig.ts"

/** The weights of a critic, of which the last one is b, and the moments of Adam. All arrays have the same length. */
export interface CriticState {
  readonly weights: Float64Array
  readonly first: Float64Array
  readonly second: Float64Array
  /** The number of updates. */
  readonly updates: number
}

/** Makes a critic for features of `size` numbers, for which all values are 0. */
export const makeCritic = (size: number): CriticState => ({
  weights: new Float64Array(size + 1),
  first: new Float64Array(size + 1),
  second: new Float64Array(size + 1),
  updates: 0,
})

/** The tokens that a model wrote in an episode, in their order. */
export interface Chain {
  /** The features of the contexts of all tokens, one after another. */
  readonly features: Float32Array
  /** The number of tokens, which is at least 1. */
  readonly length: number
  /** The reward of the episode, which comes after its last token. */
  readonly reward: number
  /** The features of the context after the last token, whose value counts after the reward; without them nothing does. */
  readonly after?: Float32Array
}

/** Computes the values of the contexts of a chain. */
export const valuesOf = (
  { weights }: CriticState,
  { features, length }: Pick<Chain, "features" | "length">,
): Float64Array => {
  const size = weights.length - 1
  const scale = 1 / Math.sqrt(size)
  return Float64Array.from({ length }, (_, token) => {
    let sum = 0
    for (let at = 0; at < size; at++) sum += features[token * size + at] * weights[at]
    return sum * scale + weights[size]
  })
}

/**
 * Returns the slope of the clipped value loss of PPO at one value, half of max((V − G)², (V_old + clip(V − V_old, ±c) − G)²).
 */
export const valueSlope = (value: number, old: number, target: number, clip: number | null): number => {
  const error = value - target
  if (clip === null || Math.abs(value - old) <= clip) return error
  const clipped = old + Math.sign(value - old) * clip - target
  // Where the clipped error is the larger one, no gradient flows.
  return error ** 2 >= clipped ** 2 ? error : 0
}

const [decay1, decay2, epsilon] = [0.9, 0.999, 1e-8]

/** Takes a step of Adam. */
const updated = (state: CriticState, gradient: Float64Array, lr: number): CriticState => {
  const updates = state.updates + 1
  const first = state.first.map((moment, at) => decay1 * moment + (1 - decay1) * gradient[at])
  const second = state.second.map((moment, at) => decay2 * moment + (1 - decay2) * gradient[at] ** 2)
  const [unbias1, unbias2] = [1 - decay1 ** updates, 1 - decay2 ** updates]
  const weights = state.weights.map(
    (weight, at) => weight - (lr * (first[at] / unbias1)) / (Math.sqrt(second[at] / unbias2) + epsilon),
  )
  return { weights, first, second, updates }
}

/** Adds the gradient of one value, by its slope, to a sum. */
const addGradient = (sum: Float64Array, features: Float32Array, token: number, slope: number): void => {
  const size = sum.length - 1
  const scaled = slope / Math.sqrt(size)
  for (let at = 0; at < size; at++) sum[at] += scaled * features[token * size + at]
  sum[size] += slope
}

const meanOf = (all: ReadonlyArray<Float64Array>): number => {
  let [sum, count] = [0, 0]
  for (const each of all) for (const value of each) [sum, count] = [sum + value, count + 1]
  return count === 0 ? 0 : sum / count
}

const squared = (all: ReadonlyArray<Float64Array>, mean: number) => all.map((each) => each.map((x) => (x - mean) ** 2))

interface Learned {
  readonly state: CriticState
  /** The advantages of the tokens of each chain, scaled to mean 0 and deviation 1 over all tokens. */
  readonly advantages: ReadonlyArray<Float64Array>
  /** The mean squared error of the values before the update. */
  readonly valueLoss: number
  /** The share of the targets' variance that the values explained before the update; 0 if the targets are all equal. */
  readonly explainedVariance: number
}

/**
 * Computes the advantages of a step's tokens by the values of the given state, and learns the values: `epochs` updates over all
 * tokens towards the targets A + V.
 *
 * @example
 * ```ts
 * const chain = { features: Float32Array.of(1, 0, 0, 1), length: 2, reward: 1 }
 * const settings = { gamma: 1, lambda: 1, lr: 0.01, epochs: 1, clip: null }
 * const { state, advantages } = learned(makeCritic(2), [chain, { ...chain, reward: 0 }], settings)
 * advantages // [1, 1] for the first chain, and [−1, −1] for the second one
 * ```
 */
export const learned = (
  state: CriticState,
  chains: ReadonlyArray<Chain>,
  config: Omit<CriticConfig, "truncated">,
): Learned => {
  const { gamma, lambda, lr, epochs, clip } = config
  const old = chains.map((chain) => valuesOf(state, chain))
  const raw = chains.map(({ length, reward, after }, at) => {
    const [rewards, terminated] = [new Float64Array(length), new Uint8Array(length)]
    rewards[length - 1] = reward
    terminated[length - 1] = after === undefined ? 1 : 0
    const lastValues = after === undefined ? Float64Array.of(0) : valuesOf(state, { features: after, length: 1 })
    return gae({ rewards, values: old[at], lastValues, terminated, gamma, lambda })
  })
  const targets = raw.map((advantages, at) => advantages.map((advantage, token) => advantage + old[at][token]))
  const tokens = chains.reduce((sum, { length }) => sum + length, 0)
  let next = state
  for (let epoch = 0; epoch < epochs; epoch++) {
    const gradient = new Float64Array(state.weights.length)
    for (const [at, chain] of chains.entries()) {
      const values = valuesOf(next, chain)
      for (let token = 0; token < chain.length; token++) {
        const slope = valueSlope(values[token], old[at][token], targets[at][token], clip)
        addGradient(gradient, chain.features, token, slope / tokens)
      }
    }
    next = updated(next, gradient, lr)
  }
  const mean = meanOf(raw)
  const deviation = Math.sqrt(meanOf(squared(raw, mean)))
  const valueLoss = meanOf(squared(raw, 0))
  const variance = meanOf(squared(targets, meanOf(targets)))
  return {
    state: next,
    advantages: raw.map((each) => each.map((advantage) => (advantage - mean) / (deviation + 1e-8))),
    valueLoss,
    // The advantage is target − value, so its variance is the part that the values don't explain.
    explainedVariance: variance === 0 ? 0 : 1 - deviation ** 2 / variance,
  }
}
