/**
 * Arranges the samples of one window so that prompt tokens which several samples have in common, such as the prompt of a
 * group, are stored once. Only tokens of prompts are shared, never tokens that a sample learns from. If routers are replayed,
 * shared tokens also have the same experts.
 *
 * The samples are sorted by their prompts. So a sample has no more first tokens in common with any earlier sample than with
 * the one directly before it.
 *
 * @example
 * ```ts
 * const window = sharedPrompts<Prompted>()
 * window.add({ tokens: Int32Array.of(1, 2, 3), prompt: 2 })
 * window.add({ tokens: Int32Array.of(1, 2, 4, 5), prompt: 2 })
 * window.tokens() // 5: the prompt 1, 2 once, and the answers 3 and 4, 5
 * ```
 */
import type { RoutedExperts } from "../../base/formats/routedExperts.ts"
import { compareExperts } from "./routerReplay.ts"
import type { TrainingSample } from "./TrainingSample.ts"

/** A sequence of tokens. */
export interface Prompted {
  readonly tokens: Int32Array
  /**
   * The number of first tokens that may be shared. It is less than the number of all tokens, so that every sample has a token
   * of its own.
   */
  readonly prompt: number
  /** The experts of the tokens, if they are replayed. */
  readonly experts?: RoutedExperts | undefined
}

/** Returns how many first tokens a sample may share: those before the first token to learn from, but never all. */
export const promptLengthOf = ({ tokens, mask }: Pick<TrainingSample, "tokens" | "mask">): number => {
  const first = mask.indexOf(1)
  return Math.min(first === -1 ? tokens.length : first, tokens.length - 1)
}

/** Compares the tokens of two prompts at a position, and the experts of these tokens. */
const difference = (a: Prompted, b: Prompted, at: number): number =>
  a.tokens[at] - b.tokens[at] || compareExperts(a.experts, b.experts, at)

/** Returns how many first tokens two prompts have in common. */
const commonLength = (a: Prompted, b: Prompted): number => {
  const most = Math.min(a.prompt, b.prompt)
  let at = 0
  while (at < most && difference(a, b, at) === 0) at++
  return at
}

/** Compares two prompts token by token. A prompt comes before its continuations. */
const compare = (a: Prompted, b: Prompted): number => {
  const at = commonLength(a, b)
  return at < a.prompt && at < b.prompt ? difference(a, b, at) : a.prompt - b.prompt
}

export interface SharedPrompts<A extends Prompted> {
  /** Returns the number of tokens of the window. */
  readonly tokens: () => number
  /** Returns how many tokens a sample would add to the window. */
  readonly cost: (sample: A) => number
  /** Adds a sample, and returns how many tokens that adds to the window. */
  readonly add: (sample: A) => number
  /**
   * Returns the samples in their order in the window, each with the number of tokens that it shares with the sample before
   * it.
   */
  readonly samples: () => ReadonlyArray<{ readonly sample: A; readonly shared: number }>
}

/** Makes an empty window. Samples with the same prompt keep the order in which they were added. */
export const sharedPrompts = <A extends Prompted>(): SharedPrompts<A> => {
  const sorted: Array<A> = []
  let tokens = 0
  /** Returns the position at which a sample is inserted: after those with the same prompt. */
  const placeOf = (sample: A): number => {
    let [low, high] = [0, sorted.length]
    while (low < high) {
      const middle = (low + high) >> 1
      if (compare(sorted[middle], sample) <= 0) low = middle + 1
      else high = middle
    }
    return low
  }
  /**
   * Returns the number of tokens that a sample adds at a position. Only its two neighbours matter, because the samples are
   * sorted.
   */
  const costAt = (place: number, sample: A): number => {
    const before = place === 0 ? 0 : commonLength(sorted[place - 1], sample)
    const after = place === sorted.length ? 0 : commonLength(sorted[place], sample)
    return sample.tokens.length - Math.max(before, after)
  }
  return {
    tokens: () => tokens,
    cost: (sample) => costAt(placeOf(sample), sample),
    add: (sample) => {
      const place = placeOf(sample)
      const cost = costAt(place, sample)
      tokens += cost
      sorted.splice(place, 0, sample)
      return cost
    },
    samples: () =>
      sorted.map((sample, at) => ({ sample, shared: at === 0 ? 0 : commonLength(sorted[at - 1], sample) })),
  }
}
