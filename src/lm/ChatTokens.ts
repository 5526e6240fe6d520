/**
 * Text as token ids and back, and a whole conversation as one sequence of them: what is said after is added to the end,
 * so that prompts and completions of a conversation can be put together to one sample.
 *
 * Ids: 0 ends a message; 1 to 4 begin one of the system, the user, the assistant or a tool; then the 256 bytes of
 * UTF-8; then words, each once as it is and once with a space before it.
 */
import type { ChatMessage, ToolSpec } from "./Chat.ts"
import { utf8 } from "../config/utf8.ts"

export interface Tokenizer {
  /** How many ids there are. */
  readonly size: number
  readonly encode: (text: string) => ReadonlyArray<number>
  /** Of what `encode` gave, the same text again, if it was well-formed. Marks of messages are left out. */
  readonly decode: (ids: Iterable<number>) => string
}

export const end = 0
export const roles = { system: 1, user: 2, assistant: 3, tool: 4 } as const
const firstByte = 5
export const firstWord = firstByte + 256

const decoder = new TextDecoder("utf-8", { ignoreBOM: true })

/**
 * Knows these words; what else there is in a text goes as bytes.
 *
 * @example
 * ```ts
 * const tokenizer = words(["yes", "no"])
 * tokenizer.decode(tokenizer.encode("yes or no")) // "yes or no"
 * ```
 */
export const words = (vocabulary: ReadonlyArray<string>): Tokenizer => {
  const ids = new Map<string, number>()
  const texts: Array<Uint8Array> = []
  for (const text of [...vocabulary, ...vocabulary.map((word) => ` ${word}`)]) {
    if (/^\s*$|\S\s|\s$|^[^\S ]/.test(text)) throw new RangeError(`"${text}": expected a word without blanks`)
    if (ids.has(text)) throw new RangeError(`"${text}" stands twice in the vocabulary`)
    ids.set(text, firstWord + texts.length)
    texts.push(utf8.encode(text))
  }
  return {
    size: firstWord + texts.length,
    encode: (text) => {
      const found: Array<number> = []
      for (const [piece] of text.matchAll(/ ?\S+|\s/gu)) {
        const id = ids.get(piece)
        if (id !== undefined) found.push(id)
        else for (const byte of utf8.encode(piece)) found.push(firstByte + byte)
      }
      return found
    },
    decode: (all) => {
      const bytes: Array<number> = []
      for (const id of all) {
        if (id >= firstWord) bytes.push(...texts[id - firstWord])
        else if (id >= firstByte) bytes.push(id - firstByte)
      }
      return decoder.decode(Uint8Array.from(bytes))
    },
  }
}

/** Knows no words: every byte is a token. */
export const bytes: Tokenizer = words([])

const said = (message: ChatMessage): string =>
  message.role === "assistant" && message.toolCalls !== undefined && message.toolCalls.length > 0
    ? message.content + JSON.stringify(message.toolCalls)
    : message.content

/** Everything that a model is told, up to where it begins to speak. */
export const promptIds = (
  tokenizer: Tokenizer,
  { messages, tools }: { readonly messages: ReadonlyArray<ChatMessage>; readonly tools: ReadonlyArray<ToolSpec> },
): ReadonlyArray<number> => {
  const ids: Array<number> = []
  const add = (role: keyof typeof roles, text: string): void => {
    ids.push(roles[role])
    for (const id of tokenizer.encode(text)) ids.push(id)
    ids.push(end)
  }
  if (tools.length > 0) add("system", JSON.stringify(tools))
  for (const message of messages) add(message.role, said(message))
  ids.push(roles.assistant)
  return ids
}

/** What a model says; one that was cut off has no end. */
export const completionIds = (tokenizer: Tokenizer, message: ChatMessage, finished: boolean): ReadonlyArray<number> => [
  ...tokenizer.encode(said(message)),
  ...(finished ? [end] : []),
]
