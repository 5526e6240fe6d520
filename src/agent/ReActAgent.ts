import { Effect } from "effect"
import type { ConfigError } from "../config/Config.ts"
import { isPlain } from "../config/Config.ts"
import type { ToolCall, ToolSpec } from "../lm/Chat.ts"
import { Lm } from "../lm/Lm.ts"
import type { Agent } from "./Agent.ts"
import { type AgentSettings, type ToolForm, nativeTools } from "./Conversation.ts"
import { checkCount, checkNames } from "./internal/agents.ts"
import { talking } from "./internal/talking.ts"
import * as KeyValueMemory from "./memory/KeyValueMemory.ts"
import type { Memory } from "./memory/Memory.ts"
import { map, type Parser, parsed, type ParserOptions, refused } from "./Parser.ts"
import type { Tool } from "./Tool.ts"

export interface ReActAgentConfig extends Omit<AgentSettings, "parser"> {
  /** Called by an action line: `Action: add[{"a": 1, "b": 2}]`. */
  readonly tools?: ReadonlyArray<Tool>
  /** How often the model is asked for one action; 8 unless given. */
  readonly maxCalls?: number
  /** Reads what stands after `Action:`; all of it, or what is within `finish[…]`, unless given. */
  readonly parser?: Parser
  /** Of earlier episodes; none unless given. */
  readonly memory?: Memory | null
  /** How many of its entries the first prompt of an episode holds; null: all, 0: none. */
  readonly historyK?: number | null
}

export const type = "react_agent"

const label = /^[ \t]*(Thought|Action|Observation)[ \t]*\d*[ \t]*:[ \t]*/gim

/** What stands behind the first label of that name, up to the next label. */
const lineOf = (name: string, text: string): string | undefined => {
  const labels = [...text.matchAll(label)]
  const at = labels.findIndex(([, found]) => found.toLowerCase() === name)
  if (at < 0) return undefined
  const from = labels[at].index + labels[at][0].length
  return text.slice(from, labels[at + 1]?.index).trim()
}

/**
 * What stands behind the first `Action:`; what the model goes on to say, in the env's place, doesn't count.
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
    const found = lineOf("action", text) ?? ""
    return found === "" ? refused(feedback, penalty) : parsed(found, reward)
  }

/** `finish[Paris]` is the action `Paris`. */
const finished = (text: string): string => /^(?:finish|answer)\s*\[(.*)\]$/is.exec(text)?.[1].trim() ?? text

/** The call in an action line: `name[input]`, whose input is JSON, or the one parameter that the tool has. */
const callIn = (text: string, tools: ReadonlyArray<ToolSpec>, id: string): ReadonlyArray<ToolCall> => {
  const found = /^([\w-]+)\s*(?:\[(.*)\]|\((.*)\))$/s.exec(lineOf("action", text) ?? "")
  if (found === null) return []
  const [, name, inBrackets, inParentheses] = found
  const tool = tools.find((spec) => spec.name === name)
  if (tool === undefined) return []
  return [{ id, name, arguments: argumentsOf(tool, (inBrackets ?? inParentheses ?? "").trim()) }]
}

const argumentsOf = ({ parameters }: ToolSpec, input: string): string => {
  if (input === "" || input.startsWith("{")) return input
  const { properties } = parameters
  const names = isPlain(properties) ? Object.keys(properties) : []
  if (names.length !== 1) return input
  const only = isPlain(properties) ? properties[names[0]] : undefined
  const isText = !isPlain(only) || only["type"] === "string"
  return `{${JSON.stringify(names[0])}: ${isText ? JSON.stringify(input) : input}}`
}

const formOf = (own: ReadonlyArray<ToolSpec>): ToolForm => ({
  native: false,
  callsIn: (completion, external) =>
    completion.toolCalls.length > 0
      ? completion.toolCalls
      : callIn(completion.content, [...own, ...external], "action"),
  introduce: (external) => listOf(external, own.length === 0 ? "As an action you can call" : "You can also call"),
  tell: (results) =>
    results.flatMap((result) =>
      result.toolCallId === "action"
        ? [{ role: "user", content: `Observation: ${result.content}` }]
        : nativeTools.tell([result]),
    ),
})

/** What there is to call, and how. */
const listOf = (tools: ReadonlyArray<ToolSpec>, youCan: string): string =>
  [
    `${youCan}, by \`Action: name[input]\`:`,
    ...tools.map(
      ({ name, description, parameters }) => `- ${name}: ${description} Its input: ${JSON.stringify(parameters)}`,
    ),
    "Any other action is for the task itself; `Action: finish[…]` gives an answer.",
  ].join("\n")

/** How to answer, and which of its own tools there are to call. */
const instructions = (tools: ReadonlyArray<ToolSpec>): string => {
  const form =
    "Answer with two lines: `Thought: …`, what you think, and `Action: …`, what you do. Then wait: what you see next is said to you as `Observation: …`."
  return tools.length === 0 ? form : `${form}\n${listOf(tools, "As an action you can call")}`
}

/**
 * The agent that thinks aloud before it acts (Yao et al. 2022, arXiv:2210.03629): `Thought: …`, `Action: …`. An action
 * that names one of its own tools is run here, one that names a tool of the env or of somebody else is a call for whoever
 * plays the episode, and the model goes on with the result as its observation; any other is for the env. It needs no model
 * that knows of tools.
 *
 * @example
 * ```ts
 * const agent = yield* ReActAgent.make({ model: "vllm:small", tools: [lookup] })
 * ```
 */
export const make = (config: ReActAgentConfig): Effect.Effect<Agent, ConfigError, Lm> =>
  Effect.gen(function* () {
    const { tools = [], maxCalls = 8, memory = null, historyK = null, parser } = config
    yield* checkCount(type, "max_calls", maxCalls, 1)
    yield* checkCount(type, "history_k", historyK)
    yield* checkNames(type, tools)
    // Notes are called by action lines, too.
    const notes = memory?.type === KeyValueMemory.type ? KeyValueMemory.tools(memory, true) : []
    const all = [...notes, ...tools].map(({ spec }) => spec)
    const { systemPrompt = null } = config
    const settings: AgentSettings = {
      ...config,
      systemPrompt:
        systemPrompt === null || systemPrompt === "" ? instructions(all) : `${systemPrompt}\n\n${instructions(all)}`,
      parser: map(action(), parser ?? finished),
      // What it would see is not the model's to say.
      stop: [...new Set([...(config.stop ?? []), "\nObservation:"])],
    }
    const lm = yield* Lm
    const conversation = { tools, maxCalls, form: formOf(all) }
    const asSeen = (text: string): string => `Observation: ${text}`
    return talking({ type, lm, settings, conversation, memory, historyK, asSeen }, true)
  })
