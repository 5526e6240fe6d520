import { Clock, Effect } from "effect"
import { appender } from "./appender.ts"
import type { Sink } from "./Recorder.ts"
import type { RunEvent } from "./RunEvent.ts"

/** The sink for people: `run.log`, a line for everything but episodes and updates, of which there are too many. */
export const runLog: Sink = (run, { unit }) =>
  Effect.map(appender(run, "run.log"), (log) => ({
    emit: (events) => {
      const lines = events.flatMap((event) => lineOf(event, unit === "episodes" ? "episode" : "step"))
      if (lines.length === 0) return Effect.void
      return Effect.flatMap(Clock.currentTimeMillis, (now) => {
        const time = new Date(now).toISOString()
        for (const line of lines) log.buffer.text(`${time} ${line}\n`)
        // Rare, and what people look at while it runs.
        return log.flush
      })
    },
    flush: log.flush,
  }))

const lineOf = (event: RunEvent, unit: "step" | "episode"): ReadonlyArray<string> => {
  switch (event._tag) {
    case "RunStarted": {
      const devices = Object.entries(event.devices).map(([program, device]) => `${program} on ${device}`)
      const how = event.resumedFromStep === null ? "started" : `resumed at ${unit} ${event.resumedFromStep}`
      const envs = unit === "step" ? `${event.numEnvs} envs, ` : ""
      return [
        `${how}: ${event.algorithm} on ${event.env}, ${envs}${event.totalSteps} ${unit}s, seed ${event.seed}`,
        `devices: ${devices.join(", ")}`,
      ]
    }
    case "ValidationEnded":
      return [
        `validation at ${unit} ${event.step}: mean return ${event.meanReturn.toFixed(2)} ± ${event.stdReturn.toFixed(2)} over ${event.episodes.length} episodes${event.failed === undefined || event.failed === 0 ? "" : `, and ${event.failed} that failed`}`,
      ]
    case "CheckpointSaved":
      return [`saved ${event.path}`]
    case "Note":
      return [event.message]
    case "Warning":
      return [`warning: ${event.message}`]
    case "RunEnded":
      return [
        `${event.reason} at ${unit} ${event.step}${unit === "step" ? ` after ${event.episodes} episodes` : ""}${event.message === null ? "" : `: ${event.message}`}`,
      ]
    case "EpisodeEnded":
    case "StepScored":
    case "Abandoned":
    case "UpdateApplied":
      return []
  }
}
