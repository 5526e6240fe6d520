/** Makes the agents whose episode is one conversation: the tool and ReAct agents. */
import { Effect } from "effect"
import type { LmService } from "../../lm/Lm.ts"
import type { Agent, AgentFailure, AgentInput, Turn } from "../Agent.ts"
import * as Conversation from "../Conversation.ts"
import * as KeyValueMemory from "../memory/KeyValueMemory.ts"
import type { Memory } from "../memory/Memory.ts"
import { memoryFor } from "./agents.ts"
import { makeRecollection, promptOf, type Recollection } from "./Recollection.ts"

interface ConversationAgentOptions {
  readonly type: string
  readonly lm: LmService
  readonly settings: Conversation.AgentSettings
  readonly conversation: Pick<Conversation.ConversationOptions, "tools" | "maxCalls" | "shotClock" | "format">
  /** The memory of earlier episodes; null if the agent has none. */
  readonly memory: Memory | null
  readonly historyK: number | null
  /** Converts an observation to the text that the model reads. */
  readonly present: (observation: string) => string
}

/**
 * Makes an agent whose episode is one conversation: the first prompt holds the recalled entries of earlier episodes, and
 * later messages are appended. So each prompt of an episode begins with the one before it.
 */
export const conversationAgent = (options: ConversationAgentOptions, training: boolean): Agent => {
  const { type, lm, settings, memory, historyK, present } = options
  const own = memory === null || training ? memory : memory.readOnly
  const { tools = [] } = options.conversation
  // With this memory, the model reads and writes its notes itself, by calling tools.
  const notes = own?.type === KeyValueMemory.type ? KeyValueMemory.tools(own, training) : []
  const conversation = Conversation.make({
    agent: type,
    settings,
    lm,
    ...options.conversation,
    tools: [...notes, ...tools],
  })
  const recollection: Recollection | null =
    own === null ? null : makeRecollection(own, training, ({ message }) => message)
  /** Whether the next input comes from the env; if false, it is the feedback on a failed parse. */
  let isObservation = true

  const promptFor = (text: string): Effect.Effect<string, AgentFailure> => {
    if (!isObservation) return Effect.succeed(text)
    recollection?.begin(text)
    const observation = present(text)
    if (recollection === null || !conversation.isNew()) return Effect.succeed(observation)
    return Effect.map(recollection.history(text, historyK), (history) => promptOf(history, observation))
  }

  const act = (input: AgentInput): Effect.Effect<Turn, AgentFailure> => {
    if (input._tag === "ToolResults") return conversation.answer(input.results)
    return Effect.suspend(() => promptFor(input.text)).pipe(
      Effect.flatMap((text) => conversation.say(text, input.tools)),
      Effect.tap(() =>
        Effect.sync(() => {
          isObservation = false
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
      recollection?.reset()
      isObservation = true
    }),
    act,
    observe: (result) =>
      Effect.suspend(() => {
        isObservation = true
        return recollection === null ? Effect.void : recollection.step(result)
      }),
    endEpisode: recollection === null ? Effect.succeed([]) : Effect.as(recollection.end, []),
    cloneForEpisode: (clone) =>
      memory === null
        ? Effect.sync(() => conversationAgent(options, clone.training))
        : Effect.map(memoryFor(memory, clone), (memory) => conversationAgent({ ...options, memory }, clone.training)),
  }
}
