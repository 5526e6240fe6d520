import type { ToolResult } from "../agent/Agent.ts"
import type { ChatMessage } from "../lm/Chat.ts"

/** Makes the message with which a model gets the result of a tool. */
export const toolMessage = ({ toolCallId, toolName, content, isError }: ToolResult): ChatMessage => ({
  role: "tool",
  toolCallId,
  toolName,
  content,
  ...(isError ? { isError } : {}),
})
