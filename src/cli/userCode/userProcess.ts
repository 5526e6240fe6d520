import { Worker } from "node:worker_threads"
import { Effect } from "effect"
import { stepsTaken } from "../../env/internal/episodes.ts"
import { type Measures, stallMeter } from "./stall.ts"
import { PartOfSweep } from "../sweep/part.ts"
import { placeIn, strayError, type UserCodeError } from "./userCode.ts"

/**
 * How a process that runs the user's code stays in the user's hands. Node hears a signal between two turns of its event
 * loop, which code that never returns keeps from turning; and it ends with a stack where an error is thrown that nobody
 * can catch.
 */

const signals = ["SIGINT", "SIGTERM"] as const

type Taken = ReadonlyArray<
  readonly [signal: (typeof signals)[number], listeners: ReadonlyArray<NodeJS.SignalsListener>]
>

/** Without listeners a signal ends the process, whatever it is doing. */
const takeListeners = (): Taken =>
  signals.map((signal) => {
    const listeners = process.listeners(signal)
    process.removeAllListeners(signal)
    return [signal, listeners] as const
  })

const giveBack = (taken: Taken): void => {
  for (const [signal, listeners] of taken) for (const listener of listeners) process.on(signal, listener)
}

/** Imports a module that may never come to its end; there is nothing to save yet, so a signal may end the process at once. */
export const importing = async <A>(load: () => Promise<A>): Promise<A> => {
  const taken = takeListeners()
  try {
    return await load()
  } finally {
    giveBack(taken)
  }
}

const beatMillis = 250

/** What the other thread is given. */
export interface Watched {
  /** Counts turns of the main thread's event loop. */
  readonly beats: Int32Array
  /** How often the other thread looks whether there was a turn. */
  readonly everyMillis: number
  /** The name of a function on the main thread. */
  readonly hook: string
  /** It is a run of a sweep. */
  readonly endsWithParent: boolean
}

/** The name by which the other thread asks the main one. */
const hook = "effectRlStalled"

/** Node 22 has no CPU time of the thread alone. */
const cpuUsage = process.threadCpuUsage ?? process.cpuUsage

const measure = (): Measures => {
  const { user, system } = cpuUsage()
  return { cpuMillis: (user + system) / 1000, wallMillis: performance.now(), steps: stepsTaken[0] }
}

/**
 * Watches from another thread whether the event loop turns. Where a single call of the user's code has kept it from
 * turning for ten seconds of CPU time, that is said, and the next signal ends the process; when the call returns after
 * all, signals save the run again.
 */
export const watch: Effect.Effect<void> = Effect.map(PartOfSweep, (part) => {
  const beats = new Int32Array(new SharedArrayBuffer(4))
  let taken: Taken | undefined
  const meter = stallMeter(measure)
  const turned = (): void => {
    Atomics.add(beats, 0, 1)
    meter.turned()
    if (taken !== undefined) giveBack(taken)
    taken = undefined
  }
  setInterval(turned, beatMillis).unref()

  /** Runs on top of whatever keeps the main thread busy; gives a line for people once signals are let through, then "". */
  const stalled = (): string | undefined => {
    if (taken !== undefined) return ""
    const millis = meter.stalledMillis()
    const place = millis === undefined ? undefined : placeIn(wholeStack())
    if (millis === undefined || place === undefined) return undefined
    taken = takeListeners()
    return `effect: ${place}: it has not returned for ${Math.round(millis / 1000)} seconds; Ctrl-C now ends the run without saving it\n`
  }
  Object.defineProperty(globalThis, hook, { value: stalled, configurable: true })
  const file = new URL(import.meta.url.endsWith(".ts") ? "./watchThread.ts" : "./watchThread.js", import.meta.url)
  const watched: Watched = { beats, everyMillis: 1000, hook, endsWithParent: part !== undefined }
  const thread = new Worker(file, { workerData: watched })
  // A platform may allow neither threads nor the inspector: then there is no watch.
  thread.on("error", () => {})
  thread.unref()
})

const wholeStack = (): string => {
  const before = Error.stackTraceLimit
  Error.stackTraceLimit = 200
  const { stack = "" } = new Error()
  Error.stackTraceLimit = before
  return stack
}

/** Fails when something is thrown that nobody can catch: in a timer, or in a promise that was dropped. */
export const strayErrors: Effect.Effect<never, UserCodeError> = Effect.callback((resume) => {
  const fail = (thrown: unknown): void => resume(strayError(thrown))
  // Never taken off again: a timer may throw while the run is being saved, too.
  process.on("uncaughtException", fail)
  process.on("unhandledRejection", fail)
})
