/** Holds what the starts of threads and of processes share: where the worker's program lies, and its log. */
import { createInterface } from "node:readline"
import type { Readable } from "node:stream"
import { type Cause, Effect, Fiber, Queue } from "effect"

/**
 * Returns the program of a worker, which lies beside the module at `url`, as TypeScript or compiled.
 *
 * @example
 * ```ts
 * programBeside(import.meta.url, "engine-node") // file:///…/engine-node.ts
 * ```
 */
export const programBeside = (url: string, name: string): URL =>
  new URL(`./${name}${url.endsWith(".ts") ? ".ts" : ".js"}`, url)

/** Makes the log of a worker, which reports the lines that it prints until the scope closes. */
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
    /** Says that the worker has ended. */
    end: (): void => void Queue.endUnsafe(lines),
    /** Waits until the last line of the worker is logged. */
    ended: Effect.asVoid(Fiber.await(logging)),
  }
})
