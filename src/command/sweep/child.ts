/** Runs each training of a sweep in a process of its own, exchanges messages with it, and reads its result. */
import { type ChildProcess, spawn } from "node:child_process"
import { fileURLToPath } from "node:url"
import { stripVTControlCharacters } from "node:util"
import { Context, Effect, Schema } from "effect"
import { jsonText } from "../../base/text/jsonText.ts"
import { messageOf } from "../../base/text/text.ts"
import { RunResult } from "../../run/RunResult.ts"
import { readFinished, withCurve } from "../cli/run/finished.ts"
import { stepSignal } from "../cli/run/stepSignal.ts"
import { isProgress, type SweepPart, type SweepProgress, stop, withPart } from "./part.ts"
import { CommandError } from "../CommandError.ts"

/** One run of a sweep, to be trained in a process. */
export interface Child {
  /** The arguments of `effect run`. */
  readonly args: ReadonlyArray<string>
  /** The description of the sweep that the process receives. */
  readonly part: SweepPart
  readonly onProgress: (progress: SweepProgress) => void
}

/**
 * Trains one run of a sweep with `RunCommand`, by default in its own process. Returns the run's result and learning curve.
 */
export const trainInChild = (child: Child) =>
  Effect.gen(function* () {
    const line = (yield* (yield* RunCommand)(child)).trim().split("\n").at(-1) ?? ""
    return yield* withCurve(yield* Schema.decodeUnknownEffect(jsonText(RunResult))(line))
  }).pipe(orFailed)

/** Reads the result of a run that was finished before its sweep was resumed. */
export const finishedEarlier = (directory: string) => orFailed(readFinished(directory))

const orFailed = Effect.mapError((error: Error) => CommandError.run(messageOf(error)))

const bin = fileURLToPath(new URL("../../../bin/effect.js", import.meta.url))

const children = new Set<ChildProcess>()

/** Passes SIGUSR1 on to every run: with this signal, the user asks for the folder of the current step. */
const passOnStepSignal = (): void => children.forEach((child) => void child.kill(stepSignal))

/**
 * Runs `effect run` in a process and returns its stdout. An interruption stops that process too, and waits until it has saved
 * its run. This uses Node's `spawn`, because Effect's child processes have no message channel. The process needs one to
 * report its progress, and to receive the message that stops it.
 */
const runProcess = ({ args, part, onProgress }: Child): Effect.Effect<string, CommandError> =>
  Effect.callback((resume) => {
    const child = spawn(process.execPath, [bin, "run", ...args, "--json", "--quiet"], {
      stdio: ["ignore", "pipe", "pipe", "ipc"],
      env: withPart(part),
    })
    if (process.platform !== "win32" && process.listenerCount(stepSignal) === 0) {
      process.on(stepSignal, passOnStepSignal)
    }
    children.add(child)
    child.once("close", () => children.delete(child))
    let stdout = ""
    let stderr = ""
    child.stdout?.setEncoding("utf8").on("data", (text: string) => (stdout += text))
    child.stderr?.setEncoding("utf8").on("data", (text: string) => (stderr += text))
    child.on("message", (message) => void (isProgress(message) && onProgress(message)))
    const { promise: closed, resolve } = Promise.withResolvers<void>()
    const fail = (message: string): void => resume(Effect.fail(CommandError.run(message)))
    child.once("error", (error) => {
      fail(error.message)
      resolve()
    })
    child.once("close", (code, signal) => {
      const reason = stripVTControlCharacters(stderr)
        .trim()
        .replace(/^effect: /m, "")
      if (code === 0) resume(Effect.succeed(stdout))
      else fail(reason || (signal === null ? `exit code ${code}` : `ended by ${signal}`))
      resolve()
    })
    // Closing the channel would stop the process too, but then Node would not report when the process has ended.
    return Effect.sync(() => void (child.connected && child.send(stop, () => {}))).pipe(
      Effect.andThen(Effect.promise(() => closed)),
    )
  })

/** Runs `effect run` for one run of a sweep, and returns its stdout. Tests provide another function. */
export const RunCommand = Context.Reference<(child: Child) => Effect.Effect<string, CommandError>>(
  "effect-rl/cli/RunCommand",
  { defaultValue: () => runProcess },
)
