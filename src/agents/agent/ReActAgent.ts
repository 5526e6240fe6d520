/** Makes the ReAct agent (`react_agent` in configs), which thinks before each action and calls tools in its text. */
import type { Effect } from "effect"
import { type ConfigError, isPlain } from "../../base/config/Config.ts"
import type { ToolCall, ToolSpec } from "../lm/Chat.ts"
import type { Lm } from "../lm/Lm.ts"
import type { Agent } from "./Agent.ts"
import { type CallFormat, described, nativeTools } from "./Conversation.ts"
import { conversationAgent, type ConversationAgentConfig, notesTools } from "./internal/conversationAgent.ts"
import { map, type Parser, parsed, type ParserOptions, refused } from "./Parser.ts"
import type { Tool } from "./Tool.ts"

export interface ReActAgentConfig extends ConversationAgentConfig {
  /** The tools that the agent runs itself. The model calls them in an action line: `Action: add[{"a": 1, "b": 2}]`. */
  readonly tools?: ReadonlyArray<Tool>
  /** Parses the text after `Action:`; by default the action is that text, or the content of `finish[…]`. */
  readonly parser?: Parser
}

export const type = "react_agent"

/** Matches the label at the beginning of a line, such as `Thought:` or `Action 2:`. */
const label = /^[ \t]*(Thought|Action|Observation)[ \t]*\d*[ \t]*:[ \t]*/gim

/** Returns the text after the first label with this name, up to the next label; undefined if there is no such label. */
const lineOf = (name: string, text: string): string | undefined => {
  const labels = [...text.matchAll(label)]
  const at = labels.findIndex(([, word]) => word.toLowerCase() === name)
  if (at < 0) return undefined
  const from = labels[at].index + labels[at][0].length
  return text.slice(from, labels[at + 1]?.index).trim()
}

/**
 * Makes a parser that takes the text after the first `Action:` as the action, up to the next label. Later text is ignored,
 * because the model may have invented the next observation in it.
 *
 * @example
 * ```ts
 * action()("Thought: I need a key.\nAction: take key\nObservation: You have it.") // { action: "take key", … }
 * ```
 */
export const action =
  ({
    reward,
    penalty,
    feedback = "Answer with a line `Thought: …` and then a line `Action: …`.",
  }: ParserOptions = {}): Parser =>
  (text) => {
    const line = lineOf("action", text) ?? ""
    return line === "" ? refused(feedback, penalty) : parsed(line, reward)
  }

/** Returns the content of `finish[…]` or `answer[…]`, e.g. `Paris` for `finish[Paris]`. Other text is returned unchanged. */
const finished = (text: string): string => /^(?:finish|answer)\s*\[(.*)\]$/is.exec(text)?.[1].trim() ?? text

/**
 * Finds a call of one of the tools in the action line: `name[input]` or `name(input)`, where the input is JSON or the value
 * of the tool's only parameter. Returns a list with the call, which gets the `id`, or an empty list.
 */
const callIn = (text: string, tools: ReadonlyArray<ToolSpec>, id: string): ReadonlyArray<ToolCall> => {
  const match = /^([\w-]+)\s*(?:\[(.*)\]|\((.*)\))$/s.exec(lineOf("action", text) ?? "")
  if (match === null) return []
  const [, name, inBrackets, inParentheses] = match
  const tool = tools.find((spec) => spec.name === name)
  if (tool === undefined) return []
  return [{ id, name, arguments: argumentsOf(tool, (inBrackets ?? inParentheses ?? "").trim()) }]
}

/** Returns the arguments of a call as JSON. The input is already JSON, or the value of the tool's only parameter. */
const argumentsOf = ({ parameters }: ToolSpec, input: string): string => {
  if (input === "" || input.startsWith("{")) return input
  const { properties } = parameters
  const names = isPlain(properties) ? Object.keys(properties) : []
  if (names.length !== 1) return input
  const only = isPlain(properties) ? properties[names[0]] : undefined
  const isText = !isPlain(only) || only["type"] === "string"
  return `{${JSON.stringify(names[0])}: ${isText ? JSON.stringify(input) : input}}`
}

/**
 * Makes the format in which the model calls tools in action lines. Calls in the provider's own format, which some models make
 * nevertheless, also work. A call in an action line has the id `action`, and its result is a message that begins with
 * `Observation:`.
 */
const formatOf = (own: ReadonlyArray<ToolSpec>): CallFormat => ({
  native: false,
  callsIn: (completion, external) =>
    completion.toolCalls.length > 0
      ? completion.toolCalls
      : callIn(completion.content, [...own, ...external], "action"),
  introduce: (external) => listOf(external, own.length === 0 ? "As an action you can call" : "You can also call"),
  resultMessages: (results) =>
    results.flatMap((result) =>
      result.toolCallId === "action"
        ? [{ role: "user", content: `Observation: ${result.content}` }]
        : nativeTools.resultMessages([result]),
    ),
})

/** Makes the text that lists tools for the prompt, and explains how to call them. It begins with `opening`. */
const listOf = (tools: ReadonlyArray<ToolSpec>, opening: string): string =>
  [
    `${opening}, by \`Action: name[input]\`:`,
    ...tools.map(
      ({ name, description, parameters }) => `- ${name}: ${description} Its input: ${JSON.stringify(parameters)}`,
    ),
    "Any other action is for the task itself; `Action: finish[…]` gives an answer.",
  ].join("\n")

/** Returns the instructions for the system prompt: the format of answers, and the agent's own tools. */
const instructions = (tools: ReadonlyArray<ToolSpec>): string => {
  const form =
    "Answer with two lines: `Thought: …`, what you think, and `Action: …`, what you do. Then wait: what you see next is said to you as `Observation: …`."
  return tools.length === 0 ? form : `${form}\n${listOf(tools, "As an action you can call")}`
}

/**
 * Makes the ReAct agent, which writes a `Thought: …` before each `Action: …` (Yao et al. 2022, arXiv:2210.03629). If
 * the action calls one of the agent's own tools, the agent runs the tool. If it calls a tool of the env or of the
 * protocol, the protocol (the code that plays the episode) runs the tool. The model gets the result as its next
 * observation. Any other action goes to the env. The model itself need not support tool calls.
 *
 * @example
 * ```ts
 * const agent = yield* ReActAgent.make({ model: "vllm:small", tools: [lookup] })
 * ```
 */
export const make = (config: ReActAgentConfig): Effect.Effect<Agent, ConfigError, Lm> => {
  const { tools = [], memory = null, systemPrompt, parser = finished } = config
  // The tools for the model's notes are called in action lines, too.
  const specs = [...notesTools(memory, true), ...tools].map(({ spec }) => described(spec, config))
  return conversationAgent({
    type,
    config: {
      ...config,
      systemPrompt: [...(systemPrompt ? [systemPrompt] : []), instructions(specs)].join("\n\n"),
      parser: map(action(), parser),
      // Stop the model before it invents the observation.
      stop: [...new Set([...(config.stop ?? []), "\nObservation:"])],
    },
    format: formatOf(specs),
    present: (observation) => `Observation: ${observation}`,
  })
}
