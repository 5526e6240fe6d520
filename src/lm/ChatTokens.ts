/**
 * Converts text to token ids and back, and a conversation to one sequence of ids, for the models that run in this
 * process (`scripted:`, `builtin:`). A new message only adds ids at the end of the sequence, so the prompts and
 * completions of a conversation can be joined into one training sample. This file only computes.
 *
 * Id 0 ends a message. Ids 1 to 4 begin a message of the system, the user, the assistant and a tool, in this order. The
 * next 256 ids are the bytes of UTF-8. The remaining ids are words: first each word, then each word with a space before
 * it.
 */
import type { ChatMessage, LmRequest } from "./Chat.ts"
import { utf8 } from "../config/utf8.ts"

export interface Tokenizer {
  /** The number of different token ids. */
  readonly size: number
  readonly encode: (text: string) => ReadonlyArray<number>
  /** Inverts `encode` for well-formed text, and leaves out the ids that mark messages. */
  readonly decode: (ids: Iterable<number>) => string
}

export const end = 0
export const roles = { system: 1, user: 2, assistant: 3, tool: 4 } as const
const firstByte = 5
export const firstWord = firstByte + 256

const decoder = new TextDecoder("utf-8", { ignoreBOM: true })

/** Makes a tokenizer with an id for each of these words; other text becomes bytes. Throws on an invalid vocabulary. */
export const words = (vocabulary: ReadonlyArray<string>): Tokenizer => {
  const ids = new Map<string, number>()
  const texts: Array<Uint8Array> = []
  for (const text of [...vocabulary, ...vocabulary.map((word) => ` ${word}`)]) {
    if (/^\s*$|\S\s|\s$|^[^\S ]/.test(text))
      throw new RangeError(`vocabulary: expected a word without whitespace, found "${text}"`)
    if (ids.has(text)) throw new RangeError(`vocabulary: expected different words, found "${text}" twice`)
    ids.set(text, firstWord + texts.length)
    texts.push(utf8.encode(text))
  }
  return {
    size: firstWord + texts.length,
    encode: (text) => {
      const encoded: Array<number> = []
      // A piece is a word with the space before it, or a single character of other whitespace.
      for (const [piece] of text.matchAll(/ ?\S+|\s/gu)) {
        const id = ids.get(piece)
        if (id !== undefined) encoded.push(id)
        else for (const byte of utf8.encode(piece)) encoded.push(firstByte + byte)
      }
      return encoded
    },
    decode: (encoded) => {
      const bytes: Array<number> = []
      for (const id of encoded) {
        if (id >= firstWord) bytes.push(...texts[id - firstWord])
        else if (id >= firstByte) bytes.push(id - firstByte)
      }
      return decoder.decode(Uint8Array.from(bytes))
    },
  }
}

/** A tokenizer without a vocabulary: each byte of the UTF-8 text is a token. */
export const bytes: Tokenizer = words([])

const textOf = (message: ChatMessage): string =>
  message.role === "assistant" && message.toolCalls !== undefined && message.toolCalls.length > 0
    ? message.content + JSON.stringify(message.toolCalls)
    : message.content

/** Encodes the tools and the messages of a request, followed by the id that begins the assistant's answer. */
export const promptIds = (
  tokenizer: Tokenizer,
  { messages, tools }: Pick<LmRequest, "messages" | "tools">,
): ReadonlyArray<number> => {
  const ids: Array<number> = []
  const add = (role: keyof typeof roles, text: string): void => {
    ids.push(roles[role])
    for (const id of tokenizer.encode(text)) ids.push(id)
    ids.push(end)
  }
  if (tools.length > 0) add("system", JSON.stringify(tools))
  for (const message of messages) add(message.role, textOf(message))
  ids.push(roles.assistant)
  return ids
}

/** Encodes an answer. The id that ends a message follows only if it is `finished`, i.e. was not cut off. */
export const completionIds = (tokenizer: Tokenizer, message: ChatMessage, finished: boolean): ReadonlyArray<number> => [
  ...tokenizer.encode(textOf(message)),
  ...(finished ? [end] : []),
]
