import { Clock, Effect } from "effect"
import { appender } from "./appender.ts"
import type { Sink } from "./Recorder.ts"
import type { ValidationEnded } from "./RunEvent.ts"
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
            if (event._tag === "UpdateApplied") writeScalars(log.buffer, now / 1000, event.step, event.metrics)
            else if (event._tag === "ValidationEnded") {
              writeScalars(log.buffer, now / 1000, event.step, validationScalars(event))
            }
          }
          return log.settle(now)
        }),
      flush: log.flush,
    }
  })

const validationScalars = ({ meanReturn, stdReturn, episodes }: ValidationEnded): Record<string, number> => {
  const length = episodes.reduce((sum, episode) => sum + episode.length, 0) / episodes.length
  return {
    "validation/score": meanReturn,
    "validation/score_std": stdReturn,
    "validation/episodic_length": length,
  }
}

/** The numbers of a config, by their paths. */
const numbersOf = (path: string, value: unknown): Record<string, number> => {
  if (typeof value === "number") return { [path]: value }
  if (typeof value === "boolean") return { [path]: value ? 1 : 0 }
  if (typeof value !== "object" || value === null) return {}
  return Object.assign({}, ...Object.entries(value).map(([key, item]) => numbersOf(`${path}/${key}`, item)))
}
