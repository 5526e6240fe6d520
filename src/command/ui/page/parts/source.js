/** Keeps the values that a page shows, such as the curves of its runs, and reads them again after they have changed. */
import { together } from "./dom.js"

/**
 * Makes a store of values by key. `fetch` requests a value from the server, for the input of a key: the key itself, or
 * what `want` names. `changed` is called after values have been read, and `failed` if a value can't be read.
 */
export const makeSource = (fetch, changed, failed) => {
  const entries = new Map()
  const isWaiting = () => [...entries.values()].some(({ isAwaited }) => isAwaited)
  const changedTogether = together(changed)

  const load = async (key) => {
    const entry = entries.get(key)
    if (entry.isLoading || !entry.isStale) return
    Object.assign(entry, { isLoading: true, isStale: false })
    const result = await fetch(entry.input).then(
      (value) => ({ value }),
      (error) => ({ error }),
    )
    // Ignore the result: meanwhile the key is no longer wanted, or it has another input.
    if (entries.get(key) !== entry) return
    Object.assign(entry, { isLoading: false, isAwaited: false })
    if ("error" in result) {
      entry.isStale = true
      return failed(result.error)
    }
    entry.value = result.value
    changedTogether(!isWaiting())
    // The data has changed while it was read, so read it again.
    if (entry.isStale) void load(key)
  }

  return {
    /** Returns the value of a key as it was last read; undefined if it has not been read yet. */
    of: (key) => entries.get(key)?.value,
    /** Tells whether the value of any new or changed input has still to be read. */
    isWaiting,
    /** Reads the values of these keys, unless they have been read for the same input; forgets those of other keys. */
    want: (keys, inputOf = (key) => key) => {
      const wanted = new Set(keys)
      for (const key of entries.keys()) if (!wanted.has(key)) entries.delete(key)
      for (const key of wanted) {
        const input = inputOf(key)
        const before = entries.get(key)
        const isSame = before !== undefined && JSON.stringify(before.input) === JSON.stringify(input)
        if (!isSame) entries.set(key, { input, value: before?.value, isStale: true, isLoading: false, isAwaited: true })
        void load(key)
      }
    },
    /** Reads the values of these keys again, except those of keys that the last `want` did not name. */
    stale: (keys) => {
      for (const [key, entry] of entries) {
        if (!keys.has(key)) continue
        entry.isStale = true
        void load(key)
      }
    },
  }
}
