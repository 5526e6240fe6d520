import { Effect } from "effect"
import type { ConfigError } from "../config/Config.ts"
import { Lm, type LmService } from "../lm/Lm.ts"
import type { Agent } from "./Agent.ts"
import * as Conversation from "./Conversation.ts"
import { checkCount, memoryFor, withoutTools } from "./internal/agents.ts"
import { make as recollection, promptOf } from "./internal/Recollection.ts"
import * as HistoryList from "./memory/HistoryList.ts"
import type { Memory } from "./memory/Memory.ts"

export interface HistoryAgentConfig extends Conversation.AgentSettings {
  /** Where experience is kept, and how it is found again; the last 100 entries unless given. */
  readonly memory?: Memory | null
  /** How many entries a prompt holds; null: all, 0: none. */
  readonly historyK?: number | null
}

export const type = "history_agent"

/**
 * The agent that learns from what it was told: before each observation its prompt holds what it saw, did and was told
 * before, in this episode and in those before it.
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
    yield* checkCount(type, "history_k", config.historyK)
    return build(config, yield* Lm, config.memory ?? HistoryList.make(), true)
  })

const build = (config: HistoryAgentConfig, lm: LmService, memory: Memory, training: boolean): Agent => {
  const { historyK = null } = config
  const own = training ? memory : memory.readOnly
  const conversation = Conversation.make({ agent: type, settings: config, lm })
  const experience = recollection(own, training, ({ message }) => message)
  return {
    type,
    model: config.model,
    training,
    memory: own,
    reset: Effect.sync(() => {
      conversation.reset()
      experience.reset()
    }),
    act: (shown) =>
      withoutTools(type, shown, (text) => {
        if (!conversation.isNew()) return conversation.say(text)
        experience.shown(text)
        return Effect.flatMap(experience.history(text, historyK), (history) =>
          conversation.say(promptOf(history, text)),
        )
      }),
    observe: (seen) =>
      Effect.suspend(() => {
        conversation.reset()
        return experience.stepped(seen)
      }),
    endEpisode: Effect.as(experience.ended, []),
    cloneForEpisode: (how) => Effect.map(memoryFor(memory, how), (memory) => build(config, lm, memory, how.training)),
  }
}
