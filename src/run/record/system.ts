/**
 * The sink (a receiver of a run's events) that measures the resources that a run uses. It appends samples of memory,
 * CPU and speed to `system.jsonl`, one line each.
 *
 * Samples become rarer as the run gets longer: a day takes about nine hundred lines. They are no part of results and digests.
 * A resumed run keeps the file and appends to it, as to `run.log`.
 *
 * @example
 * ```ts
 * const recorder = Recorder.layer(scores, system(() => ({ rss: 1e8, heap: 5e7, buffers: 1e7, cpuSeconds: 1.5 })))
 * ```
 */
import { Effect, Schema } from "effect"
import { cutPartialLine, fileSink } from "./appender.ts"
import type { Sink } from "./Recorder.ts"
import * as Layout from "../Layout.ts"

/** The resources that the training process uses now, including those of other runs in the same process. */
export interface SystemFigures {
  /** The resident memory of the process, in bytes. */
  readonly rss: number
  /** The memory of JavaScript objects, in bytes; a part of `rss`. */
  readonly heap: number
  /** The memory of typed arrays and other buffers, in bytes; a part of `rss`. */
  readonly buffers: number
  /** The CPU time of all threads so far, in seconds. */
  readonly cpuSeconds: number
}

/** A line of `system.jsonl`. */
export const SystemRecord = Schema.Struct({
  timestamp: Schema.String,
  step_index: Schema.Int,
  /** The seconds since the run was started or resumed. */
  seconds: Schema.Finite,
  steps_per_second: Schema.Finite,
  /** The resident memory of the process, in bytes. */
  rss: Schema.Finite,
  /** The memory of JavaScript objects, in bytes. */
  heap: Schema.Finite,
  /** The memory of typed arrays and other buffers, in bytes. */
  buffers: Schema.Finite,
  /** The CPU use since the last sample, in cores: 1 means that one core is fully used. */
  cpu: Schema.Finite,
})

/** The shortest time between two samples. */
const leastMillis = 250
/** The time between two samples, as a share of the time since the run was started or resumed. */
const shareOfTime = 1 / 100

/** Makes the sink. `figuresNow` measures the resources that the process uses. */
export const system = (figuresNow: () => SystemFigures): Sink => {
  const sink = sinkOf(figuresNow)
  return (run, about) => Effect.andThen(cutPartialLine(run, Layout.system), sink(run, about))
}

const sinkOf = (figuresNow: () => SystemFigures): Sink =>
  fileSink(Layout.system, ({ buffer, startedAtMillis, about }) => {
    let step = about.resumedFromStep ?? 0
    let last = { at: startedAtMillis, step, cpuSeconds: figuresNow().cpuSeconds }
    const sample = (now: number): void => {
      const { rss, heap, buffers, cpuSeconds } = figuresNow()
      const seconds = (now - last.at) / 1000
      const line: typeof SystemRecord.Encoded = {
        timestamp: new Date(now).toISOString(),
        step_index: step,
        seconds: (now - startedAtMillis) / 1000,
        steps_per_second: rounded((step - last.step) / seconds),
        rss,
        heap,
        buffers,
        cpu: rounded((cpuSeconds - last.cpuSeconds) / seconds),
      }
      buffer.text(`${JSON.stringify(line)}\n`)
      last = { at: now, step, cpuSeconds }
    }
    return (events, now) => {
      // Ignore `CheckpointSaved`: a checkpoint is written in the background, so its event may come after events of later
      // steps.
      const newest = events.findLast((event) => "step" in event && event._tag !== "CheckpointSaved")
      if (newest !== undefined) step = newest.step
      const ended = events.at(-1)?._tag === "RunEnded"
      const due = Math.max(leastMillis, (now - startedAtMillis) * shareOfTime)
      if (now - last.at >= due || (ended && now > last.at)) sample(now)
    }
  })

const rounded = (value: number): number => Number(value.toPrecision(4))
