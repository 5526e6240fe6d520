/** Reads the data that is shown, and reads it again after it has changed. */
import { together } from "./dom.js"

/**
 * Makes a reader. `fetch` reads the value for an input. The reader calls `changed` after values have been read, and `failed`
 * with the error if one can't be read.
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
    // Meanwhile something else is shown, or the value of another input is read.
    if (entries.get(key) !== entry) return
    Object.assign(entry, { isLoading: false, isAwaited: false })
    if ("error" in result) {
      entry.isStale = true
      return failed(result.error)
    }
    entry.value = result.value
    changedTogether(!isWaiting())
    // The data has changed while it was read.
    if (entry.isStale) void load(key)
  }

  return {
    /** Returns the value of a key; undefined until it has been read. After a change the old value stays until then. */
    of: (key) => entries.get(key)?.value,
    /** Tells whether the value of any new or changed input has still to be read. */
    isWaiting,
    /** Reads the values of these keys, and forgets the values of all other keys. A key is its own input by default. */
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
    /** Reads the values of those of these keys that are shown again. */
    stale: (keys) => {
      for (const [key, entry] of entries) {
        if (!keys.has(key)) continue
        entry.isStale = true
        void load(key)
      }
    },
  }
}
