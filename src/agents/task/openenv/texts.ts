/** Makes texts for an agent from what a server of OpenEnv answers: observations, and the tools and their results. */
import { isPlain, type Plain } from "../../../base/config/plain.ts"
import type { ToolSpec } from "../../lm/Chat.ts"
import type { CallResult } from "../TextEnv.ts"

const textOf = (value: unknown): string => (typeof value === "string" ? value : JSON.stringify(value))

/**
 * Returns the text of an observation: the value at a key, or that of the only property if it is a text, or else the whole
 * observation as JSON. An empty observation has no text. Returns undefined if there is no such key.
 */
export const observationText = (observation: Plain, key: string | null): string | undefined => {
  if (key !== null) return Object.hasOwn(observation, key) ? textOf(observation[key]) : undefined
  const values = Object.values(observation)
  if (values.length === 0) return ""
  return values.length === 1 && typeof values[0] === "string" ? values[0] : JSON.stringify(observation)
}

/** The largest number of tools of a server. Prompts describe all of them. */
const mostTools = 256

/** Returns the tools that a server lists, or what is wrong with them. */
export const toolsIn = ({ tools }: Plain): ReadonlyArray<ToolSpec> | string => {
  if (!Array.isArray(tools)) return "expected a list of tools"
  if (tools.length > mostTools) return `expected at most ${mostTools} tools, found ${tools.length}`
  const specs: Array<ToolSpec> = []
  for (const tool of tools) {
    const { name, description = "", input_schema: snake, inputSchema: camel = {} } = isPlain(tool) ? tool : {}
    const parameters = snake ?? camel
    if (
      typeof name !== "string" ||
      !/^[\w-]{1,64}$/.test(name) ||
      typeof description !== "string" ||
      !isPlain(parameters)
    )
      return "expected a name of letters, digits, _ and -, a description and an input_schema for each tool"
    if (specs.some((spec) => spec.name === name)) return `expected tools with different names, found ${name} twice`
    specs.push({ name, description, parameters })
  }
  return specs
}

const partText = (part: unknown): string => {
  const { type, text } = isPlain(part) ? part : {}
  return typeof text === "string" ? text : `[${typeof type === "string" ? type : "unknown"}]`
}

/** Returns the result of a tool's call as a text: that of the parts of a result by the Model Context Protocol, or JSON. */
export const resultOf = ({ result, error }: Plain): CallResult => {
  if (isPlain(error)) return { content: textOf(error["message"] ?? error), isError: true }
  if (!isPlain(result) || !Array.isArray(result["content"])) return { content: textOf(result ?? null) }
  const { content, structured_content: structured, is_error: isError } = result
  const text =
    content.length === 0 && structured !== undefined && structured !== null
      ? JSON.stringify(structured)
      : content.map(partText).join("\n")
  return { content: text, ...(isError === true && { isError }) }
}
