/**
 * Writes and reads the journal of an evaluation, `played.jsonl`. It has a line with settings, then a line for every episode,
 * which is written as soon as the episode has its scores. A stopped evaluation resumes from it without repeating any call of
 * a model. Each line ends with its own SHA-256 (its seal), so that a changed line is detected. `execute.ts` calls it.
 */
import { Effect, Schema, Semaphore, Stream } from "effect"
import { FormatError } from "../../base/formats/FormatError.ts"
import { type JsonLine, lines, valueOf } from "../../base/formats/jsonLines.ts"
import { sealed, unsealed } from "../../base/formats/sealedLine.ts"
import type { Part } from "../../run/store/FileTree.ts"
import type { RunFiles } from "../../run/store/RunFiles.ts"
import type { RunStoreError } from "../../run/store/RunStoreError.ts"
import { Spending } from "../lm/middleware/budgeted.ts"
import { evaluation as files } from "../../run/Layout.ts"
import { EpisodeToScore } from "./PlayedEpisode.ts"
import { EpisodeRow } from "./rows.ts"

/** An episode that has ended, with its scores. */
export const JournalEntry = Schema.Struct({
  played: EpisodeToScore,
  row: EpisodeRow,
  /** The calls, tokens and cost of all agents together when this episode had ended. */
  spent: Spending,
  /** The seconds that the run had taken when this episode had ended. */
  seconds: Schema.Finite,
})
export type JournalEntry = typeof JournalEntry.Type

/** The first line of a journal: the settings with which the episodes were played. */
export const JournalHead = Schema.Struct({ evaluation: Schema.Record(Schema.String, Schema.Unknown) })
type JournalHead = typeof JournalHead.Type

/**
 * The position of an episode's line in the journal. Only positions are kept in memory, because all episodes would not fit.
 */
export interface JournalledEpisode extends Part {
  readonly agent: string
  readonly index: number
}

// Each function decodes a line of the journal: the first line, any JSON, or an episode.
const headOf = valueOf(JournalHead)
const jsonOf = valueOf(Schema.Unknown)
const entryOf = valueOf(JournalEntry)
const isEntry = Schema.is(JournalEntry)

/**
 * Parses the line of an episode. Fails if it does not fit the Schema. The result is the parsed JSON, not a decoded value:
 * decoding would reorder its keys, and a resumed evaluation must write the same text to its tables.
 */
const parsedEntry = Effect.fnUntraced(function* (path: string, line: JsonLine) {
  const value = yield* jsonOf(path, line)
  return isEntry(value) ? value : yield* entryOf(path, line)
})

/** Checks the digest at the end of a line, and returns the line without it. */
const checked = Effect.fnUntraced(function* (path: string, line: JsonLine) {
  const bytes = unsealed(line.bytes)
  if (bytes !== undefined) return { ...line, bytes }
  const remedy =
    line.number === 1
      ? "put it back as it was, or start a new evaluation"
      : "remove it, and its episode is played again"
  const message = `${path}:${line.number}: the line was changed after it was written; ${remedy}`
  return yield* new FormatError({ path, line: line.number, message })
})

/**
 * Reads the journal of an earlier process: its settings, the positions of its episodes, and the calls, tokens, cost and time
 * that they took. Without a journal, the settings are undefined. Removes an incomplete last line from the file.
 */
export const readEarlier = Effect.fnUntraced(function* (run: RunFiles) {
  const path = `${run.directory}/${files.journal}`
  /** The settings in the first line; undefined if there is no journal. */
  let evaluation: JournalHead["evaluation"] | undefined
  /** The largest totals of calls, tokens and cost; undefined if no episode was played. */
  let spent: Spending | undefined
  let seconds = 0
  /** The byte offset after the last complete line. */
  let end = 0
  const entries: Array<JournalledEpisode> = []
  if (!(yield* run.exists(files.journal))) return { evaluation, entries, spent, seconds }
  yield* Stream.runForEach(lines(run.stream(files.journal)), (line) =>
    Effect.gen(function* () {
      if (!line.whole) return
      end = line.end
      const content = yield* checked(path, line)
      if (evaluation === undefined) {
        evaluation = (yield* headOf(path, content)).evaluation
        return
      }
      const { row, played, ...totals } = yield* parsedEntry(path, content)
      const bytes = line.bytes.length + "\n".length
      entries.push({ agent: row.agent, index: played.index, offset: line.end - bytes, bytes })
      // Concurrent episodes may be written in another order than the one in which they ended, so keep the largest totals.
      if (spent === undefined || totals.spent.calls >= spent.calls) spent = totals.spent
      seconds = Math.max(seconds, totals.seconds)
    }),
  )
  if (end < (yield* run.size(files.journal))) yield* run.truncate(files.journal, end)
  return { evaluation, entries, spent, seconds }
})

/** Reads one episode from its position in the journal. */
export const readAgain = (
  run: RunFiles,
  kept: JournalledEpisode,
): Effect.Effect<JournalEntry, RunStoreError | FormatError> => {
  const path = `${run.directory}/${files.journal}`
  return lines(run.stream(files.journal, kept)).pipe(
    Stream.mapEffect((line) => Effect.flatMap(checked(path, line), (content) => parsedEntry(path, content))),
    Stream.runHead,
    Effect.flatMap((entry) =>
      Effect.fromOption(entry).pipe(
        Effect.mapError(
          () =>
            new FormatError({
              path,
              message: `${path}: the file was changed while it was read; resume again`,
            }),
        ),
      ),
    ),
  )
}

/** Writes the first line of a new journal: the settings on which the episodes depend. */
export const begin = (run: RunFiles, evaluation: JournalHead["evaluation"]): Effect.Effect<void, RunStoreError> =>
  run.append(files.journal, `${sealed({ evaluation })}\n`)

/** Opens the journal, and returns a function that appends an episode. An interruption waits until the line is complete. */
export const journal = Effect.fnUntraced(function* (run: RunFiles) {
  const append = yield* run.appending(files.journal)
  const oneAtATime = Semaphore.makeUnsafe(1)
  return (entry: JournalEntry) => Effect.uninterruptible(oneAtATime.withPermit(append(`${sealed(entry)}\n`)))
})
