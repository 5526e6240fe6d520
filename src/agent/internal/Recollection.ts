import { Effect } from "effect"
import type { Feedback } from "../../task/Feedback.ts"
import type { Seen } from "../Agent.ts"
import type { AgentError } from "../AgentError.ts"
import { holding } from "../memory/entries.ts"
import type { Memory, MemoryEntry } from "../memory/Memory.ts"

/**
 * An episode on its way into the memory, and the memory on its way into a prompt.
 *
 * What is seen, done and told becomes an entry each when the step that it belongs to is over: one Observation for each
 * observation, however often an answer to it was refused. In training entries go to the memory; in evaluation they stay
 * here, and prompts look the same.
 */
export interface Recollection {
  readonly reset: () => void
  /** An observation is acted upon. */
  readonly shown: (text: string) => void
  readonly stepped: (seen: Seen) => Effect.Effect<void, AgentError>
  /** What was seen last, but not acted upon, is remembered, too. */
  readonly ended: Effect.Effect<void, AgentError>
  /** The memory's and this episode's last `limit` entries, or what is nearest to `query` and then this episode's. */
  readonly history: (query: string, limit: number | null) => Effect.Effect<ReadonlyArray<MemoryEntry>, AgentError>
  /** Of this episode. */
  readonly trail: () => ReadonlyArray<MemoryEntry>
  /** The sum of the feedbacks' scores. */
  readonly score: () => number
}

/** Reflections have a place of their own in a prompt. */
const isHistory = (type: string): boolean => type !== "Reflection"

export const make = (
  memory: Memory,
  training: boolean,
  contentOf: (feedback: Feedback) => MemoryEntry["content"],
): Recollection => {
  let trail: Array<MemoryEntry> = []
  /** Seen, and not yet remembered; empty where there was nothing to see. */
  let pending = ""
  let score = 0

  const keep = (type: string, content: MemoryEntry["content"]): Effect.Effect<void, AgentError> =>
    Effect.flatMap(holding(memory.type, { type, content }), (made) => {
      trail.push(made)
      return training ? memory.add(made) : Effect.void
    })

  return {
    reset: () => {
      trail = []
      pending = ""
      score = 0
    },
    shown: (text) => {
      pending = text
    },
    stepped: ({ action, observation, feedback }) =>
      Effect.gen(function* () {
        if (pending !== "") yield* keep("Observation", pending)
        pending = observation ?? ""
        yield* keep("Action", action)
        if (feedback === null) return
        score += feedback.score
        yield* keep("Feedback", contentOf(feedback))
      }),
    ended: Effect.suspend(() => {
      if (pending === "") return Effect.void
      const last = pending
      pending = ""
      return keep("Observation", last)
    }),
    history: (query, limit) => {
      const about = { query, limit, where: isHistory }
      if (memory.recalls === "similar") {
        const past = memory.recall({ ...about, except: new Set(trail) })
        return limit === 0 ? past : Effect.map(past, (past) => [...past, ...trail])
      }
      const recalled = memory.recall(about)
      if (trail.length === 0 || limit === 0) return recalled
      // In training the memory holds the trail already.
      if (training) return recalled
      // It would forget, too.
      const most = Math.min(limit ?? Infinity, memory.maxLength ?? Infinity)
      return Effect.map(recalled, (past) => {
        const all = [...past, ...trail]
        return all.slice(Math.max(0, all.length - most))
      })
    },
    trail: () => trail,
    score: () => score,
  }
}

/** Entries never change, and the same ones are in prompt after prompt. */
const lines = new WeakMap<MemoryEntry, string>()

/** `OBSERVATION: A door.`; content that is an object is shown as JSON. */
export const lineOf = (made: MemoryEntry): string => {
  const known = lines.get(made)
  if (known !== undefined) return known
  const { type, content } = made
  const line = `${type.toUpperCase()}: ${typeof content === "string" ? content : JSON.stringify(content)}`
  lines.set(made, line)
  return line
}

/** What is remembered, a paragraph each, and what is seen now. */
export const promptOf = (remembered: ReadonlyArray<MemoryEntry>, observation: string): string =>
  [...remembered.map(lineOf), observation].join("\n\n")
