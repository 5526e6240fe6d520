/** Makes the agents that have one conversation per episode: the tool agent and the ReAct agent. */
import { Effect } from "effect"
import { Lm, type LmService } from "../../lm/Lm.ts"
import type { Agent, AgentFailure, AgentInput, AgentTurn } from "../Agent.ts"
import * as Conversation from "../Conversation.ts"
import * as KeyValueMemory from "../memory/KeyValueMemory.ts"
import type { AgentMemory } from "../memory/Memory.ts"
import type { Tool } from "../Tool.ts"
import { checkCount, checkNames, memoryFor } from "./agents.ts"
import { makeRecollection, promptOf } from "./Recollection.ts"

/** The settings of an agent that may call the model several times for one action, and may remember earlier episodes. */
export interface ConversationAgentConfig extends Conversation.AgentSettings {
  /** The tools that the agent runs itself. The model continues with their results. */
  readonly tools?: ReadonlyArray<Tool>
  /** The largest number of calls of the model for one action, 8 by default. */
  readonly maxCalls?: number
  /** The memory of earlier episodes; by default the agent has none. */
  readonly memory?: AgentMemory | null
  /** The number of memory entries in the first prompt of an episode; null means all entries, 0 none. */
  readonly historyK?: number | null
}

interface ConversationAgentOptions {
  readonly type: string
  readonly config: ConversationAgentConfig
  /** Whether the last of the `maxCalls` requests forbids tool calls; false by default. */
  readonly shotClock?: boolean
  readonly format?: Conversation.CallFormat
  /** Converts an observation to the text that the model reads; by default the model reads the observation itself. */
  readonly present?: (observation: string) => string
}

/**
 * Makes an agent that has one conversation per episode. The first prompt shows recalled entries of earlier episodes; later
 * messages are appended, so each prompt begins with the text of the prompt before.
 */
export const conversationAgent = Effect.fnUntraced(function* (options: ConversationAgentOptions) {
  const { type, config } = options
  yield* checkCount(type, "max_calls", config.maxCalls, 1)
  yield* checkCount(type, "history_k", config.historyK)
  yield* checkNames(type, config.tools ?? [])
  return build(options, yield* Lm, config.memory ?? null, true)
})

const build = (
  options: ConversationAgentOptions,
  lm: LmService,
  memory: AgentMemory | null,
  training: boolean,
): Agent => {
  const { type, config, present = (observation) => observation, ...conversationOptions } = options
  const { tools = [], maxCalls = 8, historyK = null } = config
  const usedMemory = memory === null || training ? memory : memory.readOnly
  const conversation = Conversation.make({
    agent: type,
    settings: config,
    lm,
    maxCalls,
    tools: [...notesTools(usedMemory, training), ...tools],
    ...conversationOptions,
  })
  const recollection = usedMemory === null ? null : makeRecollection(usedMemory, training, ({ message }) => message)
  /** Whether the next input of `act` is an observation of the env; if false, it is the feedback on a failed parse. */
  let isObservation = true

  /** Returns the next message of the user; the first one of an episode begins with the recalled entries. */
  const promptFor = (text: string): Effect.Effect<string, AgentFailure> => {
    if (!isObservation) return Effect.succeed(text)
    recollection?.begin(text)
    const observation = present(text)
    if (recollection === null || !conversation.isNew()) return Effect.succeed(observation)
    return Effect.map(recollection.history(text, historyK), (history) => promptOf(history, observation))
  }

  const act = (input: AgentInput): Effect.Effect<AgentTurn, AgentFailure> => {
    if (input._tag === "ToolResults") return conversation.answer(input.results)
    return Effect.suspend(() => promptFor(input.text)).pipe(
      Effect.flatMap((text) => conversation.say(text, input.tools)),
      Effect.tap(() => Effect.sync(() => (isObservation = false))),
    )
  }

  return {
    type,
    model: config.model,
    training,
    memory: usedMemory,
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
        ? Effect.sync(() => build(options, lm, null, clone.training))
        : Effect.map(memoryFor(memory, clone), (memory) => build(options, lm, memory, clone.training)),
  }
}

/** Returns the tools for the model's notes if the memory is a `KeyValueMemory`; otherwise none. */
export const notesTools = (memory: AgentMemory | null, training: boolean): ReadonlyArray<Tool> =>
  memory?.type === KeyValueMemory.type ? KeyValueMemory.tools(memory, training) : []
