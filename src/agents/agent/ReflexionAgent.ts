/** Makes the Reflexion agent (`reflexion_agent` in configs). After an episode, its model writes what to do better. */
import { Effect } from "effect"
import type { ConfigError } from "../../base/config/Config.ts"
import type { ChatMessage } from "../lm/Chat.ts"
import { CallContext, type Lm } from "../lm/Lm.ts"
import type { Agent, AgentFailure, ModelCall } from "./Agent.ts"
import * as Conversation from "./Conversation.ts"
import { checkCount } from "./internal/agents.ts"
import { recallingAgent, type Remembering } from "./internal/recallingAgent.ts"
import { lineOf } from "./internal/Recollection.ts"
import { entry } from "./memory/entries.ts"
import type { AgentMemory, MemoryEntry } from "./memory/Memory.ts"
import * as Reflections from "./memory/Reflections.ts"

export interface ReflexionAgentConfig extends Conversation.AgentSettings {
  /** The memory; by default it keeps the last 200 reflections and the last 200 other entries. */
  readonly memory?: AgentMemory | null
  /** The number of memory entries in a prompt, not counting reflections; null means all entries, 0 none. */
  readonly historyK?: number | null
  /** Whether the agent reflects after a training episode; true by default. */
  readonly enableReflection?: boolean
  /**
   * Whether the agent reflects only on failed episodes: those whose scores add up to less than `failureThreshold` (1 by
   * default).
   */
  readonly reflectOnFailureOnly?: boolean
  readonly failureThreshold?: number
  /** The number of reflections (the newest ones) in a prompt, before the history; 10 by default. null means all. */
  readonly maxReflectionsInPrompt?: number | null
  /** The system prompt for acting; by default `systemPrompt`. */
  readonly agentSystemPrompt?: string | null
  /** The system prompt for reflecting; by default a built-in one. */
  readonly reflectionSystemPrompt?: string | null
  /** Examples for the prompt for reflecting, before the episode. */
  readonly reflectionFewShotExamples?: string | null
}

export const type = "reflexion_agent"

const defaultReflectionPrompt = `Reflect on an episode: what was seen, what was done, and what was said about it.
In two to four sentences, say what to remember for the next time. If it went well: what made the difference? If it did
not: what was the mistake, and what should be done instead? Be specific; what you write is all that is remembered.`

const isReflection = (type: string): boolean => type === "Reflection"

/**
 * Makes the agent that reflects (Shinn et al. 2023, arXiv:2303.11366). After a training episode, it writes down what to do
 * better; later prompts show these reflections before the history.
 *
 * @example
 * ```ts
 * const agent = yield* ReflexionAgent.make({ model: "gpt-4.1-mini", reflectOnFailureOnly: true })
 * ```
 */
export const make = (config: ReflexionAgentConfig): Effect.Effect<Agent, ConfigError, Lm> =>
  Effect.gen(function* () {
    const { historyK = null, maxReflectionsInPrompt = 10 } = config
    const { enableReflection = true, reflectOnFailureOnly = false, failureThreshold = 1 } = config
    yield* checkCount(type, "history_k", historyK)
    yield* checkCount(type, "max_reflections_in_prompt", maxReflectionsInPrompt)

    /** Tells whether the agent must reflect on the episode that has ended, by its settings and the episode's score. */
    const mustReflect = ({ training, recollection }: Remembering): boolean => {
      if (!training || !enableReflection || recollection.trajectory().length === 0) return false
      return !reflectOnFailureOnly || recollection.score() < failureThreshold
    }

    return yield* recallingAgent(
      {
        type,
        settings: { ...config, systemPrompt: config.agentSystemPrompt ?? config.systemPrompt ?? null },
        contentOf: (feedback) => ({ ...feedback }),
        recall: ({ memory, recollection }, observation) =>
          Effect.zipWith(
            memory.recall({ query: observation, limit: maxReflectionsInPrompt, where: isReflection }),
            recollection.history(observation, historyK),
            (reflections, history) => [...reflections, ...history],
          ),
        // Reset the recollection last, so that `endEpisode` can be called again if the call of the model fails.
        endEpisode: (remembering) =>
          remembering.recollection.end.pipe(
            Effect.andThen(Effect.suspend(() => (mustReflect(remembering) ? reflect(config, remembering) : none))),
            Effect.tap(() => Effect.sync(remembering.recollection.reset)),
          ),
      },
      config.memory ?? Reflections.make(),
    )
  })

const none = Effect.succeed<ReadonlyArray<ModelCall>>([])

/** Asks the model for a reflection on the episode, and adds it to the memory unless it is empty or incomplete. */
const reflect = (
  config: ReflexionAgentConfig,
  { lm, memory, recollection }: Remembering,
): Effect.Effect<ReadonlyArray<ModelCall>, AgentFailure> =>
  Effect.gen(function* () {
    const messages = reflectionMessages(config, recollection.trajectory(), recollection.score())
    const context = { ...(yield* CallContext), purpose: "reflection" } as const
    const request = { ...Conversation.requestOf(config), messages }
    const completion = yield* Effect.provideService(lm.complete(request), CallContext, context)
    const incomplete = Conversation.isIncomplete(completion, config)
    const reflection = completion.content.trim()
    const filtered = completion.finishReason === "content_filter"
    if (incomplete || filtered || reflection === "") {
      const problem = incomplete ? "was cut off at its length" : filtered ? "was withheld by a filter" : "is empty"
      yield* Effect.logWarning(`A reflection ${problem}, so it is not added to the memory`)
    } else {
      yield* memory.add(entry("Reflection", reflection))
    }
    const kind = { purpose: "reflection", target: "internal", loopIndex: 0 } as const
    return [{ ...kind, messages, completion, toolResults: [], parsed: null, incomplete }]
  })

const reflectionMessages = (
  { reflectionSystemPrompt, reflectionFewShotExamples }: ReflexionAgentConfig,
  trajectory: ReadonlyArray<MemoryEntry>,
  score: number,
): ReadonlyArray<ChatMessage> => {
  const examples =
    reflectionFewShotExamples === null || reflectionFewShotExamples === undefined
      ? []
      : [`Examples:\n\n${reflectionFewShotExamples.trim()}`]
  const parts = [...examples, "The episode:", ...trajectory.map(lineOf), `Its score: ${score}`, "Reflection:"]
  return [
    ...Conversation.systemMessages(reflectionSystemPrompt ?? defaultReflectionPrompt),
    { role: "user", content: parts.join("\n\n") },
  ]
}
