/** Encodes the task of an agent that is a program or a server, with the address of its model, and reads its answer. */
import { Effect, Redacted } from "effect"
import { camelCase, isPlain, toSnakeCase } from "../../../base/config/Config.ts"
import { parsedJson } from "../../../base/text/text.ts"
import type { OutsideTurn } from "./OutsideAgent.ts"
import type { OutsideSettings } from "./outsideKind.ts"

/** Where an agent's calls of its model go: the base address and key for clients of OpenAI's API, and the model's name. */
interface ModelAddress {
  readonly name: string
  readonly baseUrl: string
  readonly apiKey: string
}

/** A task as text, and the address of the agent's model; null if it has none. */
export interface SentTask {
  readonly text: string
  readonly model: ModelAddress | null
}

/** Encodes a task as an object of JSON, whose keys are in snake_case. */
export const sentTask = Effect.fnUntraced(function* (
  { task, seed, session, model }: OutsideTurn,
  { config, texts }: OutsideSettings<{ readonly options: Readonly<Record<string, unknown>> }>,
) {
  const opened = yield* session
  const address: ModelAddress | null =
    opened === null ? null : { name: model.name, baseUrl: opened.baseUrl, apiKey: Redacted.value(opened.apiKey) }
  const { text, turns, tools, toolResults, refused } = task
  const results = toolResults.map(({ toolName: name, content, isError }) => ({ name, content, isError }))
  const renamed = toSnakeCase({
    text,
    turns,
    toolResults: results,
    refused,
    seed,
    options: config.options,
    model: address,
  })
  // Tools have JSON Schemas, and texts have names of the user's, so their keys stay as they are.
  return { text: JSON.stringify(Object.assign({}, renamed, { tools, texts })), model: address } satisfies SentTask
})

/** Converts the keys of an object to camelCase, but leaves its values as they are. */
const renamed = (value: unknown): unknown =>
  isPlain(value) ? Object.fromEntries(Object.entries(value).map(([key, item]) => [camelCase(key), item])) : value

const renamedItems = (value: unknown): unknown => (Array.isArray(value) ? value.map(renamed) : value)

/**
 * Reads what an agent wrote: an object of JSON with the keys of an answer, in snake_case or camelCase, or else the answer's
 * text. The arguments and results of tools are data of theirs, so the keys in them stay as they are.
 */
export const readAnswer = (written: string): unknown => {
  const text = written.trim()
  const value = text.startsWith("{") ? parsedJson(text) : undefined
  const answer = renamed(value)
  if (!isPlain(answer) || !("text" in answer || "call" in answer)) return text
  const { usage, toolCalls, call } = answer
  return { ...answer, usage: renamed(usage), toolCalls: renamedItems(toolCalls), call: renamedItems(call) }
}
