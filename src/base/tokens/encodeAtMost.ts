/**
 * Encodes texts of strangers, such as the prompts that a server gets: a text that has too many tokens is refused before all of
 * it is encoded, and a long text lets other fibers run meanwhile.
 */
import { Effect } from "effect"
import { FormatError } from "../formats/FormatError.ts"
import type { EncodeOptions, Tokenizer } from "./Tokenizer.ts"

/** Returns the most characters that a text of this many tokens can have. */
export const mostCharacters = ({ longestToken }: Pick<Tokenizer, "longestToken">, tokens: number): number =>
  tokens * longestToken

/** The number of characters that are encoded at once to count tokens, which takes some 50 ms. */
const atOnce = 16 * 1024

/** The most tokens that a part has more than its share of the text, because a token of the text lies across its ends. */
const atEnds = 16

/**
 * Encodes a text of at most `most` tokens. The message of its error is the end of a sentence about the text, such as
 * `is too long; expected at most 2048 tokens`.
 */
export const encodeAtMost = Effect.fnUntraced(function* (
  tokenizer: Pick<Tokenizer, "encode" | "longestToken">,
  text: string,
  most: number,
  options: EncodeOptions = {},
): Effect.fn.Return<ReadonlyArray<number>, FormatError> {
  const characters = mostCharacters(tokenizer, most)
  if (text.length > characters) {
    const message = `has ${text.length} characters; expected at most ${most} tokens (${characters} characters)`
    return yield* new FormatError({ message })
  }
  if (text.length > 2 * atOnce) {
    let count = 0
    for (let from = 0; from < text.length; from += atOnce) {
      yield* Effect.yieldNow
      count += Math.max(0, tokenizer.encode(text.slice(from, from + atOnce)).length - atEnds)
      if (count > most) return yield* new FormatError({ message: `is too long; expected at most ${most} tokens` })
    }
  }
  const ids = tokenizer.encode(text, options)
  return ids.length > most
    ? yield* new FormatError({ message: `has ${ids.length} tokens; expected at most ${most} tokens` })
    : ids
})
