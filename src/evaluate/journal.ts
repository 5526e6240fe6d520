/**
 * What was played so far, in the order in which it was done: an evaluation that is stopped goes on from it, and asks
 * nobody again what was answered. A line is there as soon as an episode is over, and has its marks; it ends with its own
 * digest, so that a line that was changed is not taken for what was played.
 */
import { Effect, Schema, type Scope, Semaphore, Stream } from "effect"
import { Sha256 } from "../config/sha256.ts"
import { JsonLinesError, type Line, lines, valueOf } from "../formats/jsonLines.ts"
import type { Part } from "../run/store/FileTree.ts"
import type { RunFiles } from "../run/store/RunFiles.ts"
import type { RunStoreError } from "../run/store/RunStoreError.ts"
import { Spending } from "../lm/middleware/budgeted.ts"
import { evaluation as files } from "../run/Layout.ts"
import { Played } from "./Played.ts"
import { EpisodeRow } from "./rows.ts"
import { utf8 } from "../config/utf8.ts"

/** An episode that is over. */
export const Entry = Schema.Struct({
  played: Played,
  row: EpisodeRow,
  /** By then, over all agents. */
  spent: Spending,
  seconds: Schema.Finite,
})
export type Entry = typeof Entry.Type

/** The first line: what the rest is worth something for. */
export const Head = Schema.Struct({ evaluation: Schema.Record(Schema.String, Schema.Unknown) })
type Head = typeof Head.Type

/** Where an episode that was played stands. Its transcript is read again when it is told: all of them wouldn't fit. */
export interface Kept extends Part {
  readonly agent: string
  readonly index: number
}

export interface Earlier {
  /** Undefined where nothing was begun. */
  readonly evaluation: Readonly<Record<string, unknown>> | undefined
  readonly entries: ReadonlyArray<Kept>
  /** In all of it; undefined where nothing was played. */
  readonly spent: Spending | undefined
  readonly seconds: number
}

const nothing: Earlier = { evaluation: undefined, entries: [], spent: undefined, seconds: 0 }

const headOf = valueOf(Head)
const jsonOf = valueOf(Schema.Unknown)
const entryOf = valueOf(Entry)
const isEntry = Schema.is(Entry)

/** As it stands there, with its keys in their order: what is written of it again is the same text. */
const asWritten = Effect.fnUntraced(function* (path: string, line: Line): Effect.fn.Return<Entry, JsonLinesError> {
  const found = yield* jsonOf(path, line)
  return isEntry(found) ? found : yield* entryOf(path, line)
})

/** Matches the end of a line that holds its digest. */
const seal = /,"sha256":"([0-9a-f]{64})"\}$/
const sealLength = `,"sha256":"${"0".repeat(64)}"}`.length

/** Without waiting for anybody: what is played between two lines would depend on it. */
const digestOf = (bytes: Uint8Array): string => {
  const hash = new Sha256()
  hash.update(bytes)
  return hash.hex()
}

const sealed = (value: unknown): string => {
  const text = JSON.stringify(value)
  return `${text.slice(0, -1)},"sha256":"${digestOf(utf8.encode(text))}"}`
}

/** Removes the digest from a line; fails where there is none, or the line is not what was written. */
const unsealed = Effect.fnUntraced(function* (path: string, line: Line): Effect.fn.Return<Line, JsonLinesError> {
  const [, digest] = seal.exec(utf8.decode(line.bytes.subarray(-sealLength))) ?? []
  const bytes = line.bytes.slice(0, 1 - sealLength)
  bytes[bytes.length - 1] = closingBrace
  return digest === digestOf(bytes) ? { ...line, bytes } : yield* wasChanged(path, line)
})

const closingBrace = "}".charCodeAt(0)

const wasChanged = (path: string, { number }: Line): JsonLinesError =>
  new JsonLinesError({
    path,
    line: number,
    message:
      number === 1
        ? `${path}:1: the line was changed after it was written; put it back as it was, or start a new evaluation`
        : `${path}:${number}: the line was changed after it was written; remove it, and its episode is played again`,
  })

/** What an earlier process left; a line that it was stopped within is cut off. */
export const readEarlier = Effect.fnUntraced(function* (
  run: RunFiles,
): Effect.fn.Return<Earlier, RunStoreError | JsonLinesError> {
  if (!(yield* run.exists(files.journal))) return nothing
  const path = `${run.directory}/${files.journal}`
  let { evaluation, spent, seconds } = nothing
  let end = 0
  const entries: Array<Kept> = []
  yield* Stream.runForEach(lines(run.stream(files.journal)), (line) =>
    Effect.gen(function* () {
      if (!line.whole) return
      end = line.end
      const content = yield* unsealed(path, line)
      if (evaluation === undefined) {
        evaluation = (yield* headOf(path, content)).evaluation
        return
      }
      const { row, played, ...then } = yield* asWritten(path, content)
      const bytes = line.bytes.length + 1
      entries.push({ agent: row.agent, index: played.index, offset: line.end - bytes, bytes })
      if (spent === undefined || then.spent.calls >= spent.calls) spent = then.spent
      seconds = Math.max(seconds, then.seconds)
    }),
  )
  if (end < (yield* run.size(files.journal))) yield* run.truncate(files.journal, end)
  return { evaluation, entries, spent, seconds }
})

/** An episode of an earlier process. */
export const readAgain = (run: RunFiles, kept: Kept): Effect.Effect<Entry, RunStoreError | JsonLinesError> => {
  const path = `${run.directory}/${files.journal}`
  return lines(run.stream(files.journal, kept)).pipe(
    Stream.mapEffect((line) => Effect.flatMap(unsealed(path, line), (content) => asWritten(path, content))),
    Stream.runHead,
    Effect.flatMap((found) =>
      Effect.fromOption(found).pipe(
        Effect.mapError(() => new JsonLinesError({ path, line: null, message: `${path}: it was changed meanwhile` })),
      ),
    ),
  )
}

/** Writes the first line of a journal. */
export const begin = (run: RunFiles, evaluation: Head["evaluation"]): Effect.Effect<void, RunStoreError> =>
  run.append(files.journal, `${sealed({ evaluation })}\n`)

/** Opens a journal to add episodes to it. An interruption waits until the line is whole. */
export const journal = Effect.fnUntraced(function* (
  run: RunFiles,
): Effect.fn.Return<(entry: Entry) => Effect.Effect<void, RunStoreError>, never, Scope.Scope> {
  const append = yield* run.appending(files.journal)
  const one = Semaphore.makeUnsafe(1)
  return (entry) => Effect.uninterruptible(one.withPermit(append(`${sealed(entry)}\n`)))
})
