/** Makes the memory `key_value`, which keeps notes, and the tools with which the model writes and reads them. */
import { Effect, Schema } from "effect"
import * as Tool from "../Tool.ts"
import { entry } from "./entries.ts"
import type { AgentMemory, MemoryEntry } from "./Memory.ts"
import { fromStore, type MemoryStore } from "./MemoryStore.ts"

export const type = "key_value"

export interface KeyValueOptions {
  /** The number of notes to keep, 100 by default. If there are more, the oldest is forgotten. null sets no limit. */
  readonly maxLength?: number | null
}

/**
 * Makes a memory of named notes. A new note replaces the old note with the same name. The memory keeps only notes that the
 * model writes with `tools`, and ignores other entries, such as observations.
 *
 * @example
 * ```ts
 * const memory = KeyValueMemory.make({ maxLength: 20 })
 * yield* memory.add(KeyValueMemory.note("red door", "needs the brass key"))
 * ```
 */
export const make = ({ maxLength = 100 }: KeyValueOptions = {}): AgentMemory =>
  fromStore(type, "similar", store(maxLength))

/** Makes the entry of a note; the value null deletes the note. */
export const note = (key: string, value: string | null): MemoryEntry => entry("Note", { key, value })

const readNote = Schema.decodeUnknownOption(Schema.Struct({ key: Schema.String, value: Schema.NullOr(Schema.String) }))

/** Decodes the note in an entry; None if the entry is not a note. */
const noteIn = ({ type, content }: MemoryEntry) => (type === "Note" ? readNote(content) : readNote(null))

const store = (maxLength: number | null): MemoryStore => {
  /** The notes by name, in the order in which they were written. */
  const notes = new Map<string, MemoryEntry>()
  const all = (where?: (type: string) => boolean): ReadonlyArray<MemoryEntry> =>
    where === undefined || where("Note") ? [...notes.values()] : []
  return {
    maxLength,
    length: () => notes.size,
    accepts: (entry) => noteIn(entry)._tag === "Some",
    add: (entry) => {
      const written = noteIn(entry)
      if (written._tag === "None") return
      const { key, value } = written.value
      notes.delete(key)
      if (value === null) return
      notes.set(key, entry)
      const [oldest] = notes.keys()
      if (maxLength !== null && notes.size > maxLength) notes.delete(oldest)
    },
    recall: ({ limit, where, except }) =>
      Effect.sync(() => {
        const matching = all(where).filter((entry) => except?.has(entry) !== true)
        return limit === null ? matching : matching.slice(Math.max(0, matching.length - limit))
      }),
    entries: () => all(),
    clear: () => notes.clear(),
    another: () => store(maxLength),
  }
}

/**
 * Makes the tools with which a model writes and reads its notes: `remember`, `look_up` and `forget`. In evaluation, a call
 * that writes returns an error to the model.
 *
 * @example
 * ```ts
 * const agent = yield* ToolAgent.make({ model: "gpt-4.1-mini", memory: KeyValueMemory.make() }) // has these tools
 * ```
 */
export const tools = (memory: AgentMemory, training: boolean): ReadonlyArray<Tool.Tool> => {
  const write = (noteEntry: MemoryEntry, done: string) =>
    training ? Effect.as(memory.add(noteEntry), done) : Effect.fail(new Error("nothing is written down in a test"))
  const valuesOf = (key: string) =>
    Effect.map(memory.entries, (entries) =>
      entries.flatMap((noteEntry) => {
        const read = noteIn(noteEntry)
        return read._tag === "Some" && read.value.key === key && read.value.value !== null ? [read.value.value] : []
      }),
    )
  return [
    Tool.make({
      name: "remember",
      description: "Writes a note down for later episodes, in the place of the one of that name.",
      parameters: Schema.Struct({ key: Schema.NonEmptyString, value: Schema.NonEmptyString }),
      run: ({ key, value }) => write(note(key, value), `Noted: ${key}`),
    }),
    Tool.make({
      name: "look_up",
      description: "Reads the note of a name.",
      parameters: Schema.Struct({ key: Schema.NonEmptyString }),
      run: ({ key }) => Effect.map(valuesOf(key), ([value]) => value ?? `There is no note "${key}".`),
    }),
    Tool.make({
      name: "forget",
      description: "Takes the note of a name away.",
      parameters: Schema.Struct({ key: Schema.NonEmptyString }),
      run: ({ key }) => write(note(key, null), `Forgotten: ${key}`),
    }),
  ]
}
