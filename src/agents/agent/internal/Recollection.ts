/**
 * Collects the memory entries of an agent's current episode, and formats memory entries for prompts, for agents with a
 * memory.
 */
import { Effect } from "effect"
import type { Feedback } from "../../task/Feedback.ts"
import type { StepResult } from "../Agent.ts"
import type { AgentError } from "../AgentError.ts"
import { holding } from "../memory/entries.ts"
import type { AgentMemory, MemoryEntry } from "../memory/Memory.ts"

/** Reflections are not part of the history: they have their own section in a prompt. */
const isHistory = (type: string): boolean => type !== "Reflection"

export type Recollection = ReturnType<typeof makeRecollection>

/**
 * Makes the recollection of an agent: it converts the steps of the current episode to memory entries, and memory entries to
 * the history in a prompt. `contentOf` converts a feedback to the content of its entry.
 *
 * When a step is over, its observation, action and feedback become one entry each; an observation is added once, even if
 * several answers to it could not be parsed. In training, the entries are added to the memory. In evaluation, they are kept
 * only until the next episode begins; prompts show them in the same way.
 */
export const makeRecollection = (
  memory: AgentMemory,
  training: boolean,
  contentOf: (feedback: Feedback) => MemoryEntry["content"],
) => {
  let trajectory: Array<MemoryEntry> = []
  /** The observation of the current step, which becomes an entry when the step is over; "" if there is none. */
  let pending = ""
  let score = 0

  const add = (type: string, content: MemoryEntry["content"]): Effect.Effect<void, AgentError> =>
    Effect.flatMap(holding(memory.type, { type, content }), (entry) => {
      trajectory.push(entry)
      return training ? memory.add(entry) : Effect.void
    })

  return {
    reset: (): void => {
      trajectory = []
      pending = ""
      score = 0
    },
    /** Begins a step with its observation. */
    begin: (observation: string): void => {
      pending = observation
    },
    /** Adds the entries of the step that has ended, and begins the next step with the next observation. */
    step: ({ action, observation, feedback }: StepResult) =>
      Effect.gen(function* () {
        if (pending !== "") yield* add("Observation", pending)
        pending = observation ?? ""
        yield* add("Action", action)
        if (feedback === null) return
        score += feedback.score
        yield* add("Feedback", contentOf(feedback))
      }),
    /** Adds the last observation of the episode, which has no action. */
    end: Effect.suspend(() => {
      if (pending === "") return Effect.void
      const last = pending
      pending = ""
      return add("Observation", last)
    }),
    /**
     * Returns the history for a prompt: the last `limit` entries (null: all). If the memory recalls similar entries, returns
     * the `limit` entries of earlier episodes that are most similar to `query`, followed by all entries of this episode.
     */
    history: (query: string, limit: number | null): Effect.Effect<ReadonlyArray<MemoryEntry>, AgentError> => {
      const selection = { query, limit, where: isHistory }
      if (memory.recalls === "similar") {
        const past = memory.recall({ ...selection, except: new Set(trajectory) })
        return limit === 0 ? past : Effect.map(past, (past) => [...past, ...trajectory])
      }
      const recalled = memory.recall(selection)
      // In training, the memory already holds the entries of this episode.
      if (training || trajectory.length === 0 || limit === 0) return recalled
      // Apply the memory's limit as if it held the entries of this episode.
      const limitOfBoth = Math.min(limit ?? Infinity, memory.maxLength ?? Infinity)
      return Effect.map(recalled, (past) => {
        const all = [...past, ...trajectory]
        return all.slice(Math.max(0, all.length - limitOfBoth))
      })
    },
    /** Returns the entries of this episode. */
    trajectory: (): ReadonlyArray<MemoryEntry> => trajectory,
    /** Returns the sum of the feedback scores in this episode. */
    score: () => score,
  }
}

/** Caches the lines of entries: an entry never changes, and appears in many prompts. */
const lines = new WeakMap<MemoryEntry, string>()

/** Returns the line of an entry in a prompt, e.g. `OBSERVATION: A door.`; an object is shown as JSON. */
export const lineOf = (entry: MemoryEntry): string => {
  const cached = lines.get(entry)
  if (cached !== undefined) return cached
  const { type, content } = entry
  const line = `${type.toUpperCase()}: ${typeof content === "string" ? content : JSON.stringify(content)}`
  lines.set(entry, line)
  return line
}

/** Makes a prompt: a paragraph for each remembered entry, then the observation. */
export const promptOf = (remembered: ReadonlyArray<MemoryEntry>, observation: string): string =>
  [...remembered.map(lineOf), observation].join("\n\n")
