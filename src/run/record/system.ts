/**
 * The sink for what a run costs its machine: `system.jsonl`, a line a sample with memory, CPU and speed.
 *
 * Short runs are looked at often, long ones less and less so: the file of a day holds some nine hundred lines. Nothing
 * of it goes into results or digests, and a resumed run adds to it rather than cutting it back, as with `run.log`.
 *
 * @example
 * ```ts
 * const recorder = Recorder.layer(scores, system(() => ({ rss: 1e8, heap: 5e7, buffers: 1e7, cpuSeconds: 1.5 })))
 * ```
 */
import { Clock, Effect, Schema } from "effect"
import { appender } from "./appender.ts"
import type { Sink } from "./Recorder.ts"
import * as Layout from "../Layout.ts"

/** What the process that trains uses at this moment; other runs that it does beside this one are in it. */
export interface SystemFigures {
  /** Bytes in memory, all together. */
  readonly rss: number
  /** Of them, bytes of JavaScript's objects. */
  readonly heap: number
  /** And bytes of typed arrays and other buffers. */
  readonly buffers: number
  /** Seconds that it has computed so far, over all its threads. */
  readonly cpuSeconds: number
}

/** A line of `system.jsonl`. */
export const SystemRecord = Schema.Struct({
  timestamp: Schema.String,
  step_index: Schema.Int,
  /** Since the run was started or resumed. */
  seconds: Schema.Finite,
  steps_per_second: Schema.Finite,
  /** Bytes in memory, all together. */
  rss: Schema.Finite,
  /** Of them, bytes of JavaScript's objects. */
  heap: Schema.Finite,
  /** And bytes of typed arrays and other buffers. */
  buffers: Schema.Finite,
  /** In cores: 1 is one that does nothing else. */
  cpu: Schema.Finite,
})

/** As often as anybody can tell apart in a run of seconds. */
const leastMillis = 250
/** Samples are this share of the time so far apart. */
const shareOfTime = 1 / 100

export const system =
  (figuresNow: () => SystemFigures): Sink =>
  (run, about) =>
    Effect.gen(function* () {
      const log = yield* appender(run, Layout.system)
      const startedAt = yield* Clock.currentTimeMillis
      let step = about.resumedFromStep ?? 0
      let last = { at: startedAt, step, cpuSeconds: figuresNow().cpuSeconds }

      const sample = (now: number): void => {
        const { rss, heap, buffers, cpuSeconds } = figuresNow()
        const seconds = (now - last.at) / 1000
        const line: typeof SystemRecord.Encoded = {
          timestamp: new Date(now).toISOString(),
          step_index: step,
          seconds: (now - startedAt) / 1000,
          steps_per_second: rounded((step - last.step) / seconds),
          rss,
          heap,
          buffers,
          cpu: rounded((cpuSeconds - last.cpuSeconds) / seconds),
        }
        log.buffer.text(`${JSON.stringify(line)}\n`)
        last = { at: now, step, cpuSeconds }
      }

      return {
        emit: (events) =>
          Effect.flatMap(Clock.currentTimeMillis, (now) => {
            const newest = events.findLast((event) => "step" in event)
            if (newest !== undefined) step = newest.step
            const ended = events.at(-1)?._tag === "RunEnded"
            const due = Math.max(leastMillis, (now - startedAt) * shareOfTime)
            if (now - last.at >= due || (ended && now > last.at)) sample(now)
            return log.settle(now)
          }),
        flush: log.flush,
      }
    })

const rounded = (value: number): number => Number(value.toPrecision(4))
