import { Clock, Context, Effect, Schema } from "effect"
import type { Sink } from "../../run/record/Recorder.ts"

/**
 * What a sweep and the processes of its runs say to each other: what a run is part of goes down in a variable of the
 * environment, how far it is comes up as messages, and a message down or a channel that closes ends it.
 */
export const Part = Schema.Struct({
  /** Of all runs that belong together, as their folder has it. */
  time: Schema.String,
  commit: Schema.String,
  population: Schema.Record(Schema.String, Schema.String),
  /** The command that goes on with the sweep: in a run's `sweep.txt`. */
  command: Schema.String,
})
export type Part = typeof Part.Type

const variable = "EFFECT_RL_SWEEP"
const PartText = Schema.fromJsonString(Part)

export const withPart = (part: Part): NodeJS.ProcessEnv => ({
  ...process.env,
  [variable]: Schema.encodeSync(PartText)(part),
})

/** The sweep that a run is a part of: the one whose process has started this process. */
export const PartOfSweep = Context.Reference<Part | undefined>("effect-rl/cli/PartOfSweep", {
  defaultValue: () => {
    const text = process.env[variable]
    return text === undefined ? undefined : Schema.decodeSync(PartText)(text)
  },
})

export const Progress = Schema.Struct({ step: Schema.Int, totalSteps: Schema.Int, stepsPerSecond: Schema.Finite })
export type Progress = typeof Progress.Type

export const isProgress = Schema.is(Progress)

const everyMillis = 200

/** Tells the sweep how far the run is. */
export const sweepProgress: Sink = (_, about) =>
  Effect.gen(function* () {
    const firstStep = about.resumedFromStep ?? 0
    const startedAt = yield* Clock.currentTimeMillis
    let toldAt = -Infinity
    return {
      emit: (events) =>
        Effect.map(Clock.currentTimeMillis, (now) => {
          const step = events.findLast((event) => event._tag === "UpdateApplied")?.step
          if (step === undefined || now - toldAt < everyMillis || process.connected !== true) return
          toldAt = now
          const stepsPerSecond = ((step - firstStep) * 1000) / Math.max(1, now - startedAt)
          const told: Progress = { step, totalSteps: about.totalSteps, stepsPerSecond }
          process.send?.(told)
        }),
      flush: Effect.void,
    }
  })

/** What a sweep says to a run that should save itself and end. */
export const stop = "stop"

/** Ends this process as Ctrl-C does when the sweep that it belongs to says so, or is gone; unless Ctrl-C came first. */
export const endWithSweep = (isInterrupted: () => boolean): void => {
  if (process.channel === undefined || process.env[variable] === undefined) return
  const end = (): void => void (isInterrupted() || process.kill(process.pid, "SIGINT"))
  process.on("message", (message) => void (message === stop && end()))
  process.once("disconnect", end)
  // Listening must not keep a process that is done.
  process.channel.unref()
  if (!process.connected) end()
}
