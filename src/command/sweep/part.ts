/** Connects the process of a sweep with the processes of its runs, through an environment variable and messages. */
import { Clock, Context, Effect, Schema } from "effect"
import { jsonText } from "../../base/text/jsonText.ts"
import type { Sink } from "../../run/record/Recorder.ts"

/**
 * Describes the sweep that a run is part of. The run's process receives it in an environment variable, and sends its
 * progress as messages to the sweep's process. The message `stop`, or a closed channel, ends the run's process.
 */
export const SweepPart = Schema.Struct({
  /** The time in the path of the sweep's folder, which all its runs share. */
  time: Schema.String,
  /** The commit in the path of the run's folder. */
  commit: Schema.String,
  /** The swept settings, with their values in this run. */
  population: Schema.Record(Schema.String, Schema.String),
  /** The command that resumes the sweep, for the run's `sweep.txt`. */
  command: Schema.String,
})
export type SweepPart = typeof SweepPart.Type

const variable = "EFFECT_RL_SWEEP"
const PartText = jsonText(SweepPart)

/** Returns the environment variables for the process of a run. */
export const withPart = (part: SweepPart): NodeJS.ProcessEnv => ({
  ...process.env,
  [variable]: Schema.encodeSync(PartText)(part),
})

/** The sweep whose process started this process; undefined if this process isn't a run of a sweep. */
export const PartOfSweep = Context.Reference<SweepPart | undefined>("effect-rl/cli/PartOfSweep", {
  defaultValue: () => {
    const text = process.env[variable]
    return text === undefined ? undefined : Schema.decodeSync(PartText)(text)
  },
})

export const SweepProgress = Schema.Struct({ step: Schema.Int, totalSteps: Schema.Int, stepsPerSecond: Schema.Finite })
export type SweepProgress = typeof SweepProgress.Type

export const isProgress = Schema.is(SweepProgress)

/** The shortest time between two messages about progress. */
const everyMillis = 200

/** A sink (a receiver of a run's events) that sends the progress of this run to the sweep's process. */
export const sweepProgress: Sink = (_, about) =>
  Effect.gen(function* () {
    const firstStep = about.resumedFromStep ?? 0
    const startedAt = yield* Clock.currentTimeMillis
    let sentAt = -Infinity
    return {
      emit: (events) =>
        Effect.map(Clock.currentTimeMillis, (now) => {
          const step = events.findLast((event) => event._tag === "UpdateApplied")?.step
          if (step === undefined || now - sentAt < everyMillis || process.connected !== true) return
          sentAt = now
          const stepsPerSecond = ((step - firstStep) * 1000) / Math.max(1, now - startedAt)
          const progress: SweepProgress = { step, totalSteps: about.totalSteps, stepsPerSecond }
          process.send?.(progress)
        }),
      flush: Effect.void,
    }
  })

/** The message that makes a run save its work and end. */
export const stop = "stop"

/**
 * Ends a process of a sweep in the same way as Ctrl-C does, when the sweep sends `stop` or ends. It does nothing after
 * Ctrl-C.
 */
export const endWithSweep = (isInterrupted: () => boolean): void => {
  if (process.channel === undefined || process.env[variable] === undefined) return
  const end = (): void => void (isInterrupted() || process.kill(process.pid, "SIGINT"))
  process.on("message", (message) => void (message === stop && end()))
  process.once("disconnect", end)
  // The channel must not keep the process alive when the run is done.
  process.channel.unref()
  if (!process.connected) end()
}
