import { Clock, Effect } from "effect"
import { appender } from "./appender.ts"
import type { Sink } from "./Recorder.ts"
import type { RunEvent } from "./RunEvent.ts"
import { header, scalars } from "./tfevents.ts"

/** The sink that TensorBoard reads: `logs.tfevents`, with the metrics of every update and the mean of every validation. */
export const tensorBoard: Sink = (run, about) =>
  Effect.gen(function* () {
    const path = "logs.tfevents"
    const log = appender(run, path)
    if (!(yield* run.exists(path))) {
      const now = (yield* Clock.currentTimeMillis) / 1000
      log.add(header(now))
      log.add(scalars(now, 0, numbersOf("hyperparameters", about.config)))
    }
    return {
      emit: Effect.fnUntraced(function* (events) {
        const now = (yield* Clock.currentTimeMillis) / 1000
        for (const event of events) {
          const values = scalarsOf(event)
          if (values !== undefined) log.add(scalars(now, values.step, values.metrics))
        }
        yield* log.settle
      }),
      flush: log.flush,
    }
  })

const scalarsOf = (
  event: RunEvent,
): { readonly step: number; readonly metrics: Readonly<Record<string, number>> } | undefined => {
  if (event._tag === "UpdateApplied") return event
  if (event._tag !== "ValidationEnded") return undefined
  const { step, meanReturn, stdReturn, episodes } = event
  const length = episodes.reduce((sum, episode) => sum + episode.length, 0) / episodes.length
  return {
    step,
    metrics: {
      "validation/score": meanReturn,
      "validation/score_std": stdReturn,
      "validation/episodic_length": length,
    },
  }
}

/** The numbers of a config, by their paths. */
const numbersOf = (path: string, value: unknown): Record<string, number> => {
  if (typeof value === "number") return { [path]: value }
  if (typeof value === "boolean") return { [path]: value ? 1 : 0 }
  if (typeof value !== "object" || value === null) return {}
  return Object.assign({}, ...Object.entries(value).map(([key, item]) => numbersOf(`${path}/${key}`, item)))
}
