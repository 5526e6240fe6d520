/**
 * Implements `CodeRunner`: starts a Node process for each untrusted program, with `guest-node.ts` as its code, and
 * compares its answers with the expected values. That process can only compute: it has no files, no network, no other
 * processes and no environment variables, and its memory and time are limited.
 */
import { type ChildProcess, spawn } from "node:child_process"
import { readFileSync } from "node:fs"
import { availableParallelism } from "node:os"
import { Effect, Layer, Schema, Semaphore } from "effect"
import { jsonText } from "../../../base/text/jsonText.ts"
import { EnvError } from "../../../base/EnvError.ts"
import { messageOf } from "../../../base/text/text.ts"
import { CodeAnswer, CodeRunner, judge, type TestOutcome, type CodeWork } from "./CodeRunner.ts"
import { guest, lockDown } from "./guest-node.ts"

interface CodeRunnerOptions {
  /**
   * The time limit in milliseconds for all tests of a program, from the moment at which its process is ready; 5000 by
   * default.
   */
  readonly timeoutMs?: number
  /** The memory of a program in MiB, in addition to the memory that Node itself needs; 128 by default. */
  readonly memoryMb?: number
  /** The number of programs that run at the same time; by default the number of processors. */
  readonly concurrency?: number
}

/** The script of the process: it calls `guest`. Some build tools wrap functions in a helper `__name`, so define it. */
const guestText = `const __name = (value) => value; (${guest.toString()})(${lockDown.toString()})`

/** Returns the flags of Node for running the text of a script without permissions. */
export const flags = (memoryMb: number, text = guestText): ReadonlyArray<string> => [
  "--permission",
  "--disallow-code-generation-from-strings",
  "--frozen-intrinsics",
  "--no-addons",
  "--no-warnings",
  "--v8-pool-size=1",
  `--max-old-space-size=${memoryMb}`,
  "--max-semi-space-size=4",
  "--eval",
  text,
]

// The memory of Node itself in MiB: in use (resident), and reserved, most of which is never used.
const residentOfNode = 96
const dataOfNode = 1024

/**
 * Starts the process, with limits set by the shell, because Node can't limit buffers outside its heap, core dumps or files.
 */
const started = (memoryMb: number): ChildProcess => {
  const options = { env: {}, cwd: "/", stdio: ["pipe", "pipe", "pipe"] as ["pipe", "pipe", "pipe"] }
  if (process.platform === "win32") return spawn(process.execPath, flags(memoryMb), { ...options, cwd: undefined })
  const limits = `ulimit -d ${(memoryMb + dataOfNode) * 1024}; ulimit -c 0; ulimit -f 0`
  return spawn(
    "/bin/sh",
    ["-c", `{ ${limits}; } 2>/dev/null; exec "$0" "$@"`, process.execPath, ...flags(memoryMb)],
    options,
  )
}

/** Returns the resident memory of a process in MiB; undefined if the system does not report it. */
const residentOf = (pid: number | undefined): number | undefined => {
  try {
    const kib = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]
    return kib === undefined ? undefined : Number(kib) / 1024
  } catch {
    return undefined
  }
}

/** The number of bytes of output after which a process is killed; all valid answers together are much smaller. */
const mostOutput = 2 ** 26
// The time limit of a process's start, and the interval between two checks of its memory.
const startMs = 30_000
const memoryCheckMs = 20

const readAnswer = Schema.decodeUnknownOption(jsonText(CodeAnswer))

interface EndedProgram {
  readonly answers: ReadonlyMap<number, CodeAnswer>
  /** The outcome of all tests that the process did not answer. */
  readonly unanswered: TestOutcome
}

/** Runs a program and its tests in one process, and kills the process at a limit or if the Effect is interrupted. */
const runProgram = (
  { program, tests }: CodeWork,
  timeoutMs: number,
  memoryMb: number,
): Effect.Effect<EndedProgram, EnvError> =>
  Effect.callback<EndedProgram, EnvError>((resume) => {
    const answers = new Map<number, CodeAnswer>()
    let unanswered: TestOutcome | undefined
    let ready = false
    let rest = ""
    let output = 0
    let errorOutput = ""
    const child = started(memoryMb)

    const stop = (why: TestOutcome): void => {
      unanswered ??= why
      child.kill("SIGKILL")
    }
    let timer = setTimeout(() => stop({ _tag: "Crashed", message: "it did not start in time" }), startMs)
    const watch = setInterval(() => {
      if ((residentOf(child.pid) ?? 0) > memoryMb + residentOfNode) stop({ _tag: "OutOfMemory" })
    }, memoryCheckMs)
    const finish = (result: Effect.Effect<EndedProgram, EnvError>): void => {
      clearTimeout(timer)
      clearInterval(watch)
      resume(result)
    }

    const line = (text: string): void => {
      if (!ready) {
        ready = text === "ready"
        clearTimeout(timer)
        timer = setTimeout(() => stop({ _tag: "TimedOut" }), timeoutMs)
        return
      }
      const answer = readAnswer(text)
      // Only the first answer to each test is used, since a program could write more answers.
      if (answer._tag === "Some" && !answers.has(answer.value.index)) answers.set(answer.value.index, answer.value)
    }

    child.stdout?.setEncoding("utf8").on("data", (text: string) => {
      output += text.length
      if (output > mostOutput) return stop({ _tag: "Crashed", message: "it wrote too much" })
      const lines = (rest + text).split("\n")
      rest = lines.pop() ?? ""
      for (const each of lines) line(each)
    })
    child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      if (errorOutput.length < 10_000) errorOutput += text
    })
    // If the process ends before it has read its whole input, its `close` event reports that, so ignore the error here.
    child.stdin?.on("error", () => {})
    child.on("error", (error) =>
      finish(Effect.fail(new EnvError({ env: "code", message: `programs can't be run: ${messageOf(error)}` }))),
    )
    child.on("close", (code, signal) => {
      if (!ready && unanswered === undefined) {
        const message = `programs can't be run: their process ended by ${signal ?? code}: ${errorOutput.trim().split("\n")[0]}`
        return finish(Effect.fail(new EnvError({ env: "code", message })))
      }
      const isFull = /out of memory|allocation failed/i.test(errorOutput)
      const crashed: TestOutcome = { _tag: "Crashed", message: `its process ended by ${signal ?? `exit code ${code}`}` }
      finish(Effect.succeed({ answers, unanswered: unanswered ?? (isFull ? { _tag: "OutOfMemory" } : crashed) }))
    })
    child.stdin?.end(JSON.stringify({ program, runs: tests.map(({ run }) => run) }))

    return Effect.sync(() => {
      clearTimeout(timer)
      clearInterval(watch)
      child.kill("SIGKILL")
    })
  })

/** Provides `CodeRunner`: `Effect.provide(program, Node.codeRunner({ timeoutMs: 2000, memoryMb: 64 }))`. */
export const layer = ({
  timeoutMs = 5000,
  memoryMb = 128,
  concurrency,
}: CodeRunnerOptions = {}): Layer.Layer<CodeRunner> =>
  Layer.effect(
    CodeRunner,
    Effect.gen(function* () {
      const semaphore = yield* Semaphore.make(concurrency ?? availableParallelism())
      return {
        run: (work) =>
          work.tests.length === 0
            ? Effect.succeed([])
            : Effect.map(semaphore.withPermits(1)(runProgram(work, timeoutMs, memoryMb)), ({ answers, unanswered }) =>
                work.tests.map((test, index): TestOutcome => {
                  const answer = answers.get(index)
                  return answer === undefined ? unanswered : judge(test, answer)
                }),
              ),
      }
    }),
  )
