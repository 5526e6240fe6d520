/**
 * Encodes texts from strangers, such as the prompts of requests to a server. A text with too many tokens is refused
 * before all of it is encoded, and during a long text other fibers can run.
 */
import { Effect } from "effect"
import { FormatError } from "../formats/FormatError.ts"
import type { EncodeOptions, Tokenizer } from "./Tokenizer.ts"

/** Returns the most characters that a text of this many tokens can have. */
export const mostCharacters = ({ longestToken }: Pick<Tokenizer, "longestToken">, tokens: number): number =>
  tokens * longestToken

/** To count tokens, a text is encoded in parts of this many characters, which take some 50 ms each. */
const atOnce = 16 * 1024

/**
 * The largest number of tokens by which cutting can raise the count of a part, because a token of the whole text lies
 * across the cut.
 */
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
