import type { Effect } from "effect"
import type { ConfigError } from "../config/Config.ts"
import type { Lm } from "../lm/Lm.ts"
import type { Agent } from "./Agent.ts"
import { conversationAgent, type ConversationAgentConfig } from "./internal/conversationAgent.ts"

export interface ToolAgentConfig extends ConversationAgentConfig {
  /** Whether the last of the `maxCalls` calls forbids tools; true by default. */
  readonly shotClock?: boolean
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
  conversationAgent({ type, config, shotClock: config.shotClock ?? true })
