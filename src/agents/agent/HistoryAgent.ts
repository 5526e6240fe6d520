/** Makes the history agent (`history_agent` in configs), whose prompts show earlier steps from its memory. */
import { Effect } from "effect"
import type { ConfigError } from "../../base/config/Config.ts"
import type { Lm } from "../lm/Lm.ts"
import type { Agent } from "./Agent.ts"
import type { AgentSettings } from "./Conversation.ts"
import { checkCount } from "./internal/agents.ts"
import { recallingAgent } from "./internal/recallingAgent.ts"
import * as HistoryList from "./memory/HistoryList.ts"
import type { AgentMemory } from "./memory/Memory.ts"

export interface HistoryAgentConfig extends AgentSettings {
  /** The memory; by default a `HistoryList` of the last 100 entries. */
  readonly memory?: AgentMemory | null
  /** The number of memory entries in a prompt; null means all entries, 0 none. */
  readonly historyK?: number | null
}

export const type = "history_agent"

/**
 * Makes the agent that learns from feedback in its prompt. Before each observation, the prompt shows earlier observations,
 * actions and feedback, from this episode and from earlier ones.
 *
 * @example
 * ```ts
 * const agent = yield* HistoryAgent.make({
 *   model: "gpt-4.1-mini",
 *   systemPrompt: "Answer with one word.",
 *   memory: HistoryList.make({ maxLength: 200 }),
 *   historyK: 30,
 * })
 * ```
 */
export const make = (config: HistoryAgentConfig): Effect.Effect<Agent, ConfigError, Lm> =>
  Effect.gen(function* () {
    const { historyK = null } = config
    yield* checkCount(type, "history_k", historyK)
    return yield* recallingAgent(
      {
        type,
        settings: config,
        contentOf: ({ message }) => message,
        recall: ({ recollection }, observation) => recollection.history(observation, historyK),
        endEpisode: ({ recollection }) => Effect.as(recollection.end, []),
      },
      config.memory ?? HistoryList.make(),
    )
  })
