/** Lists the formats in which models write tool calls, and finds the format that a chat template uses. */
import { hermes } from "./hermes.ts"
import { llama3 } from "./llama3.ts"
import { mistral } from "./mistral.ts"
import { mistralArgs } from "./mistralArgs.ts"
import { type FormatName, formatNames, type ToolFormat } from "./ToolFormat.ts"

export { collect, type AnswerEvent, type ReadAnswer, type ToolFormat, type ToolReader } from "./ToolFormat.ts"
export { formatNames, hermes, llama3, mistral, mistralArgs, type FormatName }

export const byName: Readonly<Record<FormatName, ToolFormat>> = { hermes, llama3, mistral, "mistral-args": mistralArgs }

/**
 * Finds the format in which a chat template writes tool calls; null if the template has no tools. Most templates without a tag
 * of their own write a call as a JSON object, as Llama 3 does.
 */
export const formatOf = (template: string): ToolFormat | null => {
  if (!/\btools\b/.test(template)) return null
  if (template.includes("<tool_call>")) return hermes
  if (template.includes("[TOOL_CALLS]")) return template.includes("[ARGS]") ? mistralArgs : mistral
  return llama3
}
