/**
 * Resumes a batch's file of outcomes, which has a line for each completed request, in order. `resume` checks the lines of
 * earlier runs, and `appending` adds lines. `RolloutEngine` uses both.
 */
import { Effect, FileSystem, Path, type PlatformError, Schema, Semaphore, Stream } from "effect"
import { FormatError } from "../../../base/formats/FormatError.ts"
import { type FileError, makeFolder } from "../../../base/files/files.ts"
import { oneLine } from "../../../base/text/text.ts"
import { linesOf, valueOf } from "../../../base/formats/jsonLines.ts"
import { line, RolloutOutcome } from "./Outcome.ts"
import { type RolloutRequest, textOf } from "./RolloutRequest.ts"
import { utf8 } from "../../../base/text/utf8.ts"

/** The number of characters at which buffered lines are written; at the latest they are written after `flushInterval`. */
const bufferLength = 256 * 1024
const flushInterval = "100 millis"

/** The totals of the requests that earlier runs of the batch completed. */
export interface CompletedRequests {
  readonly outcomes: number
  readonly rollouts: number
  readonly failed: number
  /** The number of requests that have no line in the file because they failed and were dropped. */
  readonly dropped: number
}

export const nothingDone: CompletedRequests = { outcomes: 0, rollouts: 0, failed: 0, dropped: 0 }

/** An outcome as `resume` reads it: it only counts rollouts and failures, so their contents are not checked. */
const Head = Schema.Struct({
  ...RolloutOutcome.fields,
  rollouts: Schema.Array(Schema.Unknown),
  failure: Schema.Unknown,
})
const headOf = valueOf(Head)

const failedTo = (operation: string, path: string, error: PlatformError.PlatformError | FileError): FormatError =>
  new FormatError({ path, message: `${path}: cannot ${operation}: ${oneLine(error.message)}` })

/**
 * Checks that the lines of a file belong to the first requests of a batch, cuts off an incomplete last line, and returns the
 * totals. These requests are taken from the iterator, so that the caller plays the others. If `gaps` is true, requests may
 * have no line, because failed ones were dropped. `tasks` is a hash of the set of tasks.
 */
export const resume = Effect.fnUntraced(function* (
  path: string,
  requests: Iterator<RolloutRequest>,
  tasks: string,
  protocolOf: (request: RolloutRequest) => string,
  gaps: boolean,
): Effect.fn.Return<CompletedRequests, FormatError, FileSystem.FileSystem> {
  const fs = yield* FileSystem.FileSystem
  const exists = yield* Effect.mapError(fs.exists(path), (error) => failedTo("check whether it exists", path, error))
  if (!exists) return nothingDone
  let { outcomes, rollouts, failed, dropped } = nothingDone
  let end = 0
  let lastIsIncomplete = false
  yield* Stream.runForEach(
    linesOf(path),
    Effect.fnUntraced(function* (line) {
      lastIsIncomplete = !line.whole
      if (lastIsIncomplete) return
      const head = yield* headOf(path, line)
      const wrong = (problem: string) =>
        new FormatError({ path, line: line.number, message: `${path}:${line.number}: ${problem}` })
      const otherBatch = "the file belongs to another batch"
      if (head.tasks !== tasks) {
        return yield* wrong(`expected an outcome of the tasks ${tasks}, found one of ${head.tasks}; ${otherBatch}`)
      }
      let next = requests.next()
      const first = next
      while (gaps && next.done !== true && next.value.id !== head.request.id) {
        dropped++
        next = requests.next()
      }
      if (next.done === true) {
        const rest = first.done === true ? "no more outcomes" : `the outcome of "${first.value.id}" or a later request`
        return yield* wrong(`expected ${rest}, found the outcome of "${head.request.id}"; ${otherBatch}`)
      }
      const [expected, found] = [textOf(next.value), textOf(head.request)]
      if (found !== expected) return yield* wrong(`expected an outcome of ${expected}, found one of ${found}`)
      const protocol = protocolOf(next.value)
      if (head.protocol !== protocol) {
        return yield* wrong(`expected an outcome by ${protocol}, found one by ${head.protocol}`)
      }
      end = line.end
      outcomes++
      rollouts += head.rollouts.length
      if (head.failure !== null) failed++
    }),
  )
  if (lastIsIncomplete) yield* Effect.mapError(fs.truncate(path, end), (error) => failedTo("truncate it", path, error))
  return { outcomes, rollouts, failed, dropped }
})

/** Opens or creates a file, and appends outcomes to it until the scope closes. Lines are buffered and written together. */
export const appending = Effect.fnUntraced(function* (path: string) {
  const fs = yield* FileSystem.FileSystem
  const { dirname } = yield* Path.Path
  const file = yield* makeFolder(dirname(path)).pipe(
    Effect.andThen(fs.open(path, { flag: "a" })),
    Effect.mapError((error) => failedTo("open it", path, error)),
  )
  const oneWriter = Semaphore.makeUnsafe(1)
  let texts: Array<string> = []
  let size = 0
  let broken: FormatError | undefined
  // A failed write may leave half a line. Nothing is written after it, so that `resume` can cut it off.
  const write = Effect.suspend((): Effect.Effect<void, FormatError> => {
    if (broken !== undefined) return Effect.fail(broken)
    if (size === 0) return Effect.void
    const bytes = utf8.encode(texts.join(""))
    texts = []
    size = 0
    return Effect.mapError(file.writeAll(bytes), (error) => (broken = failedTo("write to it", path, error)))
  })
  const flush = Effect.uninterruptible(oneWriter.withPermit(write))
  // A killed process loses at most the outcomes of the last interval. If a write fails here, the next `add` fails.
  yield* Effect.forkScoped(Effect.forever(Effect.andThen(Effect.sleep(flushInterval), Effect.ignore(flush))))
  return {
    /** Adds an outcome. It is written to the file later, at the latest by `flush`. */
    add: (outcome: RolloutOutcome): Effect.Effect<void, FormatError> =>
      Effect.suspend(() => {
        const text = line(outcome)
        texts.push(text)
        size += text.length
        return size < bufferLength && broken === undefined ? Effect.void : flush
      }),
    flush,
  }
})
