/**
 * Makes the journal of a run that asks models: a file with a line of settings, then a line for each answer that was paid for, which
 * is written as soon as it is there. A stopped run resumes from it without repeating a call. Each line ends with its own SHA-256
 * (its seal), so that a changed line is detected. `journal.ts` here and in `prompts/` are such journals.
 *
 * @example
 * ```text
 * const journal = sealedJournal({ file: "played.jsonl", head: "evaluation", entry: JournalEntry, keyOf, … })
 * yield* journal.begin(run, { seed: 1 })
 * const add = yield* journal.open(run)
 * ```
 */
import { Effect, Schema, Semaphore, Stream } from "effect"
import type { Plain } from "../../base/config/plain.ts"
import { FormatError } from "../../base/formats/FormatError.ts"
import { type JsonLine, lines, valueOf } from "../../base/formats/jsonLines.ts"
import { sealed, unsealed } from "../../base/formats/sealedLine.ts"
import type { Part } from "../../run/store/FileTree.ts"
import type { RunFiles } from "../../run/store/RunFiles.ts"
import type { RunStoreError } from "../../run/store/RunStoreError.ts"
import type { Spending } from "../lm/middleware/budgeted.ts"

/** The fields that each line after the first must have. */
interface Totals {
  /** The calls, tokens and cost of all models together when the line was written. */
  readonly spent: Spending
  /** The seconds that the run had taken when the line was written. */
  readonly seconds: number
}

/**
 * The journal of an earlier process. Only the positions of its lines are kept in memory, because the lines would not fit. It is
 * no interface, because declarations of the journals would have to import an interface, and nothing else does.
 */
type EarlierJournal = {
  /** The settings in the first line; undefined if there is no journal. */
  readonly settings: Plain | undefined
  /** The positions of the other lines, by their keys, in the order of the file. */
  readonly entries: ReadonlyMap<string, Part>
  /** The largest totals of calls, tokens and cost; undefined if there are no other lines. */
  readonly spent: Spending | undefined
  readonly seconds: number
}

interface JournalOptions<Entry extends Totals> {
  /** The path of the file in the run's folder. */
  readonly file: string
  /** The key of the settings in the first line. */
  readonly head: string
  readonly entry: Schema.Codec<Entry, unknown>
  readonly keyOf: (entry: Entry) => string
  /** Texts that say what the user can do if a line was changed: the first one, or another one. */
  readonly remedies: { readonly first: string; readonly other: string }
}

/** Makes the functions that check and parse the lines of a journal. */
const lineReader = <Entry extends Totals>({ head, entry, remedies }: JournalOptions<Entry>) => {
  const jsonOf = valueOf(Schema.Unknown)
  const headOf = valueOf(Schema.Struct({ [head]: Schema.Record(Schema.String, Schema.Unknown) }))
  const entryOf = valueOf(entry)
  const isEntry = Schema.is(entry)

  /** Checks the digest at the end of a line, and returns the line without it. */
  const checked = Effect.fnUntraced(function* (path: string, line: JsonLine) {
    const bytes = unsealed(line.bytes)
    if (bytes !== undefined) return { ...line, bytes }
    const remedy = line.number === 1 ? remedies.first : remedies.other
    const message = `${path}:${line.number}: the line was changed after it was written; ${remedy}`
    return yield* new FormatError({ path, line: line.number, message })
  })

  return {
    settingsIn: Effect.fnUntraced(function* (path: string, line: JsonLine) {
      return (yield* headOf(path, yield* checked(path, line)))[head]
    }),
    /** Parses a line without decoding it: decoding would reorder its keys, and files must have the same text after a resume. */
    entryIn: Effect.fnUntraced(function* (path: string, line: JsonLine) {
      const content = yield* checked(path, line)
      const value = yield* jsonOf(path, content)
      return isEntry(value) ? value : yield* entryOf(path, content)
    }),
  }
}

/** Makes the functions that write and read a journal. */
export const sealedJournal = <Entry extends Totals>(options: JournalOptions<Entry>) => {
  const { file, head, keyOf } = options
  const { settingsIn, entryIn } = lineReader(options)
  const pathOf = (run: RunFiles): string => `${run.directory}/${file}`
  return {
    /** Reads the journal of an earlier process. Removes an incomplete last line from the file. */
    readEarlier: Effect.fnUntraced(function* (
      run: RunFiles,
    ): Effect.fn.Return<EarlierJournal, RunStoreError | FormatError> {
      let settings: Plain | undefined
      let spent: Spending | undefined
      let seconds = 0
      /** The byte offset after the last complete line. */
      let end = 0
      const entries = new Map<string, Part>()
      if (!(yield* run.exists(file))) return { settings, entries, spent, seconds }
      yield* Stream.runForEach(lines(run.stream(file)), (line) =>
        Effect.gen(function* () {
          if (!line.whole) return
          end = line.end
          if (settings === undefined) {
            settings = yield* settingsIn(pathOf(run), line)
            return
          }
          const kept = yield* entryIn(pathOf(run), line)
          const bytes = line.bytes.length + "\n".length
          entries.set(keyOf(kept), { offset: line.end - bytes, bytes })
          // Lines of concurrent episodes may be written in another order than the one in which they ended.
          if (spent === undefined || kept.spent.calls >= spent.calls) spent = kept.spent
          seconds = Math.max(seconds, kept.seconds)
        }),
      )
      if (end < (yield* run.size(file))) yield* run.truncate(file, end)
      return { settings, entries, spent, seconds }
    }),

    /** Reads one line again, from its position. */
    readAgain: (run: RunFiles, part: Part): Effect.Effect<Entry, RunStoreError | FormatError> => {
      const path = pathOf(run)
      const changed = new FormatError({
        path,
        message: `${path}: the file was changed while it was read; resume again`,
      })
      return lines(run.stream(file, part)).pipe(
        Stream.mapEffect((line) => entryIn(path, line)),
        Stream.runHead,
        Effect.flatMap((kept) => Effect.mapError(Effect.fromOption(kept), () => changed)),
      )
    },

    /** Writes the first line of a new journal: the settings on which its answers depend. */
    begin: (run: RunFiles, settings: Plain): Effect.Effect<void, RunStoreError> =>
      run.append(file, `${sealed({ [head]: settings })}\n`),

    /** Opens the journal, and returns a function that appends a line. An interruption waits until the line is complete. */
    open: Effect.fnUntraced(function* (run: RunFiles) {
      const append = yield* run.appending(file)
      const oneAtATime = Semaphore.makeUnsafe(1)
      return (kept: Entry) => Effect.uninterruptible(oneAtATime.withPermit(append(`${sealed(kept)}\n`)))
    }),
  }
}
