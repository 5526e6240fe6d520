/** Makes the tool agent (`tool_agent` in configs), which calls tools before it acts. */
import type { Effect } from "effect"
import type { ConfigError } from "../../base/config/Config.ts"
import type { Lm } from "../lm/Lm.ts"
import type { Agent } from "./Agent.ts"
import { conversationAgent, type ConversationAgentConfig } from "./internal/conversationAgent.ts"

export interface ToolAgentConfig extends ConversationAgentConfig {
  /** Whether the last of the `maxCalls` requests forbids tool calls, so that the model must act; true by default. */
  readonly shotClock?: boolean
}

export const type = "tool_agent"

/**
 * Makes the agent that calls tools before it acts. It runs its own tools; if a tool fails, the model gets the error as the
 * tool's result. The protocol (the code that plays the episode) runs the tools of the env and its own tools. Every prompt
 * describes all tools, even when no more calls are allowed, so that each prompt begins with the text of the prompt before.
 *
 * @example
 * ```ts
 * const agent = yield* ToolAgent.make({ model: "gpt-4.1-mini", tools: [add], maxCalls: 5 })
 * ```
 */
export const make = (config: ToolAgentConfig): Effect.Effect<Agent, ConfigError, Lm> =>
  conversationAgent({ type, config, shotClock: config.shotClock ?? true })
