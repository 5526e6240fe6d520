import { Effect, Schema } from "effect"
import * as Tool from "../Tool.ts"
import { entry } from "./entries.ts"
import type { Memory, MemoryEntry } from "./Memory.ts"
import { fromStore, type MemoryStore } from "./MemoryStore.ts"

export const type = "key_value"

export interface KeyValueOptions {
  /** Of notes; past it the one that was written longest ago is forgotten. 100 unless given, null: unbounded. */
  readonly maxLength?: number | null
}

/**
 * The memory of notes that have names: a new note takes the place of the old one of its name. Only notes are kept; what
 * an agent sees and does is not, unless it writes it down by the `tools`.
 *
 * @example
 * ```ts
 * const memory = KeyValueMemory.make({ maxLength: 20 })
 * yield* memory.add(KeyValueMemory.note("red door", "needs the brass key"))
 * ```
 */
export const make = ({ maxLength = 100 }: KeyValueOptions = {}): Memory => fromStore(type, "similar", store(maxLength))

/** A note; without a value it takes the one of its name away. */
export const note = (key: string, value: string | null): MemoryEntry => entry("Note", { key, value })

const readNote = Schema.decodeUnknownOption(Schema.Struct({ key: Schema.String, value: Schema.NullOr(Schema.String) }))

const noteIn = ({ type, content }: MemoryEntry) => (type === "Note" ? readNote(content) : readNote(null))

const store = (maxLength: number | null): MemoryStore => {
  /** In the order in which they were written. */
  const notes = new Map<string, MemoryEntry>()
  const all = (where?: (type: string) => boolean): ReadonlyArray<MemoryEntry> =>
    where === undefined || where("Note") ? [...notes.values()] : []
  return {
    maxLength,
    length: () => notes.size,
    accepts: (given) => noteIn(given)._tag === "Some",
    add: (given) => {
      const found = noteIn(given)
      if (found._tag === "None") return
      const { key, value } = found.value
      notes.delete(key)
      if (value === null) return
      notes.set(key, given)
      if (maxLength === null || notes.size <= maxLength) return
      for (const oldest of notes.keys()) {
        notes.delete(oldest)
        break
      }
    },
    recall: ({ limit, where, except }) =>
      Effect.sync(() => {
        const found = all(where).filter((made) => except?.has(made) !== true)
        return limit === null ? found : found.slice(Math.max(0, found.length - limit))
      }),
    entries: () => all(),
    clear: () => notes.clear(),
    another: () => store(maxLength),
  }
}

/**
 * By which a model writes and reads its notes: `remember`, `look_up` and `forget`. In evaluation nothing is written, and
 * the model is told so.
 *
 * @example
 * ```ts
 * const agent = yield* ToolAgent.make({ model: "gpt-4.1-mini", memory: KeyValueMemory.make() }) // has them by itself
 * ```
 */
export const tools = (memory: Memory, training: boolean): ReadonlyArray<Tool.Tool> => {
  const write = (made: MemoryEntry, done: string) =>
    training ? Effect.as(memory.add(made), done) : Effect.fail(new Error("nothing is written down in a test"))
  const found = (key: string) =>
    Effect.map(memory.entries, (entries) =>
      entries.flatMap((made) => {
        const read = noteIn(made)
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
      run: ({ key }) => Effect.map(found(key), ([value]) => value ?? `There is no note "${key}".`),
    }),
    Tool.make({
      name: "forget",
      description: "Takes the note of a name away.",
      parameters: Schema.Struct({ key: Schema.NonEmptyString }),
      run: ({ key }) => write(note(key, null), `Forgotten: ${key}`),
    }),
  ]
}
