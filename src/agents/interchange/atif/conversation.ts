/**
 * Returns the messages that the steps of an ATIF trajectory add to the model's prompt. The writer and the reader both use these
 * pure functions, so that a prompt that was split into steps is put together again as it was.
 */
import { Option, Schema } from "effect"
import type { ToolResult } from "../../agent/Agent.ts"
import type { ChatMessage, ToolCall } from "../../lm/Chat.ts"
import { toolMessage } from "../toolMessage.ts"
import {
  type AtifResult,
  type AtifStep,
  type AtifToolCall,
  type Content,
  OwnResult,
  OwnStep,
  OwnToolCall,
  ownKey,
} from "./Trajectory.ts"

/** Makes a function that reads what we added to an `extra` field; undefined if we added nothing. */
export const ownIn = <S extends Schema.Codec<unknown, unknown>>(schema: S) => {
  const decode = Schema.decodeUnknownOption(schema)
  return (extra: { readonly [key: string]: unknown } | null | undefined): S["Type"] | undefined =>
    extra === null || extra === undefined || !Object.hasOwn(extra, ownKey)
      ? undefined
      : Option.getOrUndefined(decode(extra[ownKey]))
}

export const ownStep = ownIn(OwnStep)
const ownToolCall = ownIn(OwnToolCall)
const ownResult = ownIn(OwnResult)

/** Returns the text of a content. Its parts that are no texts, such as pictures, become their type in brackets. */
export const textOf = (content: Content | null | undefined): string => {
  if (content === null || content === undefined) return ""
  return typeof content === "string" ? content : content.map(({ type, text }) => text ?? `[${type}]`).join("\n")
}

const toolCallOf = ({ tool_call_id, function_name, arguments: given, extra }: AtifToolCall): ToolCall => {
  const own = ownToolCall(extra)
  return { id: own?.id ?? tool_call_id, name: function_name, arguments: own?.arguments ?? JSON.stringify(given) }
}

/** Returns the calls of tools in a step. */
export const toolCallsOf = ({ tool_calls }: Pick<AtifStep, "tool_calls">): ReadonlyArray<ToolCall> =>
  (tool_calls ?? []).map(toolCallOf)

/** Returns the id of the call whose result this is; undefined if it is the answer of an env. */
const callIdOf = ({ source_call_id, extra }: AtifResult): string | undefined =>
  ownResult(extra)?.toolCallId ?? source_call_id ?? undefined

/** Returns the results of tools in a step, without what the env answered to an action. */
export const toolResultsOf = ({ observation, tool_calls }: AtifStep): ReadonlyArray<ToolResult> => {
  // Ids need not be unique; the first call counts.
  const names = new Map((tool_calls ?? []).toReversed().map((call) => [call.tool_call_id, call.function_name]))
  return (observation?.results ?? []).flatMap((result) => {
    const toolCallId = callIdOf(result)
    if (toolCallId === undefined) return []
    const own = ownResult(result.extra)
    const { source_call_id: called } = result
    return {
      toolCallId,
      toolName: own?.toolName ?? (typeof called === "string" ? names.get(called) : undefined) ?? "",
      content: textOf(result.content),
      isError: own?.isError ?? false,
    }
  })
}

/** Returns the texts that an env answered to an action that is no call of a tool. */
export const answersOf = ({ observation }: AtifStep): ReadonlyArray<string> =>
  (observation?.results ?? []).flatMap((result) => {
    const text = textOf(result.content)
    return callIdOf(result) === undefined && text !== "" ? [text] : []
  })

/** Returns the messages that a step adds to the conversation. */
export const messagesOf = (step: AtifStep): ReadonlyArray<ChatMessage> => {
  const own = ownStep(step.extra)
  if (own?.unseen === true) return []
  const content = textOf(step.message)
  const answers = own?.env === undefined ? answersOf(step) : []
  const answered = answers.map((text): ChatMessage => ({ role: "user", content: text }))
  if (step.source !== "agent") return [{ role: step.source, content }, ...answered]
  const toolCalls = toolCallsOf(step)
  return [
    toolCalls.length === 0 ? { role: "assistant", content } : { role: "assistant", content, toolCalls },
    ...toolResultsOf(step).map(toolMessage),
    ...answered,
  ]
}
