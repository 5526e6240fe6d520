/**
 * Keeps the process that runs the user's code under the user's control, for main.ts. Node handles signals only between two
 * turns of its event loop, so Ctrl-C would do nothing during a long call; `importing` and `watch` (watch.ts) prevent that. An
 * error that nothing catches would end the process without saving the run; `strayErrors` prevents that.
 */
import { setImmediate } from "node:timers/promises"
import { Effect } from "effect"
import { strayError } from "./userCode.ts"
import { type CommandError } from "../../CommandError.ts"

const signals = ["SIGINT", "SIGTERM"] as const

export type RemovedListeners = ReadonlyArray<
  readonly [signal: (typeof signals)[number], listeners: ReadonlyArray<NodeJS.SignalsListener>]
>

/** Removes the listeners of signals, so that a signal ends the process at once, even during a long computation. */
export const removeListeners = (): RemovedListeners =>
  signals.map((signal) => {
    const listeners = process.listeners(signal)
    process.removeAllListeners(signal)
    return [signal, listeners] as const
  })

export const restoreListeners = (removed: RemovedListeners): void => {
  for (const [signal, listeners] of removed) for (const listener of listeners) process.on(signal, listener)
}

/**
 * Imports a module with `load`. There is nothing to save yet, so a signal ends the process at once during the import. The
 * event loop must turn first: Node calls the listeners of a signal that came earlier only in a later turn, and that signal
 * would be lost without its listeners.
 */
export const importing = async <A>(load: () => Promise<A>): Promise<A> => {
  // The first `setImmediate` may run in the current turn, so a second one is needed.
  await setImmediate()
  await setImmediate()
  const removed = removeListeners()
  return load().finally(() => restoreListeners(removed))
}

/** Fails when the user's code throws where nothing can catch it: in a timer, or in a promise that isn't awaited. */
export const strayErrors: Effect.Effect<never, CommandError> = Effect.callback((resume) => {
  const fail = (thrown: unknown): void => resume(strayError(thrown))
  // These listeners are never removed, since a timer may also throw while the run is being saved.
  process.on("uncaughtException", fail)
  process.on("unhandledRejection", fail)
})
