/** Makes the memoryless agent (`memoryless_agent` in configs), whose prompts show only the current observation. */
import { Effect } from "effect"
import { Lm, type LmService } from "../lm/Lm.ts"
import type { Agent } from "./Agent.ts"
import * as Conversation from "./Conversation.ts"
import { withoutTools } from "./internal/agents.ts"

export type MemorylessAgentConfig = Conversation.AgentSettings

export const type = "memoryless_agent"

/**
 * Makes the agent without a memory. Every observation begins a new conversation, whose first message is `Q: ` followed by the
 * observation.
 *
 * @example
 * ```ts
 * const agent = yield* MemorylessAgent.make({ model: "gpt-4.1-mini", systemPrompt: "Answer with a number." })
 * ```
 */
export const make = (config: MemorylessAgentConfig): Effect.Effect<Agent, never, Lm> =>
  Effect.map(Lm, (lm) => build(config, lm, true))

const build = (config: MemorylessAgentConfig, lm: LmService, training: boolean): Agent => {
  const conversation = Conversation.make({ agent: type, settings: config, lm })
  return {
    type,
    model: config.model,
    training,
    memory: null,
    reset: Effect.sync(conversation.reset),
    act: (input) => withoutTools(type, input, (text) => conversation.say(conversation.isNew() ? `Q: ${text}` : text)),
    observe: () => Effect.sync(conversation.reset),
    endEpisode: Effect.succeed([]),
    cloneForEpisode: ({ training }) => Effect.sync(() => build(config, lm, training)),
  }
}
