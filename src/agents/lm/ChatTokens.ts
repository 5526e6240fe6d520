/**
 * Converts a conversation to one sequence of token ids, for the models that run in this process (`scripted:`, `builtin:`),
 * whose tokenizers are in `base/tokens/words.ts`. A new message only adds ids at the end of the sequence, so the prompts and
 * completions of a conversation can be joined into one training sample. Models with a chat template use
 * `base/tokens/ChatTemplate.ts` instead.
 */
import type { ChatMessage, LmRequest } from "./Chat.ts"
import type { Tokenizer } from "../../base/tokens/Tokenizer.ts"
import { end, roles } from "../../base/tokens/words.ts"

/** The part of a tokenizer that is needed here. */
export type Encoder = Pick<Tokenizer, "encode">

const textOf = (message: ChatMessage): string =>
  message.role === "assistant" && message.toolCalls !== undefined && message.toolCalls.length > 0
    ? message.content + JSON.stringify(message.toolCalls)
    : message.content

/** Encodes the tools and the messages of a request, followed by the id that begins the assistant's answer. */
export const promptIds = (
  tokenizer: Encoder,
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

/** Encodes an answer. The id that ends a message is added only if the answer is `finished`, i.e. was not cut off. */
export const completionIds = (tokenizer: Encoder, message: ChatMessage, finished: boolean): ReadonlyArray<number> => [
  ...tokenizer.encode(textOf(message)),
  ...(finished ? [end] : []),
]
