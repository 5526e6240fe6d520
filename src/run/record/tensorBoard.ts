import { Clock, Effect } from "effect"
import { appender } from "./appender.ts"
import type { Sink } from "./Recorder.ts"
import { scalarsOf } from "./scalars.ts"
import { settingsOf, writeEnd, writeStart } from "./hparams.ts"
import { writeHeader, writeScalars } from "../../formats/tfevents.ts"
import * as Layout from "../Layout.ts"

/**
 * The sink for TensorBoard: `logs.tfevents` with the metrics of every update and the mean of every validation, and for
 * the HParams page the run's settings and whether it finished.
 */
export const tensorBoard: Sink = (run, about) =>
  Effect.gen(function* () {
    if (about.config.logScalars === false) return { emit: () => Effect.void, flush: Effect.void }
    const path = Layout.tensorBoard
    const log = yield* appender(run, path)
    if (!(yield* run.exists(path))) {
      const now = (yield* Clock.currentTimeMillis) / 1000
      writeHeader(log.buffer, now)
      writeStart(log.buffer, now, settingsOf(about.config))
    }
    return {
      emit: (events) =>
        Effect.flatMap(Clock.currentTimeMillis, (now) => {
          for (const event of events) {
            const scalars = scalarsOf(event)
            if (scalars !== undefined) writeScalars(log.buffer, now / 1000, scalars.step, scalars.values)
            if (event._tag !== "RunEnded") continue
            // Write no end for an interrupted run, because it may be resumed.
            if (event.reason === "finished") writeEnd(log.buffer, now / 1000, "success")
            if (event.reason === "failed") writeEnd(log.buffer, now / 1000, "failure")
          }
          return log.settle(now)
        }),
      flush: log.flush,
    }
  })
