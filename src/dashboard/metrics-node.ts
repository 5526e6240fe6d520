/** Reads the metrics of runs from their event files; of a file that has grown, only the new part. */
import { Effect, Semaphore } from "effect"
import { decode } from "../formats/tfevents.ts"
import { attempt } from "../run/read/attempt.ts"
import { parseConfig } from "../run/read/configText.ts"
import * as Layout from "../run/Layout.ts"
import { behind, type Confined } from "./confined-node.ts"
import { addEvents, emptyMetrics, metricsOf, type MetricsTable, type RunMetrics } from "./metrics.ts"

/** The metrics of a run, by the run's path. A run without an event file has none. */
export type MetricsReader = (run: string) => Effect.Effect<RunMetrics>

interface Reading {
  readonly table: MetricsTable
  /** Bytes that were read so far, which are whole records. */
  read: number
  behind: string
}

/** Bytes that are read and decoded at a time: some tens of milliseconds, after which other requests have their turn. */
const partBytes = 2 * 1024 * 1024

/** Tables of this many runs stay in memory. */
const mostKept = 64

export const makeMetrics = (files: Pick<Confined, "bytes" | "text">): MetricsReader => {
  const kept = new Map<string, Reading>()
  // Two readers of one run would add the same events twice.
  const turn = Semaphore.makeUnsafe(1)

  const fileOf = (run: string): Effect.Effect<string> =>
    Effect.map(
      Effect.promise(() => files.text(`${run}/${Layout.config}`)),
      (text) => {
        const config = attempt(() => parseConfig(text ?? ""))
        const places = Layout.placesIn("value" in config ? config.value : undefined)
        return `${run}/${Layout.locate(places, Layout.tensorBoard)}`
      },
    )

  /** What was read of a run before, unless the file has been cut back since, as a resumed run does. */
  const continued = Effect.fnUntraced(function* (run: string, file: string) {
    const before = kept.get(run)
    kept.delete(run)
    const isSame =
      before !== undefined && before.behind === (yield* Effect.promise(() => behind(files, file, before.read)))
    const reading: Reading = isSame ? before : { table: emptyMetrics(), read: 0, behind: "" }
    kept.set(run, reading)
    for (const oldest of kept.keys()) if (kept.size > mostKept) kept.delete(oldest)
    return reading
  })

  return Effect.fnUntraced(
    function* (run) {
      const file = yield* fileOf(run)
      const reading = yield* continued(run, file)
      for (let most = partBytes; ;) {
        const bytes = yield* Effect.promise(() => files.bytes(file, reading.read, most))
        if (bytes === undefined || bytes.length === 0) break
        const { events, intactBytes } = decode(bytes)
        // A record may be longer than a part; if the file ends in it, or if it is damaged, we wait for a change.
        if (intactBytes === 0) {
          if (bytes.length < most || most > 8 * partBytes) break
          most *= 2
          continue
        }
        addEvents(reading.table, events)
        reading.read += intactBytes
        most = partBytes
        yield* Effect.yieldNow
      }
      reading.behind = yield* Effect.promise(() => behind(files, file, reading.read))
      return metricsOf(reading.table)
    },
    (metrics) => turn.withPermits(1)(metrics),
  )
}
