import { fileSink } from "./appender.ts"
import type { Sink } from "./Recorder.ts"
import { scalarsOf } from "./scalars.ts"
import * as Layout from "../Layout.ts"

/**
 * The sink (a receiver of a run's events) for spreadsheets and data frames. It writes `progress.csv`, with one line
 * `step,name,value` for each number of an update or validation, because the set of metrics can change during a run. In
 * pandas, `df.pivot(index="step", columns="name")` makes a column of each metric.
 *
 * @example
 * ```ts
 * import * as Node from "effect-rl/node"
 *
 * Node.recorder(csv)
 * ```
 */
export const csv: Sink = fileSink(Layout.progressCsv, ({ buffer, isNew }) => {
  if (isNew) buffer.text("step,name,value\n")
  return (events) => {
    for (const event of events) {
      const { step, values = {} } = scalarsOf(event) ?? {}
      for (const [name, value] of Object.entries(values)) buffer.text(`${step},${name},${value}\n`)
    }
  }
})
