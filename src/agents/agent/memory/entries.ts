/** Makes memory entries, checks them, and converts them to lines of JSON and back. These are pure functions. */
import { Effect, Schema } from "effect"
import { display, isPlain } from "../../../base/config/Config.ts"
import { messageOf, parsedJson } from "../../../base/text/text.ts"
import { AgentError } from "../AgentError.ts"
import { MemoryEntry } from "./Memory.ts"

/** The entries that `entry` has made. They are already copied and frozen, so a memory need not copy them. */
const frozenEntries = new WeakSet<MemoryEntry>()

const frozen = (value: unknown): unknown => {
  if (typeof value === "object" && value !== null) {
    Object.values(value).forEach(frozen)
    Object.freeze(value)
  }
  return value
}

/**
 * Makes an entry. An object is copied through JSON, so that a memory and its snapshot are always equal. Throws on
 * content that JSON cannot hold, such as a cycle or a bigint.
 */
export const entry = (type: string, content: MemoryEntry["content"]): MemoryEntry => {
  const copied: unknown = typeof content === "string" ? content : frozen(JSON.parse(JSON.stringify(content)))
  const frozenEntry = Object.freeze({ type, content: typeof copied === "string" || isPlain(copied) ? copied : {} })
  frozenEntries.add(frozenEntry)
  return frozenEntry
}

/**
 * Returns the entry in a form that a memory can keep: the entry itself, or a frozen copy. Fails if it cannot be converted to
 * JSON.
 */
export const holding = (memory: string, value: MemoryEntry): Effect.Effect<MemoryEntry, AgentError> =>
  Effect.try({
    try: () => (frozenEntries.has(value) ? value : entry(value.type, value.content)),
    catch: (error) => {
      const problem = `cannot keep a ${value.type}: ${messageOf(error)}; expected content that JSON can hold`
      return new AgentError({ agent: memory, message: `memory "${memory}": ${problem}` })
    },
  })

/** Encodes entries as lines of JSON. */
export const toLines = (entries: ReadonlyArray<MemoryEntry>): string =>
  entries.map(({ type, content }) => `${JSON.stringify({ type, content })}\n`).join("")

const isEntry = Schema.is(MemoryEntry)

const expected = 'expected an object with a "type" and a "content" (text or an object)'

/** Decodes lines that `toLines` made. If a line is invalid, the error names the source and the line. */
export const fromLines = (
  memory: string,
  text: string,
  source: string,
): Effect.Effect<ReadonlyArray<MemoryEntry>, AgentError> => {
  const lines = text.split("\n")
  if (lines.at(-1) === "") lines.pop()
  const entries: Array<MemoryEntry> = []
  for (const [index, line] of lines.entries()) {
    const value = parsedJson(line)
    if (!isEntry(value)) {
      const problem =
        value === undefined ? `${expected} as JSON, found ${display(line)}` : `${expected}, found ${display(value)}`
      return Effect.fail(new AgentError({ agent: memory, message: `${source}:${index + 1}: ${problem}` }))
    }
    entries.push(entry(value.type, value.content))
  }
  return Effect.succeed(entries)
}
