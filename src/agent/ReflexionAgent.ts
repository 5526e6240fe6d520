import { Effect } from "effect"
import type { ConfigError } from "../config/Config.ts"
import { CallContext, Lm, type LmService } from "../lm/Lm.ts"
import type { ChatMessage } from "../lm/Chat.ts"
import type { Agent, AgentFailure, ModelCall } from "./Agent.ts"
import * as Conversation from "./Conversation.ts"
import { checkCount, memoryFor, withoutTools } from "./internal/agents.ts"
import { lineOf, make as recollection, promptOf } from "./internal/Recollection.ts"
import { entry } from "./memory/entries.ts"
import type { Memory, MemoryEntry } from "./memory/Memory.ts"
import * as Reflections from "./memory/Reflections.ts"

export interface ReflexionAgentConfig extends Conversation.AgentSettings {
  /** The last 200 entries and as many reflections, unless given. */
  readonly memory?: Memory | null
  /** How many entries a prompt holds besides reflections; null: all, 0: none. */
  readonly historyK?: number | null
  /** True unless given. */
  readonly enableReflection?: boolean
  /** Look back only on episodes whose scores add up to less than `failureThreshold` (1). */
  readonly reflectOnFailureOnly?: boolean
  readonly failureThreshold?: number
  /** The last so many reflections go before the history; null: all, 10 unless given. */
  readonly maxReflectionsInPrompt?: number | null
  /** In the place of `systemPrompt`. */
  readonly agentSystemPrompt?: string | null
  readonly reflectionSystemPrompt?: string | null
  readonly reflectionFewShotExamples?: string | null
}

export const type = "reflexion_agent"

const defaultReflectionPrompt = `Reflect on an episode: what was seen, what was done, and what was said about it.
In two to four sentences, say what to remember for the next time. If it went well: what made the difference? If it did
not: what was the mistake, and what should be done instead? Be specific; what you write is all that is remembered.`

const isReflection = (type: string): boolean => type === "Reflection"

/**
 * The agent that looks back: when an episode of training is over, it writes down what to do better, and its prompts
 * hold what it wrote before what it saw.
 *
 * @example
 * ```ts
 * const agent = yield* ReflexionAgent.make({ model: "gpt-4.1-mini", reflectOnFailureOnly: true })
 * ```
 */
export const make = (config: ReflexionAgentConfig): Effect.Effect<Agent, ConfigError, Lm> =>
  Effect.gen(function* () {
    yield* checkCount(type, "history_k", config.historyK)
    yield* checkCount(type, "max_reflections_in_prompt", config.maxReflectionsInPrompt)
    return build(config, yield* Lm, config.memory ?? Reflections.make(), true)
  })

const build = (config: ReflexionAgentConfig, lm: LmService, memory: Memory, training: boolean): Agent => {
  const { historyK = null, maxReflectionsInPrompt = 10 } = config
  const own = training ? memory : memory.readOnly
  const settings = { ...config, systemPrompt: config.agentSystemPrompt ?? config.systemPrompt ?? null }
  const conversation = Conversation.make({ agent: type, settings, lm })
  const experience = recollection(own, training, (feedback) => ({ ...feedback }))

  const remembered = (query: string) =>
    Effect.zipWith(
      own.recall({ query, limit: maxReflectionsInPrompt, where: isReflection }),
      experience.history(query, historyK),
      (reflections, history) => [...reflections, ...history],
    )

  const isToReflect = (): boolean => {
    const { enableReflection = true, reflectOnFailureOnly = false, failureThreshold = 1 } = config
    if (!training || !enableReflection || experience.trail().length === 0) return false
    return !reflectOnFailureOnly || experience.score() < failureThreshold
  }

  const reflect: Effect.Effect<ReadonlyArray<ModelCall>, AgentFailure> = Effect.gen(function* () {
    const messages = reflectionMessages(config, experience.trail(), experience.score())
    const context = yield* CallContext
    const completion = yield* Effect.provideService(
      lm.complete({ ...Conversation.requestOf(config), messages }),
      CallContext,
      { ...context, purpose: "reflection" },
    )
    const incomplete = Conversation.isIncomplete(completion, config)
    const reflection = completion.content.trim()
    const filtered = completion.finishReason === "content_filter"
    if (incomplete || filtered || reflection === "") {
      const why = incomplete ? "was cut off at its length" : filtered ? "was withheld by a filter" : "was empty"
      yield* Effect.logWarning(`A reflection ${why}, so it isn't remembered`)
    } else {
      yield* own.add(entry("Reflection", reflection))
    }
    const call: ModelCall = {
      purpose: "reflection",
      target: "internal",
      loopIndex: 0,
      messages,
      completion,
      toolResults: [],
      parsed: null,
      incomplete,
    }
    return [call]
  })

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
        return Effect.flatMap(remembered(text), (entries) => conversation.say(promptOf(entries, text)))
      }),
    observe: (seen) =>
      Effect.suspend(() => {
        conversation.reset()
        return experience.stepped(seen)
      }),
    // What a failed call of the model leaves is all there, so the end can be tried again.
    endEpisode: Effect.andThen(
      experience.ended,
      Effect.suspend(() => (isToReflect() ? reflect : Effect.succeed([]))),
    ).pipe(Effect.tap(() => Effect.sync(experience.reset))),
    cloneForEpisode: (how) => Effect.map(memoryFor(memory, how), (memory) => build(config, lm, memory, how.training)),
  }
}

const reflectionMessages = (
  { reflectionSystemPrompt, reflectionFewShotExamples }: ReflexionAgentConfig,
  trail: ReadonlyArray<MemoryEntry>,
  score: number,
): ReadonlyArray<ChatMessage> => {
  const examples =
    reflectionFewShotExamples === null || reflectionFewShotExamples === undefined
      ? []
      : [`Examples:\n\n${reflectionFewShotExamples.trim()}`]
  const parts = [...examples, "The episode:", ...trail.map(lineOf), `Its score: ${score}`, "Reflection:"]
  return [
    ...Conversation.systemMessages(reflectionSystemPrompt ?? defaultReflectionPrompt),
    { role: "user", content: parts.join("\n\n") },
  ]
}
