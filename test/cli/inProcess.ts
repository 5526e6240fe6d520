import { Console as NodeConsole } from "node:console"
import { registerHooks } from "node:module"
import { Writable } from "node:stream"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Clock, Console, Effect } from "effect"
import { command, exitCodeOf } from "../../src/cli/command.ts"
import type { Outcome } from "./effect.ts"

// Tests compare plain text, wherever they run; the processes that they start have this environment, too.
delete process.env.FORCE_COLOR

let last: Promise<unknown> = Promise.resolve()

/** Runs the command in this process as its own process would, and gives what it wrote and its exit code. */
export const inProcess = (args: ReadonlyArray<string>, cwd: string): Promise<Outcome> => {
  const outcome = last.then(() => inFolder(cwd, () => captured(args)))
  last = outcome.catch(() => {})
  return outcome
}

const inFolder = async <A>(folder: string, body: () => Promise<A>): Promise<A> => {
  const before = process.cwd()
  process.chdir(folder)
  try {
    return await body()
  } finally {
    process.chdir(before)
  }
}

const captured = async (args: ReadonlyArray<string>): Promise<Outcome> => {
  const [stdout, stderr] = [capture(process.stdout), capture(process.stderr)]
  const before = globalThis.console
  globalThis.console = new NodeConsole({ stdout: stdout.stream, stderr: stderr.stream })
  try {
    const running = command(args).pipe(
      Effect.provideService(Console.Console, globalThis.console),
      Effect.provide(NodeServices.layer),
      inNextSecond,
    )
    calls++
    const code = exitCodeOf(await Effect.runPromiseExit(running))
    return { code, signal: null, stdout: stdout.text(), stderr: stderr.text() }
  } finally {
    globalThis.console = before
    stdout.restore()
    stderr.restore()
  }
}

let calls = 0

// A process imports a file once; a test may write another under the same name for the next call.
registerHooks({
  resolve: (specifier, context, next) => {
    const resolved = next(specifier, context)
    return resolved.url.includes("/.tmp-") ? { ...resolved, url: `${resolved.url}?call=${calls}` } : resolved
  },
})

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

/** Keeps what is written to a stream of this process, until it is restored. */
const capture = (target: NodeJS.WriteStream) => {
  let text = ""
  const stream = new Writable({
    decodeStrings: false,
    write: (chunk, _encoding, done) => {
      text += String(chunk)
      done()
    },
  })
  const write = target.write
  target.write = stream.write.bind(stream)
  return { stream, text: () => text, restore: () => void (target.write = write) }
}
