/**
 * Computes the length and a hash of the JSON of a value. Both are kept for each object, because the requests of an agent repeat the
 * same messages again and again. They must not be asked for an object that changes.
 */

/** Returns a hash of a text, as an exact whole number below 2^53. It is fast, but not secure: texts can be made that share it. */
const hashOfText = (text: string): number => {
  let [low, high] = [0x811c9dc5, 0x9e3779b9]
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    low = Math.imul(low ^ code, 0x01000193)
    high = Math.imul(high ^ code, 0x85ebca6b)
    high ^= high >>> 15
  }
  low = Math.imul(low ^ (low >>> 16), 0x85ebca6b) ^ high
  return (high >>> 11) * 2 ** 32 + (low >>> 0)
}

const lengths = new WeakMap<object, number>()
const hashes = new WeakMap<object, number>()

const jsonOf = (value: unknown): string => JSON.stringify(value) ?? ""

/** Returns the number of characters of a value's JSON. */
export const jsonLength = (value: object): number => {
  const length = lengths.get(value) ?? jsonOf(value).length
  lengths.set(value, length)
  return length
}

/** Returns the hash of a value's JSON. It depends on the order of the keys. */
const jsonHash = (value: unknown): number => {
  if (typeof value !== "object" || value === null) return hashOfText(jsonOf(value))
  const hash = hashes.get(value) ?? hashOfText(jsonOf(value))
  hashes.set(value, hash)
  return hash
}

/**
 * Returns the hash of the fields of an object. The items of lists are hashed one by one, so that items whose hashes are known cost
 * little. Equal objects with the same order of their keys have the same hash; others almost never do.
 */
export const fieldsHash = (fields: Readonly<Record<string, unknown>>): number =>
  hashOfText(
    Object.entries(fields)
      .map(([key, value]) => `${key}:${Array.isArray(value) ? value.map(jsonHash).join() : jsonHash(value)}`)
      .join(";"),
  )
