/**
 * Starts the process of a rank on this machine. The process gets its task as a line of JSON on its standard input, which
 * stays open. When the input closes, the process that started the rank has ended, in whatever way, and the rank ends, too. If
 * the rank cannot work, it prints the reason as a line of JSON.
 */
import { type ChildProcess, spawn } from "node:child_process"
import { createInterface } from "node:readline"
import type { Readable, Writable } from "node:stream"
import { fileURLToPath } from "node:url"
import { Deferred, Effect, Option, Schema, type Scope } from "effect"
import { WorkerError } from "./WorkerError.ts"
import { jsonText } from "../../base/text/jsonText.ts"
import { compileCacheVariable } from "../../base/files/compile-cache-node.ts"
import { makeWorkerLog } from "./start-node.ts"

/** The message that a rank's process writes to its standard output when it cannot work. */
const Failure = jsonText(WorkerError)
const decodeFailure = Schema.decodeOption(Failure)

/** A process that runs, or has ended. */
interface Started {
  readonly child: ChildProcess
  readonly ended: Deferred.Deferred<void, WorkerError>
}

interface ChildOptions {
  readonly rank: number
  /** The module that the process runs. */
  readonly program: URL
  /** The line that the process reads from its standard input. */
  readonly task: string
}

type WithStreams = ChildProcess & Record<"stdin", Writable> & Record<"stdout" | "stderr", Readable>

const hasStreams = (child: ChildProcess): child is WithStreams => Boolean(child.stdin && child.stdout && child.stderr)

type WorkerLog = Effect.Success<ReturnType<typeof makeWorkerLog>>

const spawned = ({ rank, program }: ChildOptions, log: WorkerLog): Effect.Effect<Started> =>
  Effect.gen(function* () {
    const ended = yield* Deferred.make<void, WorkerError>()
    const child: ChildProcess = spawn(process.execPath, [fileURLToPath(program)], {
      stdio: ["pipe", "pipe", "pipe"],
      env: { ...process.env, ...compileCacheVariable() },
      // Ctrl-C in a terminal must reach only the master, which then saves the run before it ends the ranks.
      detached: process.platform !== "win32",
      windowsHide: true,
    })
    const end = (outcome: Effect.Effect<void, WorkerError>): void => {
      log.end()
      Deferred.doneUnsafe(ended, outcome)
    }
    const lost = (problem: string) => Effect.fail(WorkerError.lost(`rank ${rank}${problem}`))
    // A process that cannot be started will not start at a second try either: the system's limit of processes or files is
    // reached.
    const failed = (problem: string) =>
      Effect.fail(
        WorkerError.failed(`rank ${rank}: cannot start its process: ${problem}; set ranks to a smaller number`),
      )
    child.once("error", ({ message }) => end(failed(message)))
    // If the limit of open files is reached, Node makes no streams; the error event above follows.
    if (!hasStreams(child)) return { child, ended }
    let output = ""
    child.stdout.setEncoding("utf8").on("data", (text: string) => (output += text))
    log.follow(child.stderr)
    // Writing to a process that has ended fails; its end is reported below.
    child.stdin.on("error", () => {})
    child.once("close", (code, signal) => {
      const reason = signal === null ? `with exit code ${code}` : `by ${signal}`
      const unexplained = code === 0 ? Effect.void : lost(` was lost: its process was ended ${reason}`)
      end(Option.match(decodeFailure(output), { onNone: () => unexplained, onSome: Effect.fail }))
    })
    return { child, ended }
  })

/** Kills a process, which has nothing to save, and waits until it is gone. */
const killed = ({ child, ended }: Started): Effect.Effect<void> =>
  Effect.andThen(
    Effect.sync(() => void child.kill("SIGKILL")),
    Effect.exit(Deferred.await(ended)),
  )

/**
 * Starts a process, and kills it when the scope closes. Returns the Effect that waits until the process has ended by itself.
 * The lines that the process writes to its standard error are logged.
 */
export const startChild = Effect.fnUntraced(function* (
  options: ChildOptions,
): Effect.fn.Return<Effect.Effect<void, WorkerError>, never, Scope.Scope> {
  const { rank, task } = options
  const log = yield* makeWorkerLog(`rank ${rank}`)
  const { child, ended } = yield* Effect.acquireRelease(spawned(options, log), killed)
  yield* Effect.logInfo(`rank ${rank} starts as process ${child.pid}`)
  child.stdin?.write(`${task}\n`)
  // The last lines of the process are logged before its end is reported.
  return Effect.tapError(Deferred.await(ended), () => log.ended)
})

/** Reads the task from the standard input of a rank's process. The process ends when this input is closed. */
export const taskLine = Effect.callback<string>((resume) => {
  const lines = createInterface({ input: process.stdin })
  lines.once("line", (line) => resume(Effect.succeed(line)))
  // The input closes when the process that started this one has ended. This process has nothing to save.
  lines.once("close", () => process.exit())
})

/** Prints the reason why the process of a rank ends, and ends the process. */
export const reportFailure = (failure: WorkerError): Effect.Effect<never> =>
  Effect.callback(() => {
    process.stdout.write(`${Schema.encodeSync(Failure)(failure)}\n`, () => process.exit(1))
  })
