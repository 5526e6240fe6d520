/**
 * Writes and reads the journal of a run that learns prompts, `prompts.jsonl`: a line with settings, then a line for each
 * played episode and each reflection, which is written as soon as its answer is there. A resumed run makes the same requests
 * again in the same order and finds their answers here, so no paid call is repeated. Each line ends with its own SHA-256.
 */
import { Effect, Schema, Semaphore, Stream } from "effect"
import { FormatError } from "../../base/formats/FormatError.ts"
import { type JsonLine, lines, valueOf } from "../../base/formats/jsonLines.ts"
import { sealed, unsealed } from "../../base/formats/sealedLine.ts"
import { EpisodeToScore } from "../evaluate/PlayedEpisode.ts"
import { EpisodeRow } from "../evaluate/rows.ts"
import { Completion } from "../lm/Chat.ts"
import { Spending } from "../lm/middleware/budgeted.ts"
import { Texts } from "./candidates.ts"
import { prompts as files } from "../../run/Layout.ts"
import type { Part } from "../../run/store/FileTree.ts"
import type { RunFiles } from "../../run/store/RunFiles.ts"
import type { RunStoreError } from "../../run/store/RunStoreError.ts"

const totals = {
  /** The calls, tokens and cost of all models together when this line was written. */
  spent: Spending,
  /** The seconds that the run had taken when this line was written. */
  seconds: Schema.Finite,
}

/** A played episode. `place` names the request that it answers, e.g. `iteration/3/parent`. */
export const EpisodeEntry = Schema.Struct({
  place: Schema.String,
  played: EpisodeToScore,
  row: EpisodeRow,
  /** The texts for which an agent with code of its own asked, with its own values. Only the seed's validation has them. */
  asked: Schema.optionalKey(Texts),
  ...totals,
})
export type EpisodeEntry = typeof EpisodeEntry.Type

/** The answer of the reflection model, with the prompt. The answer is null if a filter withheld it. */
const ReflectionEntry = Schema.Struct({
  place: Schema.String,
  prompt: Schema.String,
  completion: Schema.NullOr(Completion),
  ...totals,
})

const Entry = Schema.Union([EpisodeEntry, ReflectionEntry])
type Entry = typeof Entry.Type

const Head = Schema.Struct({ prompts: Schema.Record(Schema.String, Schema.Unknown) })
type Head = typeof Head.Type

const headOf = valueOf(Head)
const jsonOf = valueOf(Schema.Unknown)
const entryOf = valueOf(Entry)
const isEntry = Schema.is(Entry)

/** Returns the key of a line: the request, and for an episode its task. */
export const keyOf = (place: string, task?: number): string => (task === undefined ? place : `${place} ${task}`)

const ownKey = (entry: Entry): string => keyOf(entry.place, "played" in entry ? entry.played.task : undefined)

/** Checks the digest at the end of a line, and returns the line without it. */
const checked = Effect.fnUntraced(function* (path: string, line: JsonLine) {
  const bytes = unsealed(line.bytes)
  if (bytes !== undefined) return { ...line, bytes }
  const remedy =
    line.number === 1 ? "put it back as it was, or start a new run" : "remove it, and its call is made again"
  const message = `${path}:${line.number}: the line was changed after it was written; ${remedy}`
  return yield* new FormatError({ path, line: line.number, message })
})

/** Parses a line without decoding it: decoding would reorder its keys, and files must have the same text after a resume. */
const parsedEntry = Effect.fnUntraced(function* (path: string, line: JsonLine) {
  const content = yield* checked(path, line)
  const value = yield* jsonOf(path, content)
  return isEntry(value) ? value : yield* entryOf(path, content)
})

/** The journal of an earlier process. Only the positions of its lines are kept in memory. */
interface EarlierJournal {
  /** The settings in the first line; undefined if there is no journal. */
  readonly settings: Head["prompts"] | undefined
  readonly entries: ReadonlyMap<string, Part>
  readonly spent: Spending | undefined
  readonly seconds: number
}

/** Reads the journal of an earlier process. Removes an incomplete last line from the file. */
export const readEarlier = Effect.fnUntraced(function* (
  run: RunFiles,
): Effect.fn.Return<EarlierJournal, RunStoreError | FormatError> {
  const path = `${run.directory}/${files.journal}`
  let settings: Head["prompts"] | undefined
  let spent: Spending | undefined
  let seconds = 0
  let end = 0
  const entries = new Map<string, Part>()
  if (!(yield* run.exists(files.journal))) return { settings, entries, spent, seconds }
  yield* Stream.runForEach(lines(run.stream(files.journal)), (line) =>
    Effect.gen(function* () {
      if (!line.whole) return
      end = line.end
      if (settings === undefined) {
        settings = (yield* headOf(path, yield* checked(path, line))).prompts
        return
      }
      const entry = yield* parsedEntry(path, line)
      const bytes = line.bytes.length + "\n".length
      entries.set(ownKey(entry), { offset: line.end - bytes, bytes })
      // Lines of concurrent episodes may be written in another order than the one in which they ended.
      if (spent === undefined || entry.spent.calls >= spent.calls) spent = entry.spent
      seconds = Math.max(seconds, entry.seconds)
    }),
  )
  if (end < (yield* run.size(files.journal))) yield* run.truncate(files.journal, end)
  return { settings, entries, spent, seconds }
})

/** Reads one line again, from its position. */
export const readAgain = (run: RunFiles, part: Part): Effect.Effect<Entry, RunStoreError | FormatError> => {
  const path = `${run.directory}/${files.journal}`
  const changed = new FormatError({ path, message: `${path}: the file was changed while it was read; resume again` })
  return lines(run.stream(files.journal, part)).pipe(
    Stream.mapEffect((line) => parsedEntry(path, line)),
    Stream.runHead,
    Effect.flatMap((entry) => Effect.mapError(Effect.fromOption(entry), () => changed)),
  )
}

/** Writes the first line of a new journal: the settings on which its answers depend. */
export const begin = (run: RunFiles, settings: Head["prompts"]): Effect.Effect<void, RunStoreError> =>
  run.append(files.journal, `${sealed({ prompts: settings })}\n`)

/** Opens the journal, and returns a function that appends a line. An interruption waits until the line is complete. */
export const journal = Effect.fnUntraced(function* (run: RunFiles) {
  const append = yield* run.appending(files.journal)
  const oneAtATime = Semaphore.makeUnsafe(1)
  return (entry: Entry) => Effect.uninterruptible(oneAtATime.withPermit(append(`${sealed(entry)}\n`)))
})
