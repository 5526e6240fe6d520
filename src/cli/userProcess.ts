import { Worker } from "node:worker_threads"
import { Effect } from "effect"
import { stepsTaken } from "../env/internal/episodes.ts"
import { PartOfSweep } from "./sweep/part.ts"
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

/** So long a single call of the user's code may keep the event loop from turning before signals end the process at once. */
const stallMillis = 10_000
const beatMillis = 250

/** What the other thread is given. */
export interface Watched {
  /** Counts turns of the main thread's event loop. */
  readonly beats: Int32Array
  readonly stallMillis: number
  /** The name of a function on the main thread. */
  readonly hook: string
  /** It is a run of a sweep. */
  readonly endsWithParent: boolean
}

/** The name by which the other thread asks the main one. */
const hook = "effectRlStalled"

/**
 * Watches from another thread whether the event loop turns. Where a single call of the user's code has kept it from
 * turning for ten seconds, that is said, and the next signal ends the process; when the call returns after all, signals
 * save the run again.
 */
export const watch: Effect.Effect<void> = Effect.map(PartOfSweep, (part) => {
  const beats = new Int32Array(new SharedArrayBuffer(4))
  let taken: Taken | undefined
  let stepsBefore = -1
  const turned = (): void => {
    Atomics.add(beats, 0, 1)
    stepsBefore = -1
    if (taken !== undefined) giveBack(taken)
    taken = undefined
  }
  setInterval(turned, beatMillis).unref()

  /** Runs on top of whatever keeps the main thread busy; gives a line for people when signals are let through. */
  const stalled = (): string | undefined => {
    // Envs that take a step at a time are slow, but don't hang.
    const isStepping = stepsTaken[0] !== stepsBefore
    stepsBefore = stepsTaken[0]
    const place = placeIn(wholeStack())
    if (isStepping || taken !== undefined || place === undefined) return undefined
    taken = takeListeners()
    return `effect: ${place}: it has not returned for ${stallMillis / 1000} seconds; Ctrl-C now ends the run without saving it\n`
  }
  Object.defineProperty(globalThis, hook, { value: stalled, configurable: true })
  const file = new URL(import.meta.url.endsWith(".ts") ? "./watchThread.ts" : "./watchThread.js", import.meta.url)
  const watched: Watched = { beats, stallMillis, hook, endsWithParent: part !== undefined }
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
