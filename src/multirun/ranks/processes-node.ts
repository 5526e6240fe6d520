/**
 * Implements `RankProcesses`: starts a Node process for each rank, with `rank-node.ts` as its program. The process gets
 * its task as a line of JSON on its standard input, which stays open: when it closes, the master has ended, in whatever
 * way, and the process ends, too. If it fails, it prints the reason as a line of JSON.
 */
import { type ChildProcess, spawn } from "node:child_process"
import { getCompileCacheDir } from "node:module"
import { createInterface } from "node:readline"
import { fileURLToPath } from "node:url"
import { type Cause, Deferred, Effect, Fiber, Layer, Option, Queue, Schema } from "effect"
import type { BackendName } from "../../backend/named-node.ts"
import { redisStore } from "../store/redisStores-node.ts"
import { RedisStores } from "./rankStore.ts"
import { type RankFailed, RankLost, RankProcesses } from "./RankProcesses.ts"

const program = new URL(import.meta.url.endsWith(".ts") ? "./rank-node.ts" : "./rank-node.js", import.meta.url)

/** A process that runs, or has ended. */
interface Started {
  readonly child: ChildProcess
  readonly ended: Deferred.Deferred<never, RankLost | RankFailed>
  /** The lines that the process writes on its standard error. */
  readonly lines: Queue.Dequeue<string, Cause.Done>
}

/** Loads the Schemas of messages when a rank is started, because most programs start none. */
const messages = Effect.promise(() => import("./messages-node.ts"))

const spawned = (rank: number): Effect.Effect<Started> =>
  Effect.gen(function* () {
    const { Failure } = yield* messages
    const decodeFailure = Schema.decodeOption(Failure)
    const ended = yield* Deferred.make<never, RankLost | RankFailed>()
    const lines = yield* Queue.unbounded<string, Cause.Done>()
    const child = spawn(process.execPath, [fileURLToPath(program)], {
      stdio: ["pipe", "pipe", "pipe"],
      env: { ...process.env, NODE_COMPILE_CACHE: getCompileCacheDir() },
      // Ctrl-C in a terminal must reach only the master, which then saves the runs before it ends the ranks.
      detached: process.platform !== "win32",
      windowsHide: true,
    })
    const end = (error: RankLost | RankFailed): void => {
      Queue.endUnsafe(lines)
      Deferred.doneUnsafe(ended, Effect.fail(error))
    }
    let output = ""
    child.stdout.setEncoding("utf8").on("data", (text: string) => (output += text))
    createInterface({ input: child.stderr }).on("line", (line) => void Queue.offerUnsafe(lines, line))
    // A process that has ended reads no more; its end is reported below.
    child.stdin.on("error", () => {})
    child.once("error", ({ message }) => end(new RankLost({ message: `rank ${rank}: cannot start it: ${message}` })))
    child.once("close", (code, signal) => {
      const reason = signal === null ? `with exit code ${code}` : `by ${signal}`
      const lost = () => new RankLost({ message: `rank ${rank} was lost: its process was ended ${reason}` })
      end(Option.getOrElse(decodeFailure(output), lost))
    })
    return { child, ended, lines }
  })

/** Ends a process, which has nothing to save, and waits until it is gone. */
const killed = ({ child, ended }: Started): Effect.Effect<void> =>
  Effect.andThen(
    Effect.sync(() => void child.kill("SIGKILL")),
    Effect.exit(Deferred.await(ended)),
  )

/**
 * Provides processes whose ranks compute on a backend, which must be that of the master. `threads` is the number of threads
 * of ONNX Runtime in each of them.
 */
export const layer = ({
  backend,
  threads = 1,
}: {
  readonly backend: BackendName
  readonly threads?: number
}): Layer.Layer<RankProcesses | RedisStores> =>
  Layer.merge(
    redisStores,
    Layer.sync(RankProcesses, () => processesOn(backend, threads)),
  )

/** Connects ranks through a Redis server, if `trainer.store` says so. */
export const redisStores: Layer.Layer<RedisStores> = Layer.succeed(RedisStores, { connect: redisStore })

/** Makes the service that starts processes of this machine, whose ranks compute on a backend. */
export const processesOn = (backend: BackendName, threads = 1): RankProcesses["Service"] =>
  RankProcesses.of({
    start: Effect.fnUntraced(function* (task) {
      const { rank } = task
      const started = yield* Effect.acquireRelease(spawned(rank), killed)
      const { child, ended, lines } = started
      yield* Effect.logInfo(`rank ${rank} starts as process ${child.pid}`)
      const logging = yield* Queue.take(lines).pipe(
        Effect.flatMap((line) => Effect.logWarning(`rank ${rank}: ${line}`)),
        Effect.forever,
        Effect.ignore,
        Effect.forkScoped,
      )
      const { Start } = yield* messages
      child.stdin?.write(`${yield* Effect.orDie(Schema.encodeEffect(Start)({ task, backend, threads }))}\n`)
      // What the process wrote before its end is logged first.
      return Effect.tapError(Deferred.await(ended), () => Fiber.await(logging))
    }),
  })
