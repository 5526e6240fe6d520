/** Starts Node's worker threads, logs their output, and notices when they end. */
import { Worker } from "node:worker_threads"
import { Deferred, Effect, type Scope } from "effect"
import type * as NodeWorker from "@effect/platform-node/NodeWorker"
import { WorkerError } from "./WorkerError.ts"
import { compileCacheVariable } from "../../base/files/compile-cache-node.ts"
import { messageOf } from "../../base/text/text.ts"
import { makeWorkerLog } from "./start-node.ts"

export interface ThreadOptions {
  /** The name of the thread in the log. */
  readonly name: string
  /** The module that the thread runs. */
  readonly program: URL
  /** The plain data that the module gets as `workerData`. */
  readonly data: unknown
}

interface Thread {
  /** The Layer that starts the thread and carries its messages. */
  readonly platform: ReturnType<typeof NodeWorker.layer>
  /** Waits until the thread has ended by itself, and fails with the reason. */
  readonly untilLost: Effect.Effect<never, WorkerError>
}

/** Loads Effect's modules for threads only when a thread is started, because most programs start none. */
const nodeWorker = Effect.promise(() => import("@effect/platform-node/NodeWorker"))

/**
 * Describes a thread, which starts when its platform is built. What it prints is logged until the scope closes.
 */
export const makeThread = Effect.fnUntraced(function* ({
  name,
  program,
  data,
}: ThreadOptions): Effect.fn.Return<Thread, never, Scope.Scope> {
  const { layer } = yield* nodeWorker
  const lost = yield* Deferred.make<never, WorkerError>()
  const end = (reason: string): void =>
    void Deferred.doneUnsafe(lost, Effect.fail(WorkerError.lost(`the ${name}'s thread was lost: ${reason}`)))
  const log = yield* makeWorkerLog(name)
  const spawn = (): Worker => {
    const thread = new Worker(program, {
      workerData: data,
      stdout: true,
      stderr: true,
      env: { ...process.env, ...compileCacheVariable() },
    })
    thread.once("error", (error) => end(messageOf(error)))
    thread.once("exit", (code) => end(`it has ended with exit code ${code}`))
    log.follow(thread.stdout)
    log.follow(thread.stderr)
    return thread
  }
  return { platform: layer(spawn), untilLost: Deferred.await(lost) }
})
