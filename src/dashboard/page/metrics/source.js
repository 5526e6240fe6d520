/** Reads the metrics of the runs that are shown, and reads them again after the runs have changed. */
import { fetchMetrics } from "../data.js"
import { together } from "../parts/dom.js"

/** Makes the reader. It calls `changed` after metrics have been read, and `failed` with the error if they can't be read. */
export const makeMetricsSource = (changed, failed) => {
  const entries = new Map()
  const changedTogether = together(changed)

  const load = async (path) => {
    const entry = entries.get(path)
    if (entry.isLoading || !entry.isStale) return
    entry.isLoading = true
    entry.isStale = false
    let isRead = true
    try {
      entry.metrics = await fetchMetrics(path)
    } catch (error) {
      isRead = false
      entry.isStale = true
      failed(error)
    }
    entry.isLoading = false
    if (!isRead || entries.get(path) !== entry) return
    changedTogether([...entries.values()].every(({ metrics }) => metrics !== undefined))
    // The run has changed while its metrics were read.
    if (entry.isStale) void load(path)
  }

  return {
    /** Returns the metrics of a run; undefined until they have been read. */
    of: (path) => entries.get(path)?.metrics,
    /** Reads the metrics of these runs, and forgets the metrics of all other runs. */
    want: (paths) => {
      const wanted = new Set(paths)
      for (const path of entries.keys()) if (!wanted.has(path)) entries.delete(path)
      for (const path of wanted) {
        if (!entries.has(path)) entries.set(path, { metrics: undefined, isStale: true, isLoading: false })
        void load(path)
      }
    },
    /**
     * Reads the metrics of those of these runs that are shown. The old values stay visible until the new ones have been
     * read.
     */
    stale: (paths) => {
      for (const [path, entry] of entries) {
        if (!paths.has(path)) continue
        entry.isStale = true
        void load(path)
      }
    },
  }
}
