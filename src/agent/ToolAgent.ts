import { Effect } from "effect"
import type { ConfigError } from "../config/Config.ts"
import { Lm } from "../lm/Lm.ts"
import type { Agent } from "./Agent.ts"
import type { AgentSettings } from "./Conversation.ts"
import { checkCount, checkNames } from "./internal/agents.ts"
import { conversationAgent } from "./internal/conversationAgent.ts"
import type { Memory } from "./memory/Memory.ts"
import type { Tool } from "./Tool.ts"

export interface ToolAgentConfig extends AgentSettings {
  /** The tools that the agent runs itself. The model continues with their results. */
  readonly tools?: ReadonlyArray<Tool>
  /** The number of calls of the model for one action, 8 by default. */
  readonly maxCalls?: number
  /** Whether the last of these calls forbids tools; true by default. */
  readonly shotClock?: boolean
  /** The memory of earlier episodes; by default the agent has none. */
  readonly memory?: Memory | null
  /** The number of memory entries in the first prompt of an episode; null stands for all entries, 0 for none. */
  readonly historyK?: number | null
}

export const type = "tool_agent"

/**
 * Makes the agent that calls tools before it acts. It runs its own tools, whose failures are results that the model sees;
 * calls of the tools of the env or of the protocol are given to the protocol. The tools are part of every prompt, even
 * when no more calls are allowed, so that prompts only grow.
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
    const present = (observation: string): string => observation
    return conversationAgent({ type, lm, settings: config, conversation, memory, historyK, present }, true)
  })
