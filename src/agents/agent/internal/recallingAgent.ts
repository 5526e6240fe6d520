/** Makes the agents that begin a new conversation at each observation: the history agent and the Reflexion agent. */
import { Effect } from "effect"
import { Lm, type LmService } from "../../lm/Lm.ts"
import type { Feedback } from "../../task/Feedback.ts"
import type { Agent, AgentFailure, ModelCall } from "../Agent.ts"
import * as Conversation from "../Conversation.ts"
import type { AgentMemory, MemoryEntry } from "../memory/Memory.ts"
import { memoryFor, withoutTools } from "./agents.ts"
import { makeRecollection, promptOf, type Recollection } from "./Recollection.ts"

/** The model of an agent, its memory (read-only outside of training), and the recollection of its current episode. */
export interface Remembering {
  readonly lm: LmService
  readonly memory: AgentMemory
  readonly training: boolean
  readonly recollection: Recollection
}

interface RecallingAgentOptions {
  readonly type: string
  readonly settings: Conversation.AgentSettings
  /** Converts a feedback to the content of its memory entry. */
  readonly contentOf: (feedback: Feedback) => MemoryEntry["content"]
  /** Returns the memory entries that the prompt for an observation shows. */
  readonly recall: (
    remembering: Remembering,
    observation: string,
  ) => Effect.Effect<ReadonlyArray<MemoryEntry>, AgentFailure>
  /** Ends the episode, and returns the calls of the model that were made at the end, such as a reflection. */
  readonly endEpisode: (remembering: Remembering) => Effect.Effect<ReadonlyArray<ModelCall>, AgentFailure>
}

/**
 * Makes an agent that begins a new conversation at every observation, with a prompt that shows recalled memory entries.
 */
export const recallingAgent = (options: RecallingAgentOptions, memory: AgentMemory): Effect.Effect<Agent, never, Lm> =>
  Effect.map(Lm, (lm) => build(options, lm, memory, true))

const build = (options: RecallingAgentOptions, lm: LmService, memory: AgentMemory, training: boolean): Agent => {
  const { type, settings, contentOf, recall, endEpisode } = options
  const usedMemory = training ? memory : memory.readOnly
  const conversation = Conversation.make({ agent: type, settings, lm })
  const recollection = makeRecollection(usedMemory, training, contentOf)
  const remembering = { lm, memory: usedMemory, training, recollection }
  return {
    type,
    model: settings.model,
    training,
    memory: usedMemory,
    reset: Effect.sync(() => {
      conversation.reset()
      recollection.reset()
    }),
    act: (input) =>
      withoutTools(type, input, (text) => {
        if (!conversation.isNew()) return conversation.say(text)
        recollection.begin(text)
        return Effect.flatMap(recall(remembering, text), (entries) => conversation.say(promptOf(entries, text)))
      }),
    observe: (result) =>
      Effect.suspend(() => {
        conversation.reset()
        return recollection.step(result)
      }),
    endEpisode: Effect.suspend(() => endEpisode(remembering)),
    cloneForEpisode: (clone) =>
      Effect.map(memoryFor(memory, clone), (memory) => build(options, lm, memory, clone.training)),
  }
}
