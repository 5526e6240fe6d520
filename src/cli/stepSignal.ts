import { Effect } from "effect"

/** What asks a run for the folder of its step; Windows has no such signal. */
export const stepSignal = "SIGUSR1"

/** Listens from now on, and says whether the signal came since it was last asked. */
export const stepSignalled: Effect.Effect<Effect.Effect<boolean>> = Effect.sync(() => {
  let came = false
  // Never taken off again: a signal that nobody listens to would end the process.
  if (process.platform !== "win32") process.on(stepSignal, () => void (came = true))
  return Effect.sync(() => {
    const was = came
    came = false
    return was
  })
})
