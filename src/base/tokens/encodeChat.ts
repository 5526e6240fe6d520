/**
 * Encodes a conversation as one sequence of tokens, with a mask of the tokens that the assistant writes. Each answer is
 * encoded separately from the text before it, as a model reads and writes them. So a longer conversation begins with
 * the tokens of the shorter one.
 *
 * @example
 * ```ts
 * const { tokenizer, template } = yield* ScratchTokenizers.byteLevel()
 * const messages = [{ role: "user", content: "2 + 2?" }, { role: "assistant", content: "4" }]
 * const { ids, mask } = yield* encodeChat(tokenizer, template, { messages })
 * tokenizer.decode(ids.filter((_, at) => mask[at] === 1)) // "4": the answer's end has no text
 * ```
 */
import { Effect } from "effect"
import { FormatError } from "../formats/FormatError.ts"
import type { ChatTemplate, ChatRenderOptions } from "./ChatTemplate.ts"
import type { Tokenizer } from "./Tokenizer.ts"

export interface EncodeChatOptions extends Omit<ChatRenderOptions, "continueFinalMessage"> {
  /** The tokens that end a message of the assistant. Default: the tokenizer's `eos`. */
  readonly eosIds?: ReadonlyArray<number> | undefined
  /**
   * The tokens of answers that a model generated, by the index of the message. They replace the tokens that the answer's
   * text would have, because the same text can be written with other tokens.
   */
  readonly sampled?: ReadonlyMap<number, ReadonlyArray<number>> | undefined
}

export interface EncodedChat {
  readonly ids: ReadonlyArray<number>
  /** A number per token: 1 if the assistant writes it, including the token that ends its message, and 0 otherwise. */
  readonly mask: ReadonlyArray<number>
}

/** Encodes a conversation. Fails if the template changes earlier messages when a message is added. */
export const encodeChat = Effect.fnUntraced(function* (
  tokenizer: Tokenizer,
  template: ChatTemplate,
  { eosIds, sampled = new Map(), messages, addGenerationPrompt = false, ...others }: EncodeChatOptions,
): Effect.fn.Return<EncodedChat, FormatError> {
  const ends = new Set(eosIds ?? (tokenizer.special.eos === null ? [] : [tokenizer.special.eos]))
  const ids: Array<number> = []
  const mask: Array<number> = []
  const add = (more: ReadonlyArray<number>, isAnswer: boolean): void => {
    for (const id of more) {
      ids.push(id)
      mask.push(isAnswer ? 1 : 0)
    }
  }
  let text = ""
  /** Renders the first messages, and returns the text that follows the text so far. */
  const next = Effect.fnUntraced(function* (count: number, addGenerationPrompt: boolean) {
    const rendered = yield* template.render({ ...others, messages: messages.slice(0, count), addGenerationPrompt })
    if (!rendered.startsWith(text)) {
      const problem = `expected a template that keeps the text of earlier messages; message ${count} changes it`
      return yield* new FormatError({ path: template.path, message: `${template.path}: ${problem}` })
    }
    const added = rendered.slice(text.length)
    text = rendered
    return added
  })
  for (const [index, { role }] of messages.entries()) {
    if (role !== "assistant") continue
    add(tokenizer.encode(yield* next(index, true)), false)
    const answer = tokenizer.encode(yield* next(index + 1, false))
    const at = answer.findIndex((id) => ends.has(id))
    const length = at < 0 ? answer.length : at + 1
    const generated = sampled.get(index)
    add(generated ?? answer.slice(0, length), true)
    // An answer that was cut off does not end with an end token.
    const isCut = generated !== undefined && at >= 0 && !ends.has(generated.at(-1) ?? -1)
    add(answer.slice(isCut ? at : length), false)
  }
  add(tokenizer.encode(yield* next(messages.length, addGenerationPrompt)), false)
  return { ids, mask }
})
