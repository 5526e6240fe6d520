import { Effect } from "effect"
import type { LmService } from "../../lm/Lm.ts"
import type { Agent, AgentFailure, Shown, Turn } from "../Agent.ts"
import * as Conversation from "../Conversation.ts"
import * as KeyValueMemory from "../memory/KeyValueMemory.ts"
import type { Memory } from "../memory/Memory.ts"
import { memoryFor } from "./agents.ts"
import { make as recollection, promptOf, type Recollection } from "./Recollection.ts"

export interface Talking {
  readonly type: string
  readonly lm: LmService
  readonly settings: Conversation.AgentSettings
  readonly conversation: Pick<Conversation.ConversationOptions, "tools" | "maxCalls" | "shotClock" | "form">
  /** Null: nothing is known but this episode. */
  readonly memory: Memory | null
  readonly historyK: number | null
  /** Of an observation, as the model is shown it. */
  readonly asSeen: (text: string) => string
}

/**
 * An agent whose episode is one conversation: what it remembers of others is in the first prompt, and all else is only
 * added. So each prompt of an episode begins with the one before it.
 */
export const talking = (how: Talking, training: boolean): Agent => {
  const { type, lm, settings, memory, historyK, asSeen } = how
  const own = memory === null || training ? memory : memory.readOnly
  const { tools = [] } = how.conversation
  // Notes are written and read by the model itself.
  const notes = own?.type === KeyValueMemory.type ? KeyValueMemory.tools(own, training) : []
  const conversation = Conversation.make({
    agent: type,
    settings,
    lm,
    ...how.conversation,
    tools: [...notes, ...tools],
  })
  const experience: Recollection | null = own === null ? null : recollection(own, training, ({ message }) => message)
  /** What is seen next is the env's, and no feedback on a parse that failed. */
  let isNews = true

  const see = (text: string): Effect.Effect<string, AgentFailure> => {
    if (!isNews) return Effect.succeed(text)
    experience?.shown(text)
    const seen = asSeen(text)
    if (experience === null || !conversation.isNew()) return Effect.succeed(seen)
    return Effect.map(experience.history(text, historyK), (history) => promptOf(history, seen))
  }

  const act = (shown: Shown): Effect.Effect<Turn, AgentFailure> => {
    if (shown._tag === "ToolResults") return conversation.answer(shown.results)
    return Effect.suspend(() => see(shown.text)).pipe(
      Effect.flatMap((text) => conversation.say(text, shown.tools)),
      Effect.tap(() =>
        Effect.sync(() => {
          isNews = false
        }),
      ),
    )
  }

  return {
    type,
    model: settings.model,
    training,
    memory: own,
    reset: Effect.sync(() => {
      conversation.reset()
      experience?.reset()
      isNews = true
    }),
    act,
    observe: (seen) =>
      Effect.suspend(() => {
        isNews = true
        return experience === null ? Effect.void : experience.stepped(seen)
      }),
    endEpisode: experience === null ? Effect.succeed([]) : Effect.as(experience.ended, []),
    cloneForEpisode: (as) =>
      memory === null
        ? Effect.sync(() => talking(how, as.training))
        : Effect.map(memoryFor(memory, as), (memory) => talking({ ...how, memory }, as.training)),
  }
}
