/** Decodes token ids to text one by one, for all tokenizers. It only computes. */
import type { StreamDecoder } from "./Tokenizer.ts"

/** Makes a decoder of tokens that are bytes of UTF-8. `bytesOf` returns none for a token that adds nothing. */
export const byteStream = (bytesOf: (id: number) => Uint8Array): StreamDecoder => {
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true })
  return {
    push: (id) => decoder.decode(bytesOf(id), { stream: true }),
    end: () => decoder.decode(),
  }
}

/** Decodes all ids at once. */
export const decodeAll = (stream: StreamDecoder, ids: Iterable<number>): string => {
  let text = ""
  for (const id of ids) text += stream.push(id)
  return text + stream.end()
}

/**
 * Makes a decoder from a function that decodes a list of tokens, for tokenizers in which the text of a token depends on
 * its neighbours. In each step it decodes only the last few tokens: some whose text was returned already, as context,
 * and those whose text was not.
 *
 * `decode` must have this property: the text of a list begins with the text of each shorter list from the same start,
 * except for an incomplete character, which it writes as `�` at the end.
 */
export const windowStream = (decode: (ids: ReadonlyArray<number>) => string): StreamDecoder => {
  /** The last tokens: the text of the first `done` of them was returned already, and they serve as context. */
  let ids: Array<number> = []
  let done = 0
  let context = ""
  const next = (isLast: boolean): string => {
    const text = decode(ids)
    // The character may become complete with the next token.
    if (!isLast && text.endsWith("\ufffd")) return ""
    const added = text.slice(context.length)
    // A token without a text of its own is no context, so keep the tokens before it.
    if (added === "" && !isLast) return ""
    ids = ids.slice(done)
    done = ids.length
    context = decode(ids)
    return added
  }
  return {
    push: (id) => {
      ids.push(id)
      return next(false)
    },
    end: () => (ids.length > done ? next(true) : ""),
  }
}
