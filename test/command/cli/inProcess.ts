import { Console as NodeConsole } from "node:console"
import { registerHooks } from "node:module"
import { Writable } from "node:stream"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Clock, ConfigProvider, Console, Effect } from "effect"
import { command } from "../../../src/command/cli/command.ts"
import { exitCodeOf } from "../../../src/command/cli/output/errors.ts"
import { Output } from "../../../src/command/cli/output/output.ts"
import { type Child, RunCommand } from "../../../src/command/sweep/child.ts"
import { PartOfSweep } from "../../../src/command/sweep/part.ts"
import type { Outcome } from "./effect.ts"
import { CommandError } from "../../../src/command/CommandError.ts"

// Tests compare plain text, wherever they run; the processes that they start have this environment, too.
delete process.env.FORCE_COLOR

export interface Running {
  /** Interrupts the command as Ctrl-C does. */
  readonly interrupt: () => void
  readonly ended: Promise<Outcome>
}

let last: Promise<unknown> = Promise.resolve()
let calls = 0

/** Runs the command in this process as its own process would; sweeps train their runs in this process, too. */
export const inProcess = (args: ReadonlyArray<string>, cwd: string): Promise<Outcome> => beginInProcess(args, cwd).ended

/** Starts the command, which can be interrupted. */
export const beginInProcess = (args: ReadonlyArray<string>, cwd: string): Running => {
  const controller = new AbortController()
  const ended = last.then(() => {
    calls++
    return inFolder(cwd, () => captured(args, controller.signal))
  })
  last = ended.catch(() => {})
  return { interrupt: () => controller.abort(), ended }
}

// A process imports a file once; a test may write another under the same name for the next call.
registerHooks({
  resolve: (specifier, context, next) => {
    const resolved = next(specifier, context)
    return resolved.url.includes("/.tmp-") ? { ...resolved, url: `${resolved.url}?call=${calls}` } : resolved
  },
})

const inFolder = async <A>(folder: string, body: () => Promise<A>): Promise<A> => {
  const before = process.cwd()
  process.chdir(folder)
  try {
    return await body()
  } finally {
    process.chdir(before)
  }
}

const captured = async (args: ReadonlyArray<string>, signal: AbortSignal): Promise<Outcome> => {
  let [stdout, stderr] = ["", ""]
  const writeOut = (text: string): void => void (stdout += text)
  const writeError = (text: string): void => void (stderr += text)
  // Capture also what the command itself doesn't write: the progress line, and the output of users' code.
  const restore = [redirect(process.stdout, writeOut), redirect(process.stderr, writeError)]
  const before = globalThis.console
  globalThis.console = new NodeConsole({ stdout: writable(writeOut), stderr: writable(writeError) })
  try {
    const running = command(args).pipe(
      Effect.provideService(Output, { stdout: (text) => Effect.sync(() => writeOut(text)), stderr: writeError }),
      Effect.provideService(RunCommand, runChild),
      Effect.provideService(Console.Console, globalThis.console),
      // A test may set variables of this process, which the default provider reads only once.
      Effect.provideService(ConfigProvider.ConfigProvider, ConfigProvider.fromEnv()),
      Effect.provide(NodeServices.layer),
      inNextSecond,
    )
    const code = exitCodeOf(await Effect.runPromiseExit(running, { signal }))
    return { code, signal: null, stdout, stderr }
  } finally {
    globalThis.console = before
    for (const one of restore) one()
  }
}

/** One run of a sweep. */
export const runChild = ({ args, part }: Child): Effect.Effect<string, CommandError> => {
  let [stdout, stderr] = ["", ""]
  return command(["run", ...args, "--json", "--quiet"]).pipe(
    Effect.provideService(PartOfSweep, part),
    Effect.provideService(Output, {
      stdout: (text) => Effect.sync(() => void (stdout += text)),
      stderr: (text) => void (stderr += text),
    }),
    Effect.provide(NodeServices.layer),
    Effect.mapError(() => CommandError.run(stderr.trim().replace(/^effect: /m, ""))),
    Effect.map(() => stdout),
  )
}

let latestMillis = 0

/** Runs with a clock that begins in a second which no earlier call has seen: runs are named and sorted by their second. */
const inNextSecond = <A, E, R>(body: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Clock.clockWith((clock) => {
    const ahead = Math.max(0, Math.floor(latestMillis / 1000 + 1) * 1000 - Date.now())
    const currentTimeMillisUnsafe = (): number => Date.now() + ahead
    const shifted: Clock.Clock = {
      currentTimeMillisUnsafe,
      currentTimeMillis: Effect.sync(currentTimeMillisUnsafe),
      currentTimeNanosUnsafe: () => clock.currentTimeNanosUnsafe(),
      currentTimeNanos: clock.currentTimeNanos,
      monotonicTimeNanosUnsafe: () => clock.monotonicTimeNanosUnsafe(),
      monotonicTimeNanos: clock.monotonicTimeNanos,
      sleep: (duration) => clock.sleep(duration),
    }
    return Effect.provideService(body, Clock.Clock, shifted).pipe(
      Effect.ensuring(Effect.sync(() => void (latestMillis = currentTimeMillisUnsafe()))),
    )
  })

const writable = (write: (text: string) => void): Writable =>
  new Writable({
    decodeStrings: false,
    write: (chunk, _encoding, done) => {
      write(String(chunk))
      done()
    },
  })

/** Takes what is written to a stream of this process, until the result is called. */
const redirect = (stream: NodeJS.WriteStream, write: (text: string) => void): (() => void) => {
  const before = stream.write
  const sink = writable(write)
  stream.write = sink.write.bind(sink)
  return () => void (stream.write = before)
}
