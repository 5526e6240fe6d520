import { Effect, Schema } from "effect"
import { display } from "../../config/Config.ts"
import { messageOf } from "../../config/text.ts"
import { AgentError } from "../AgentError.ts"
import { MemoryEntry } from "./Memory.ts"

/** Those that `entry` made: nobody can change them, and a file gives them back as they are. */
const kept = new WeakSet<MemoryEntry>()

const frozen = (value: unknown): unknown => {
  if (typeof value === "object" && value !== null) {
    Object.values(value).forEach(frozen)
    Object.freeze(value)
  }
  return value
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/**
 * An entry as a memory keeps it. Content that is an object is copied the way a file would hold it, so a memory and its
 * snapshot never differ; what JSON can't hold at all (a cycle, a bigint) throws.
 */
export const entry = (type: string, content: MemoryEntry["content"]): MemoryEntry => {
  const copied: unknown = typeof content === "string" ? content : frozen(JSON.parse(JSON.stringify(content)))
  const made = Object.freeze({ type, content: typeof copied === "string" || isRecord(copied) ? copied : {} })
  kept.add(made)
  return made
}

/** The same one if a memory may keep it as it is, else a copy. */
export const held = (given: MemoryEntry): MemoryEntry => (kept.has(given) ? given : entry(given.type, given.content))

/** `held`, whose throwing is a failure of the memory of that type. */
export const holding = (memory: string, given: MemoryEntry): Effect.Effect<MemoryEntry, AgentError> =>
  Effect.try({
    try: () => held(given),
    catch: (error) =>
      new AgentError({
        agent: memory,
        message: `memory "${memory}" can't keep a ${given.type}: ${messageOf(error)}; expected what JSON can hold`,
      }),
  })

/** A line of JSON an entry. */
export const toLines = (entries: ReadonlyArray<MemoryEntry>): string =>
  entries.map(({ type, content }) => `${JSON.stringify({ type, content })}\n`).join("")

const isEntry = Schema.is(MemoryEntry)

const expected = 'expected an object with a "type" and a "content" (text or an object)'

/** What `toLines` wrote. A line that is no entry is an error that names the source and the line. */
export const fromLines = (
  memory: string,
  text: string,
  source: string,
): Effect.Effect<ReadonlyArray<MemoryEntry>, AgentError> => {
  const lines = text.split("\n")
  if (lines.at(-1) === "") lines.pop()
  const entries: Array<MemoryEntry> = []
  for (const [index, line] of lines.entries()) {
    const parsed = parse(line)
    if (!isEntry(parsed.value)) {
      const found = parsed.isJson ? display(parsed.value) : display(line)
      const message = `${source}:${index + 1}: ${parsed.isJson ? expected : `${expected} as JSON`}, found ${found}`
      return Effect.fail(new AgentError({ agent: memory, message }))
    }
    entries.push(entry(parsed.value.type, parsed.value.content))
  }
  return Effect.succeed(entries)
}

const parse = (line: string): { readonly isJson: boolean; readonly value: unknown } => {
  try {
    return { isJson: true, value: JSON.parse(line) }
  } catch {
    return { isJson: false, value: undefined }
  }
}
