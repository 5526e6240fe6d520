import { Clock, Effect } from "effect"
import { appender } from "./appender.ts"
import type { Sink } from "./Recorder.ts"
import { scalarsOf } from "./scalars.ts"
import { writeHeader, writeScalars } from "./tfevents.ts"

/** The sink that TensorBoard reads: `logs.tfevents`, with the metrics of every update and the mean of every validation. */
export const tensorBoard: Sink = (run, about) =>
  Effect.gen(function* () {
    if (about.config.logScalars === false) return { emit: () => Effect.void, flush: Effect.void }
    const path = "logs.tfevents"
    const log = yield* appender(run, path)
    if (!(yield* run.exists(path))) {
      const now = (yield* Clock.currentTimeMillis) / 1000
      writeHeader(log.buffer, now)
      writeScalars(log.buffer, now, 0, numbersOf("hyperparameters", about.config))
    }
    return {
      emit: (events) =>
        Effect.flatMap(Clock.currentTimeMillis, (now) => {
          for (const event of events) {
            const scalars = scalarsOf(event)
            if (scalars !== undefined) writeScalars(log.buffer, now / 1000, scalars.step, scalars.values)
          }
          return log.settle(now)
        }),
      flush: log.flush,
    }
  })

/** The numbers of a config, by their paths; a list of records in it is data, and no setting. */
const numbersOf = (path: string, value: unknown): Record<string, number> => {
  if (typeof value === "number") return { [path]: value }
  if (typeof value === "boolean") return { [path]: value ? 1 : 0 }
  if (typeof value !== "object" || value === null) return {}
  if (Array.isArray(value) && typeof value[0] === "object") return {}
  return Object.assign({}, ...Object.entries(value).map(([key, item]) => numbersOf(`${path}/${key}`, item)))
}
