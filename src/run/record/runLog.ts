/**
 * The sink (a receiver of a run's events) that writes `run.log`, and the log levels of events, which `progress.ts` uses, too.
 */
import { Clock, Effect } from "effect"
import { appender, cutPartialLine } from "./appender.ts"
import type { Sink } from "./Recorder.ts"
import { includes, type LogLevel } from "./logLevel.ts"
import type { EpisodeEnded, RunEvent, Warning } from "./RunEvent.ts"
import { countedIn, scoresBy } from "./scalars.ts"
import * as Layout from "../Layout.ts"

/**
 * The sink that writes `run.log` for people. It writes a line for each event that the run's log level includes. The levels
 * show:
 *
 * - `ERROR`: how the run began, why it failed, and other failures
 * - `WARN`: also warnings, and an early end
 * - `INFO`: also devices, validations, checkpoints, notes and the end
 * - `DEBUG`: also episodes and updates, of which there are many
 */
export const runLog: Sink = (run, { unit, agents = false, logLevel = "INFO" }) =>
  Effect.map(Effect.andThen(cutPartialLine(run, Layout.log), appender(run, Layout.log)), (log) => ({
    emit: (events) => {
      // The multi-run trainer also counts answers that a language model imitates: these are samples, not episodes.
      const parts = agents ? "samples" : "episodes"
      const lines = events.flatMap((event) =>
        includes(logLevel, levelOf(event))
          ? lineOf(event, unit === "episodes" ? "episode" : "step", logLevel, parts).map((text) => entryOf(event, text))
          : [],
      )
      if (lines.length === 0) return Effect.void
      return Effect.flatMap(Clock.currentTimeMillis, (now) => {
        const time = new Date(now).toISOString()
        for (const line of lines) log.buffer.text(`${time} ${line}\n`)
        // Flush at once: these events are rare, and users read the log while the run is in progress.
        return log.flush
      })
    },
    flush: log.flush,
  }))

/**
 * Formats the text of an entry so that no part of it looks like another entry. In a failure, lines after the first, such as
 * those of a stack, are indented. In other entries, line breaks are removed, because even the name of a run may contain one.
 */
const entryOf = ({ _tag }: RunEvent, text: string): string =>
  (_tag === "RunEnded" ? text.replaceAll(/\r?\n(?! {2})/g, "\n  ") : text.replaceAll("\n", "\\n")).replaceAll(
    /[\0-\x08\x0b-\x1f\x7f]/g,
    (one) => (one === "\r" ? "\\r" : `\\x${one.charCodeAt(0).toString(16).padStart(2, "0")}`),
  )

/** Returns the level of an event. A log shows the event if its own level is the same or more detailed. */
export const levelOf = (event: RunEvent): LogLevel => {
  switch (event._tag) {
    case "RunStarted":
      return "ERROR"
    case "Warning":
      return event.isError === true ? "ERROR" : "WARN"
    case "RunEnded":
      return event.reason === "failed" ? "ERROR" : event.reason === "finished" ? "INFO" : "WARN"
    case "ValidationEnded":
    case "CheckpointSaved":
    case "Note":
      return "INFO"
    case "EpisodeEnded":
    case "StepScored":
    case "Abandoned":
    case "UpdateApplied":
      return "DEBUG"
  }
}

/** The words of the log for each reason why an episode was truncated. */
const truncations: Readonly<Record<NonNullable<EpisodeEnded["truncationReason"]>, string>> = {
  env: "truncated by the env",
  max_steps: "truncated at the limit of steps",
  diverged: "truncated because its simulation diverged",
}

export const lineOfWarning = ({ message, isError = false }: Warning): string =>
  `${isError ? "error" : "warning"}: ${message}`

/** Formats an event as lines of the log, without their times. */
const lineOf = (
  event: RunEvent,
  unit: "step" | "episode",
  logLevel: LogLevel,
  parts: "episodes" | "samples",
): ReadonlyArray<string> => {
  switch (event._tag) {
    case "RunStarted": {
      const devices = Object.entries(event.devices).map(([program, device]) => `${program} on ${device}`)
      const how = event.resumedFromStep === null ? "started" : `resumed at ${unit} ${event.resumedFromStep}`
      const envs =
        unit === "step" && event.agents !== true ? `${event.numEnvs === 1 ? "1 env" : `${event.numEnvs} envs`}, ` : ""
      return [
        `${how}: ${event.algorithm} on ${event.env}, ${envs}${event.totalSteps} ${unit}s, seed ${event.seed}`,
        ...(includes(logLevel, "INFO") && devices.length > 0 ? [`devices: ${devices.join(", ")}`] : []),
      ]
    }
    case "ValidationEnded": {
      const agents = scoresBy(event, "agent").map(([agent, score]) => `${agent} ${score.toFixed(2)}`)
      return [
        `validation at ${unit} ${event.step}: mean return ${event.meanReturn.toFixed(2)} ± ${event.stdReturn.toFixed(2)} over ${countedIn(event.episodes).length} episodes${agents.length === 0 ? "" : ` (${agents.join(", ")})`}${event.failed === undefined || event.failed === 0 ? "" : `, and ${event.failed} that failed`}`,
      ]
    }
    case "CheckpointSaved":
      return [`saved ${event.path}`]
    case "Note":
      return [event.message]
    case "Warning":
      return [lineOfWarning(event)]
    case "RunEnded":
      return [
        `${event.reason} at ${unit} ${event.step}${unit === "step" ? ` after ${event.episodes} ${parts}` : ""}${event.message === null ? "" : `: ${event.message}`}`,
      ]
    case "EpisodeEnded":
      return [
        `episode ${event.episode} ended at ${unit} ${event.step}: return ${event.return}, ${event.length} steps, ${event.terminated ? "terminated" : truncations[event.truncationReason ?? "max_steps"]}`,
      ]
    case "Abandoned":
      return [
        `abandoned a ${event.mode === "train" ? "training episode" : "validation"} at ${unit} ${event.seenEpisodes}`,
      ]
    case "UpdateApplied": {
      const numbers = Object.entries(event.metrics).map(([name, value]) => `${name} ${value}`)
      return [`update ${event.update} at ${unit} ${event.step}: ${numbers.join(", ")}`]
    }
    // Steps are in the score files, so the log leaves them out.
    case "StepScored":
      return []
  }
}
