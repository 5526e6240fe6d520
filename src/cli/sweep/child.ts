import { type ChildProcess, spawn } from "node:child_process"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { stripVTControlCharacters } from "node:util"
import { Context, Effect, Schema } from "effect"
import { mostBytes } from "../../config/files.ts"
import { readTextWithin } from "../../config/files-node.ts"
import { messageOf, oneLine } from "../../config/text.ts"
import { decodeReturnFile } from "../../run/evaluation.ts"
import { parseMetrics } from "../../run/finishedResult.ts"
import { RunResult } from "../../run/RunResult.ts"
import { AnyResult, toRunResult } from "../../run/RuntimeResult.ts"
import { stepSignal } from "../run/stepSignal.ts"
import { isProgress, type Part, type Progress, stop, withPart } from "./part.ts"
import * as Layout from "../../run/Layout.ts"

/** A run that came to its end. */
export interface Finished {
  readonly result: RunResult
  readonly curve: ReadonlyArray<{ readonly step: number; readonly value: number }>
}

/** A run without a result, for whatever reason; the message is a line. */
export class RunFailed extends Schema.TaggedError<RunFailed>()("RunFailed", { message: Schema.String }) {}

export interface Child {
  /** Of `effect run`. */
  readonly args: ReadonlyArray<string>
  readonly part: Part
  readonly onProgress: (progress: Progress) => void
}

/** Trains one of a sweep's runs, in a process of its own unless another `RunCommand` is provided. */
export const trainInChild = (child: Child): Effect.Effect<Finished, RunFailed> =>
  Effect.gen(function* () {
    const line = (yield* (yield* RunCommand)(child)).trim().split("\n").at(-1) ?? ""
    return yield* withCurve(yield* Schema.decodeUnknownEffect(Schema.fromJsonString(RunResult))(line))
  }).pipe(failing)

/** What a run that is finished has left, wherever its folder lies by now. */
export const readFinished = (runDir: string): Effect.Effect<Finished, RunFailed> =>
  Effect.gen(function* () {
    const text = yield* Effect.tryPromise(() => readTextWithin(join(runDir, Layout.metrics), mostBytes.text))
    const result = yield* parseMetrics(text, AnyResult)
    return yield* withCurve({ ...toRunResult(result), runDir })
  }).pipe(failing)

const withCurve = Effect.fnUntraced(function* (result: RunResult) {
  const text = yield* Effect.tryPromise(() => readTextWithin(join(result.runDir, Layout.returns), mostBytes.text))
  const records = yield* decodeReturnFile(text)
  return { result, curve: records.map(({ step, returns_mean: value }) => ({ step, value })) }
})

const failing = Effect.mapError((error: Error) => {
  const cause = "cause" in error && error.cause instanceof Error ? error.cause : error
  return new RunFailed({ message: oneLine(messageOf(cause)) })
})

const bin = fileURLToPath(new URL("../../../bin/effect.js", import.meta.url))

const children = new Set<ChildProcess>()

/** A signal that asks a sweep for its runs' steps is one for each of them. */
const passOn = (): void => {
  for (const child of children) child.kill(stepSignal)
}

/** Gives what the process writes to stdout. When this is interrupted, so is the process, which saves before it ends. */
const runProcess = ({ args, part, onProgress }: Child): Effect.Effect<string, RunFailed> =>
  Effect.callback((resume) => {
    const child = spawn(process.execPath, [bin, "run", ...args, "--json", "--quiet"], {
      stdio: ["ignore", "pipe", "pipe", "ipc"],
      env: withPart(part),
    })
    if (process.platform !== "win32" && process.listenerCount(stepSignal) === 0) process.on(stepSignal, passOn)
    children.add(child)
    child.once("close", () => children.delete(child))
    let stdout = ""
    let stderr = ""
    child.stdout?.setEncoding("utf8").on("data", (text: string) => (stdout += text))
    child.stderr?.setEncoding("utf8").on("data", (text: string) => (stderr += text))
    child.on("message", (message) => void (isProgress(message) && onProgress(message)))
    const fail = (message: string): void => resume(Effect.fail(new RunFailed({ message })))
    const closed = new Promise<void>((resolve) => {
      child.once("error", (error) => {
        fail(error.message)
        resolve()
      })
      child.once("close", (code, signal) => {
        if (code === 0) resume(Effect.succeed(stdout))
        else
          fail(
            stripVTControlCharacters(stderr)
              .trim()
              .replace(/^effect: /m, "") || (signal === null ? `exit code ${code}` : `ended by ${signal}`),
          )
        resolve()
      })
    })
    // Not by closing the channel: Node doesn't tell then when the process is gone.
    return Effect.sync(() => void (child.connected && child.send(stop, () => {}))).pipe(
      Effect.andThen(Effect.promise(() => closed)),
    )
  })

/** How a sweep runs `effect run` for one of its runs: gives what the command writes to stdout. */
export const RunCommand = Context.Reference<(child: Child) => Effect.Effect<string, RunFailed>>(
  "effect-rl/cli/RunCommand",
  { defaultValue: () => runProcess },
)
