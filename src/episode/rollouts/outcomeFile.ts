/** The file of a batch: a line for each request that is done with, in the requests' order, to be gone on with later. */
import { Effect, FileSystem, Path, type PlatformError, Schema, type Scope, Semaphore, Stream } from "effect"
import { type FileError, makeFolder } from "../../config/files.ts"
import { oneLine } from "../../config/text.ts"
import { JsonLinesError, linesOf, valueOf } from "../../formats/jsonLines.ts"
import { line, type Outcome } from "./Outcome.ts"
import { RolloutRequest, textOf } from "./RolloutRequest.ts"
import { utf8 } from "../../config/utf8.ts"

/** A line for each of these would cost more than what is in it. */
const fullAt = 256 * 1024
const dueAfter = "100 millis"

/** What an earlier run got done. */
export interface Done {
  readonly outcomes: number
  readonly rollouts: number
  readonly failed: number
  /** Requests that left nothing. */
  readonly dropped: number
}

export const nothingDone: Done = { outcomes: 0, rollouts: 0, failed: 0, dropped: 0 }

/** What is needed of a line to go on behind it. */
const Head = Schema.Struct({
  request: RolloutRequest,
  protocol: Schema.String,
  tasks: Schema.String,
  rollouts: Schema.Array(Schema.Unknown),
  failure: Schema.Unknown,
})
const headOf = valueOf(Head)

export interface Expected {
  /** What is left of the batch's requests: those that the file has are taken from it. */
  readonly requests: Iterator<RolloutRequest>
  readonly protocolOf: (request: RolloutRequest) => string
  readonly tasks: string
  /** Requests may have left nothing. */
  readonly gaps: boolean
}

const failedTo = (operation: string, path: string, error: PlatformError.PlatformError | FileError): JsonLinesError =>
  new JsonLinesError({ path, line: null, message: `${path}: can't ${operation}: ${oneLine(error.message)}` })

/** Goes through the lines of a file beside the requests, and cuts off what somebody was stopped within. */
export const goOn = Effect.fnUntraced(function* (
  path: string,
  { requests, protocolOf, tasks, gaps }: Expected,
): Effect.fn.Return<Done, JsonLinesError, FileSystem.FileSystem> {
  const fs = yield* FileSystem.FileSystem
  const exists = yield* Effect.mapError(fs.exists(path), (error) => failedTo("look for it", path, error))
  if (!exists) return nothingDone
  let { outcomes, rollouts, failed, dropped } = nothingDone
  let end = 0
  let torn = false
  yield* Stream.runForEach(
    linesOf(path),
    Effect.fnUntraced(function* (found) {
      torn = !found.whole
      if (torn) return
      const head = yield* headOf(path, found)
      const wrong = (problem: string) =>
        new JsonLinesError({ path, line: found.number, message: `${path}:${found.number}: ${problem}` })
      if (head.tasks !== tasks) {
        return yield* wrong(
          `expected an outcome of the tasks ${tasks}, found one of ${head.tasks}; it is another batch's`,
        )
      }
      let next = requests.next()
      const first = next
      while (gaps && next.done !== true && next.value.id !== head.request.id) {
        dropped++
        next = requests.next()
      }
      if (next.done === true) {
        const expected = first.done === true ? "no more outcomes" : `one of "${first.value.id}" or behind it`
        return yield* wrong(`expected ${expected}, found one of "${head.request.id}"; it is another batch's`)
      }
      const [expected, said] = [textOf(next.value), textOf(head.request)]
      if (said !== expected) return yield* wrong(`expected an outcome of ${expected}, found one of ${said}`)
      const protocol = protocolOf(next.value)
      if (head.protocol !== protocol) {
        return yield* wrong(`expected an outcome by ${protocol}, found one by ${head.protocol}`)
      }
      end = found.end
      outcomes++
      rollouts += head.rollouts.length
      if (head.failure !== null) failed++
    }),
  )
  if (torn) yield* Effect.mapError(fs.truncate(path, end), (error) => failedTo("cut it", path, error))
  return { outcomes, rollouts, failed, dropped }
})

export interface OutcomeFile {
  /** Adds one; it is in the file some time later, or when `flush` is done. */
  readonly add: (outcome: Outcome) => Effect.Effect<void, JsonLinesError>
  readonly flush: Effect.Effect<void, JsonLinesError>
}

/** To write at the end of a file, which is made where there is none. Many small lines are written together. */
export const appending = Effect.fnUntraced(function* (
  path: string,
): Effect.fn.Return<OutcomeFile, JsonLinesError, FileSystem.FileSystem | Path.Path | Scope.Scope> {
  const fs = yield* FileSystem.FileSystem
  const { dirname } = yield* Path.Path
  const file = yield* makeFolder(dirname(path)).pipe(
    Effect.andThen(fs.open(path, { flag: "a" })),
    Effect.mapError((error) => failedTo("open it", path, error)),
  )
  const one = Semaphore.makeUnsafe(1)
  let texts: Array<string> = []
  let size = 0
  let broken: JsonLinesError | undefined
  // A refused write may have left half a line, which must stay the last one: nothing more is written.
  const write = Effect.suspend(() => {
    if (broken !== undefined) return Effect.fail(broken)
    if (size === 0) return Effect.void
    const bytes = utf8.encode(texts.join(""))
    texts = []
    size = 0
    return Effect.mapError(file.writeAll(bytes), (error) => (broken = failedTo("write to it", path, error)))
  })
  const flush = Effect.uninterruptible(one.withPermit(write))
  // Who is killed loses no more than what was done within this time. What fails here fails where it is added to next.
  yield* Effect.forkScoped(Effect.forever(Effect.andThen(Effect.sleep(dueAfter), Effect.ignore(flush))))
  return {
    add: (outcome) =>
      Effect.suspend(() => {
        const text = line(outcome)
        texts.push(text)
        size += text.length
        return size < fullAt && broken === undefined ? Effect.void : flush
      }),
    flush,
  }
})
