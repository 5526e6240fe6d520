/** Starts Node's worker threads for a trainer: their output is logged, and it is noticed when one ends. */
import { createInterface } from "node:readline"
import { Worker } from "node:worker_threads"
import { Deferred, Effect, Queue, type Scope } from "effect"
import { compileCacheVariable } from "../base/config/compile-cache-node.ts"
import { messageOf } from "../base/config/text.ts"

interface WorkerOptions {
  /** The name of the thread in the log. */
  readonly name: string
  /** The module that the thread runs. */
  readonly program: URL
  /** The plain data that the module gets as `workerData`. */
  readonly data: unknown
}

interface Spawner {
  /** Starts the thread. */
  readonly spawn: () => Worker
  /** Waits until the thread has ended for any reason, and fails with it. */
  readonly untilEnded: Effect.Effect<never, string>
}

/**
 * Makes the function that starts a thread. What the thread prints is logged until the scope closes.
 *
 * @example
 * ```ts
 * const { spawn, untilEnded } = yield* makeSpawner({ name: "engine", program: new URL("engine-node.js", import.meta.url), data: {} })
 * ```
 */
export const makeSpawner = Effect.fnUntraced(function* ({
  name,
  program,
  data,
}: WorkerOptions): Effect.fn.Return<Spawner, never, Scope.Scope> {
  const ended = yield* Deferred.make<never, string>()
  const end = (reason: string): void => void Deferred.doneUnsafe(ended, Effect.fail(reason))
  const lines = yield* Queue.unbounded<string>()
  const spawn = (): Worker => {
    const thread = new Worker(program, {
      workerData: data,
      stdout: true,
      stderr: true,
      env: { ...process.env, ...compileCacheVariable() },
    })
    thread.once("error", (error) => end(messageOf(error)))
    thread.once("exit", (code) => end(`it has ended with exit code ${code}`))
    for (const input of [thread.stdout, thread.stderr])
      createInterface({ input }).on("line", (line) => void Queue.offerUnsafe(lines, line))
    return thread
  }
  yield* Queue.take(lines).pipe(
    Effect.flatMap((line) => Effect.logWarning(`${name}: ${line}`)),
    Effect.forever,
    Effect.forkScoped,
  )
  return { spawn, untilEnded: Deferred.await(ended) }
})
