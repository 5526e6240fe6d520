/**
 * Computes the weights of tokens, before a program runs. A loss over tokens is Σ w_t L_t; the weights hold the mask and
 * the normalisation, so that one program serves all normalisations, and so that the losses of the micro-batches of a
 * step add up to the loss of the step, however its sequences are divided.
 *
 * @example
 * ```ts
 * const masks = [Uint8Array.of(0, 1, 1), Uint8Array.of(1)] // the first token is a part of the prompt
 * Losses.tokenWeights({ masks, normalisation: { type: "token_mean" } }) // [[0, 1/3, 1/3], [1/3]]
 * Losses.tokenWeights({ masks, normalisation: { type: "sequence_mean" } }) // [[0, 1/4, 1/4], [1/2]]
 * Losses.tokenWeights({ masks, normalisation: { type: "constant", tokens: 10 } }) // [[0, 1/20, 1/20], [1/20]]
 * Losses.tokenWeights({ masks, groups: [7, 7], normalisation: { type: "group_mean" } }) // [[0, 1/3, 1/3], [1/3]]
 * ```
 */
import { Schema } from "effect"
import { bounded } from "../../base/config/fields.ts"

/**
 * Defines how the losses of a step's tokens are averaged. B is the number of sequences with a token that counts, and G the
 * number of groups with such a sequence; a group are the sequences of one prompt.
 *
 * | type | weight of a token | used by |
 * | --- | --- | --- |
 * | `token_mean` | 1 / all tokens that count | DAPO, CISPO, supervised fine-tuning |
 * | `sequence_mean` | 1 / (B · tokens of its sequence that count) | GRPO, GSPO |
 * | `sequence_sum` | 1 / B | RLOO |
 * | `group_mean` | 1 / (G · tokens of its group that count) | ScaleRL |
 * | `constant` | 1 / (B · `tokens`) | Dr. GRPO, with the largest number of tokens that a completion may have |
 */
export const Normalisation = Schema.Union([
  Schema.Struct({ type: Schema.Literal("token_mean") }),
  Schema.Struct({ type: Schema.Literal("sequence_mean") }),
  Schema.Struct({ type: Schema.Literal("sequence_sum") }),
  Schema.Struct({ type: Schema.Literal("group_mean") }),
  Schema.Struct({ type: Schema.Literal("constant"), tokens: bounded("count") }),
]).annotate({
  expected: "a normalisation whose type is token_mean, sequence_mean, sequence_sum, group_mean or constant",
})
export type Normalisation = typeof Normalisation.Type

/** The size of all sequences of a step, over all micro-batches and ranks. */
export interface StepTotals {
  /** The number of sequences with at least one token that counts. */
  readonly sequences: number
  /** The number of tokens that count. */
  readonly tokens: number
  /** The number of tokens that count in each group with such a token, by the number of the group. */
  readonly groups: ReadonlyMap<number, number>
}

/** Returns the number of tokens that count: those whose mask is not 0. */
export const countedTokens = (mask: ArrayLike<number>): number => {
  let tokens = 0
  for (let at = 0; at < mask.length; at++) if (mask[at] !== 0) tokens++
  return tokens
}

/**
 * Sums up the sizes of the sequences of a step.
 *
 * @example
 * ```ts
 * const totals = Losses.totalsOf([Uint8Array.of(0, 1, 1), Uint8Array.of(1), Uint8Array.of(0)], [5, 5, 6])
 * totals // { sequences: 2, tokens: 3, groups: new Map([[5, 3]]) }
 * ```
 */
export const totalsOf = (
  masks: Iterable<ArrayLike<number>>,
  /** The number of each sequence's group; without it, each sequence is a group of its own. */
  groupOf?: ArrayLike<number>,
): StepTotals => {
  let sequences = 0
  let tokens = 0
  let at = 0
  const groups = new Map<number, number>()
  for (const mask of masks) {
    const counted = countedTokens(mask)
    const group = groupOf?.[at] ?? at
    if (counted > 0) {
      sequences++
      groups.set(group, (groups.get(group) ?? 0) + counted)
    }
    tokens += counted
    at++
  }
  return { sequences, tokens, groups }
}

/**
 * Returns the weight of each counted token of a sequence, which is the same for all of them. Use it where the sequences
 * of a step are not all in memory at once.
 *
 * @example
 * ```ts
 * const totals = Losses.totalsOf([new Uint8Array(20).fill(1), Uint8Array.of(1), Uint8Array.of(1), Uint8Array.of(1)])
 * Losses.weightOfTokens({ tokens: 20, group: 0, totals, normalisation: { type: "sequence_mean" } }) // 1 / (4 · 20)
 * ```
 */
export const weightOfTokens = ({
  tokens,
  group,
  totals,
  normalisation,
}: {
  /** The number of tokens of the sequence that count. */
  readonly tokens: number
  /** The number of its group in `totals`. */
  readonly group: number
  readonly totals: StepTotals
  readonly normalisation: Normalisation
}): number => {
  if (tokens === 0) return 0
  const inGroup = totals.groups.get(group) ?? 0
  if (totals.sequences < 1 || totals.tokens < tokens || inGroup < tokens)
    throw new RangeError(
      `totals: expected those of a step with this sequence of ${tokens} tokens, found ${totals.sequences} sequences ` +
        `and ${totals.tokens} tokens, ${inGroup} of them in its group`,
    )
  switch (normalisation.type) {
    case "token_mean":
      return 1 / totals.tokens
    case "sequence_mean":
      return 1 / (totals.sequences * tokens)
    case "sequence_sum":
      return 1 / totals.sequences
    case "group_mean":
      return 1 / (totals.groups.size * inGroup)
    case "constant":
      return 1 / (totals.sequences * normalisation.tokens)
  }
}

/** Returns the weights of all tokens of a step's sequences. A token whose mask is 0 has the weight 0. */
export const tokenWeights = ({
  masks,
  groups,
  normalisation,
}: {
  /** One mask for each sequence: 1 for tokens that count, 0 for prompts, the results of tools, and padding. */
  readonly masks: ReadonlyArray<ArrayLike<number>>
  /** The number of each sequence's group; without it, each sequence is a group of its own. */
  readonly groups?: ArrayLike<number>
  readonly normalisation: Normalisation
}): ReadonlyArray<Float32Array> => {
  const totals = totalsOf(masks, groups)
  return masks.map((mask, at) => {
    const group = groups?.[at] ?? at
    const weight = weightOfTokens({ tokens: countedTokens(mask), group, totals, normalisation })
    return Float32Array.from(mask, (counts) => (counts === 0 ? 0 : weight))
  })
}
