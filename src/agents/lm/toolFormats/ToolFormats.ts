/** Lists the ways in which models write calls of tools, and finds the one that a chat template uses. */
import { hermes } from "./hermes.ts"
import { llama3 } from "./llama3.ts"
import { type FormatName, formatNames, type ToolFormat } from "./ToolFormat.ts"

export { collect, type AnswerEvent, type ReadAnswer, type ToolFormat, type ToolReader } from "./ToolFormat.ts"
export { formatNames, hermes, llama3, type FormatName }

export const byName: Readonly<Record<FormatName, ToolFormat>> = { hermes, llama3 }

/** Finds the format in which a chat template writes calls of tools; null if the template knows no tools. */
export const formatOf = (template: string): ToolFormat | null => {
  if (!/\btools\b/.test(template)) return null
  if (template.includes("<tool_call>")) return hermes
  return /python_tag|"parameters"|ipython/.test(template) ? llama3 : null
}
