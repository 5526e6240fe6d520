/** Counts the signals with which a user asks a run to write the folder of its current step: its policy and episodes. */
import { Effect } from "effect"

/** The signal that makes a run write the folder of its current step. Windows has no such signal. */
export const stepSignal = "SIGUSR1"

/** The number of signals that this process has received. */
let received = 0

/** Listens to the signal. Returns an Effect that tells whether the signal has arrived since the Effect last ran. */
export const stepSignalled: Effect.Effect<Effect.Effect<boolean>> = Effect.sync(() => {
  // This listener is never removed: without a listener, the signal would end the process.
  if (process.platform !== "win32" && !process.listeners(stepSignal).includes(count)) process.on(stepSignal, count)
  let seen = received
  return Effect.sync(() => {
    const isNew = received > seen
    seen = received
    return isNew
  })
})

const count = (): void => void received++
