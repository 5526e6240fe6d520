import { Effect } from "effect"

/** What asks a run for the folder of its step; Windows has no such signal. */
export const stepSignal = "SIGUSR1"

let signals = 0

/** Listens from now on, and says whether the signal came since it was last asked. */
export const stepSignalled: Effect.Effect<Effect.Effect<boolean>> = Effect.sync(() => {
  // Never taken off again: a signal that nobody listens to would end the process.
  if (process.platform !== "win32" && !process.listeners(stepSignal).includes(count)) process.on(stepSignal, count)
  let seen = signals
  return Effect.sync(() => {
    const came = signals > seen
    seen = signals
    return came
  })
})

const count = (): void => void signals++
