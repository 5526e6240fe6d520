/** Reads the metrics of runs from their TensorBoard event files. When a file has grown, it reads only the new part. */
import { Effect, Semaphore } from "effect"
import { decode } from "../../../base/formats/tfevents.ts"
import { unplacedEntry } from "../../../run/find/RunEntry.ts"
import * as Layout from "../../../run/Layout.ts"
import type { FileSource } from "../../../run/read/FileSource.ts"
import { type ReadPosition, readOn, start } from "../../../run/read/readOn.ts"
import * as RunReader from "../../../run/RunReader.ts"
import { addEvents, emptyMetrics, metricsOf, type MetricsTable, type RunMetrics } from "./metrics.ts"

interface MetricsReading {
  table: MetricsTable
  position: ReadPosition
}

/** The largest number of runs whose metrics stay in memory. */
const mostKept = 64

/** Makes a function that reads the metrics of the run with the given path. A run without an event file has no metrics. */
export const makeMetrics = (files: FileSource) => {
  const kept = new Map<string, MetricsReading>()
  // Two simultaneous readers of one run would add the same events twice.
  const turn = Semaphore.makeUnsafe(1)
  const open = RunReader.over(files)

  const read = Effect.fnUntraced(function* (run: string): Effect.fn.Return<RunMetrics> {
    const file = yield* open(unplacedEntry(run)).locate(Layout.tensorBoard)
    const reading = kept.get(run) ?? { table: emptyMetrics(), position: start }
    kept.delete(run)
    kept.set(run, reading)
    for (const oldest of kept.keys()) if (kept.size > mostKept) kept.delete(oldest)
    reading.position = yield* readOn(files, file, reading.position, {
      take: (bytes) => {
        const { events, intactBytes } = decode(bytes)
        addEvents(reading.table, events)
        return intactBytes
      },
      restart: () => void (reading.table = emptyMetrics()),
    })
    return metricsOf(reading.table)
  })

  // An interruption between the events and their position would add the same events twice.
  return (run: string) => turn.withPermits(1)(Effect.uninterruptible(read(run)))
}
