/** Logs what a worker prints: the common part of starting threads and processes. */
import { createInterface } from "node:readline"
import type { Readable } from "node:stream"
import { type Cause, Effect, Fiber, Queue } from "effect"

/** Makes the log of a worker: it logs the lines that the worker prints, until the scope closes. */
export const makeWorkerLog = Effect.fnUntraced(function* (name: string) {
  const lines = yield* Queue.unbounded<string, Cause.Done>()
  const logging = yield* Queue.take(lines).pipe(
    Effect.flatMap((line) => Effect.logWarning(`${name}: ${line}`)),
    Effect.forever,
    Effect.ignore,
    Effect.forkScoped,
  )
  return {
    /** Logs the lines of a stream. */
    follow: (input: Readable): void =>
      void createInterface({ input }).on("line", (line) => void Queue.offerUnsafe(lines, line)),
    /** Marks the end of the worker's output. */
    end: (): void => void Queue.endUnsafe(lines),
    /** Waits until the last line of the worker is logged. */
    ended: Effect.asVoid(Fiber.await(logging)),
  }
})
