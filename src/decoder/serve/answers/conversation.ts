/** Converts the conversation of a request to the form that chat templates render. */
import { Effect } from "effect"
import { type ChatModel, promptOf } from "../../engine/ChatModel.ts"
import { type ApiError, badRequest } from "../ApiError.ts"
import type { ChatBody, RequestMessage } from "../requests.ts"

/** Returns the text of a message's content; the parts of a list are paragraphs. */
const textOf = Effect.fnUntraced(function* ({ content, role, tool_calls }: RequestMessage, place: string) {
  if (typeof content === "string") return content
  if (content === null || content === undefined) {
    if (role === "assistant" && (tool_calls ?? []).length > 0) return ""
    return yield* badRequest(`${place}.content: expected a text`, `${place}.content`)
  }
  const texts: Array<string> = []
  for (const [index, part] of content.entries()) {
    if (part.type !== "text" || typeof part.text !== "string") {
      const param = `${place}.content[${index}]`
      return yield* badRequest(`${param}: expected a part of type text, found type ${part.type}`, param)
    }
    texts.push(part.text)
  }
  return texts.join("\n")
})

/** Converts messages. */
const templateMessages = Effect.fnUntraced(function* (
  messages: ReadonlyArray<RequestMessage>,
): Effect.fn.Return<ReadonlyArray<Readonly<Record<string, unknown>>>, ApiError> {
  const converted: Array<Readonly<Record<string, unknown>>> = []
  for (const [index, message] of messages.entries()) {
    const content = yield* textOf(message, `messages[${index}]`)
    const calls = message.tool_calls ?? []
    converted.push({
      role: message.role === "developer" ? "system" : message.role,
      content,
      ...(typeof message.name === "string" ? { name: message.name } : {}),
      ...(typeof message.tool_call_id === "string" ? { tool_call_id: message.tool_call_id } : {}),
      ...(calls.length === 0
        ? {}
        : {
            tool_calls: calls.map(({ id, function: called }) => ({ id, type: "function", function: called })),
          }),
    })
  }
  return converted
})

/** Returns the prompt of a request's conversation, and the reader of its answers. */
export const conversationPrompt = Effect.fnUntraced(function* (
  chat: ChatModel,
  body: Pick<ChatBody, "messages" | "tools" | "tool_choice" | "add_generation_prompt" | "chat_template_kwargs">,
  maxTokens: number,
) {
  const { tool_choice: choice } = body
  const tools = body.tools ?? []
  return yield* promptOf(chat, {
    messages: yield* templateMessages(body.messages),
    tools,
    toolChoice: typeof choice === "object" && choice !== null ? { name: choice.function.name } : (choice ?? "auto"),
    addGenerationPrompt: body.add_generation_prompt ?? true,
    maxTokens,
    ...(body.chat_template_kwargs ? { variables: body.chat_template_kwargs } : {}),
  }).pipe(
    Effect.catchTag("EngineError", ({ reason, part = "messages", message }) => {
      const param = part === "toolChoice" ? "tool_choice" : part
      const code = reason === "promptTooLong" ? "context_length_exceeded" : null
      return Effect.fail(badRequest(`${param}: ${message}`, param, code))
    }),
  )
})
