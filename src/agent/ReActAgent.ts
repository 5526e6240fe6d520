import { Effect } from "effect"
import type { ConfigError } from "../config/Config.ts"
import { isPlain } from "../config/Config.ts"
import type { Completion, ToolCall } from "../lm/Chat.ts"
import { Lm } from "../lm/Lm.ts"
import type { Agent } from "./Agent.ts"
import { type AgentSettings, type ToolForm, nativeTools } from "./Conversation.ts"
import { checkCount, checkNames } from "./internal/agents.ts"
import { talking } from "./internal/talking.ts"
import * as KeyValueMemory from "./memory/KeyValueMemory.ts"
import type { Memory } from "./memory/Memory.ts"
import { map, type Parser, parsed, type ParserOptions, refused } from "./Parser.ts"
import type { Tool } from "./Tool.ts"

export interface Config extends Omit<AgentSettings, "parser"> {
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
const callIn = (text: string, tools: ReadonlyMap<string, Tool>, id: string): ReadonlyArray<ToolCall> => {
  const found = /^([\w-]+)\s*(?:\[(.*)\]|\((.*)\))$/s.exec(lineOf("action", text) ?? "")
  if (found === null) return []
  const [, name, inBrackets, inParentheses] = found
  const tool = tools.get(name)
  if (tool === undefined) return []
  return [{ id, name, arguments: argumentsOf(tool, (inBrackets ?? inParentheses ?? "").trim()) }]
}

const argumentsOf = ({ spec }: Tool, input: string): string => {
  if (input === "" || input.startsWith("{")) return input
  const { properties } = spec.parameters
  const names = isPlain(properties) ? Object.keys(properties) : []
  if (names.length !== 1) return input
  const only = isPlain(properties) ? properties[names[0]] : undefined
  const isText = !isPlain(only) || only["type"] === "string"
  return `{${JSON.stringify(names[0])}: ${isText ? JSON.stringify(input) : input}}`
}

const formOf = (tools: ReadonlyArray<Tool>): ToolForm => {
  const byName = new Map(tools.map((tool) => [tool.spec.name, tool]))
  return {
    native: false,
    callsIn: (completion: Completion) =>
      completion.toolCalls.length > 0 ? completion.toolCalls : callIn(completion.content, byName, "action"),
    tell: (results) =>
      results.flatMap((result) =>
        result.toolCallId === "action"
          ? [{ role: "user", content: `Observation: ${result.content}` }]
          : nativeTools.tell([result]),
      ),
  }
}

/** How to answer, and what there is to call. */
const instructions = (tools: ReadonlyArray<Tool>): string => {
  const lines = [
    "Answer with two lines: `Thought: …`, what you think, and `Action: …`, what you do. Then wait: what you see next is said to you as `Observation: …`.",
  ]
  if (tools.length > 0) {
    lines.push("As an action you can call, by `Action: name[input]`:")
    for (const { spec } of tools) {
      lines.push(`- ${spec.name}: ${spec.description} Its input: ${JSON.stringify(spec.parameters)}`)
    }
    lines.push("Any other action is for the task itself; `Action: finish[…]` gives an answer.")
  }
  return lines.join("\n")
}

/**
 * The agent that thinks aloud before it acts (Yao et al. 2022, arXiv:2210.03629): `Thought: …`, `Action: …`. An action
 * that names one of its own tools is run here, and the model goes on with the result as its observation; any other is
 * for the env. It needs no model that knows of tools.
 *
 * @example
 * ```ts
 * const agent = yield* ReActAgent.make({ model: "vllm:small", tools: [lookup] })
 * ```
 */
export const make = (config: Config): Effect.Effect<Agent, ConfigError, Lm> =>
  Effect.gen(function* () {
    const { tools = [], maxCalls = 8, memory = null, historyK = null, parser } = config
    yield* checkCount(type, "max_calls", maxCalls, 1)
    yield* checkCount(type, "history_k", historyK)
    yield* checkNames(type, tools)
    // Notes are called by action lines, too.
    const all = memory?.type === KeyValueMemory.type ? [...KeyValueMemory.tools(memory, true), ...tools] : tools
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
