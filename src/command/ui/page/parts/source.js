/** Keeps the values that a page shows, such as the curves of its runs, and reads them again after they have changed. */
import { together } from "./dom.js"

/**
 * Makes a store of values by key. `fetch` requests a value from the server. It gets the input of a key, which is the key
 * itself unless `want` names another. `changed` is called after values have been read, and `failed` if a value can't be read.
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
    // Ignore the result, because in the meantime the key is no longer wanted, or it has another input.
    if (entries.get(key) !== entry) return
    Object.assign(entry, { isLoading: false, isAwaited: false })
    if ("error" in result) {
      entry.isStale = true
      return failed(result.error)
    }
    entry.value = result.value
    changedTogether(!isWaiting())
    // The data changed while it was being read, so read it again.
    if (entry.isStale) void load(key)
  }

  return {
    /** Returns the last value that was read for a key; undefined if none has been read yet. */
    of: (key) => entries.get(key)?.value,
    /** Tells whether a value for a new or changed input still has to be read. */
    isWaiting,
    /**
     * Reads the values of these keys, unless they have already been read for the same inputs, and forgets the values of all
     * other keys.
     */
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
    /** Reads the values of these keys again, if the last `want` named the keys. */
    stale: (keys) => {
      for (const [key, entry] of entries) {
        if (!keys.has(key)) continue
        entry.isStale = true
        void load(key)
      }
    },
  }
}
