import { Effect } from "effect"
import type { ConfigError } from "../config/Config.ts"
import { Lm } from "../lm/Lm.ts"
import type { Agent } from "./Agent.ts"
import type { AgentSettings } from "./Conversation.ts"
import { checkCount, checkNames } from "./internal/agents.ts"
import { talking } from "./internal/talking.ts"
import type { Memory } from "./memory/Memory.ts"
import type { Tool } from "./Tool.ts"

export interface ToolAgentConfig extends AgentSettings {
  /** The agent runs these itself, and the model goes on with their results. */
  readonly tools?: ReadonlyArray<Tool>
  /** How often the model is asked for one action; 8 unless given. */
  readonly maxCalls?: number
  /** In the last of those calls no tool may be called; true unless given. */
  readonly shotClock?: boolean
  /** Of earlier episodes; none unless given. */
  readonly memory?: Memory | null
  /** How many of its entries the first prompt of an episode holds; null: all, 0: none. */
  readonly historyK?: number | null
}

export const type = "tool_agent"

/**
 * The agent that calls tools until it knows what to do. Its own run here, and whatever goes wrong with them is a result
 * that the model sees; those of the env, or of somebody else, are given back to whoever plays the episode. The tools are
 * part of every prompt, also where they may not be called any more, so prompts only grow.
 *
 * @example
 * ```ts
 * const agent = yield* ToolAgent.make({ model: "gpt-4.1-mini", tools: [add], maxCalls: 5 })
 * ```
 */
export const make = (config: ToolAgentConfig): Effect.Effect<Agent, ConfigError, Lm> =>
  Effect.gen(function* () {
    const { tools = [], maxCalls = 8, shotClock = true, memory = null, historyK = null } = config
    yield* checkCount(type, "max_calls", maxCalls, 1)
    yield* checkCount(type, "history_k", historyK)
    yield* checkNames(type, tools)
    const conversation = { tools, maxCalls, shotClock }
    const lm = yield* Lm
    return talking({ type, lm, settings: config, conversation, memory, historyK, asSeen: (text) => text }, true)
  })
