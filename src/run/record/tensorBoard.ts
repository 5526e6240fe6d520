import { Effect } from "effect"
import { fileSink } from "./appender.ts"
import { silent, type Sink } from "./Recorder.ts"
import { scalarsOf } from "./scalars.ts"
import { byPath, settingTree, writeEnd, writeStart } from "./hparams.ts"
import { writeHeader, writeScalars } from "../../base/formats/tfevents.ts"
import * as Layout from "../Layout.ts"

/**
 * The sink (a receiver of a run's events) that writes `logs.tfevents` for TensorBoard: the metrics of every update, the
 * mean of every validation, and for the HParams page the run's settings and whether it finished. It writes nothing if
 * the setting `logScalars` is false.
 */
export const tensorBoard: Sink = (run, about) =>
  about.config.logScalars === false ? Effect.succeed(silent) : scalarLog(run, about)

const scalarLog = fileSink(Layout.tensorBoard, ({ buffer, isNew, startedAtMillis, about }) => {
  if (isNew) {
    writeHeader(buffer, startedAtMillis / 1000)
    writeStart(buffer, startedAtMillis / 1000, byPath(settingTree(about.config)))
  }
  return (events, now) => {
    for (const event of events) {
      const scalars = scalarsOf(event)
      if (scalars !== undefined) writeScalars(buffer, now / 1000, scalars.step, scalars.values)
      if (event._tag !== "RunEnded") continue
      // The end of an interrupted run is not written, because the run may be resumed.
      if (event.reason === "finished") writeEnd(buffer, now / 1000, "success")
      if (event.reason === "failed") writeEnd(buffer, now / 1000, "failure")
    }
  }
})
