import { Clock, Effect } from "effect"
import { appender } from "./appender.ts"
import type { Sink } from "./Recorder.ts"
import { scalarsOf } from "./scalars.ts"
import * as Layout from "../Layout.ts"

/**
 * The sink for spreadsheets and data frames: `progress.csv`, with one line per number of each update and validation.
 * One number per line, because the set of metrics can change during a run; `df.pivot(index="step", columns="name")`
 * makes a column of each.
 *
 * @example
 * ```ts
 * Node.recorder(csv)
 * ```
 */
export const csv: Sink = (run) =>
  Effect.gen(function* () {
    const path = Layout.progressCsv
    const log = yield* appender(run, path)
    if (!(yield* run.exists(path))) log.buffer.text("step,name,value\n")
    return {
      emit: (events) =>
        Effect.flatMap(Clock.currentTimeMillis, (now) => {
          for (const event of events) {
            const scalars = scalarsOf(event)
            if (scalars === undefined) continue
            for (const [name, value] of Object.entries(scalars.values)) {
              log.buffer.text(`${scalars.step},${name},${value}\n`)
            }
          }
          return log.settle(now)
        }),
      flush: log.flush,
    }
  })
