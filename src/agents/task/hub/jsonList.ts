/**
 * Splits a JSON list into its items without parsing the whole list, because parsed small items need many times their size in
 * memory.
 */

const [quote, backslash, comma, openList, openObject, closeList, closeObject] = Array.from('"\\,[{]}', (character) =>
  character.charCodeAt(0),
)
const isSpace = (byte: number): boolean => byte === 32 || byte === 10 || byte === 13 || byte === 9

/**
 * Calls `emit` with the bytes of each item, until it returns false. Returns whether the bytes are a single list. The items
 * themselves are not checked.
 */
export const eachItem = (bytes: Uint8Array, emit: (item: Uint8Array) => boolean): boolean => {
  let at = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? 3 : 0
  while (isSpace(bytes[at])) at++
  if (bytes[at] !== openList) return false
  let depth = 1
  let isInText = false
  let start = at + 1
  let items = 0
  for (at++; at < bytes.length && depth > 0; at++) {
    const byte = bytes[at]
    if (isInText) {
      if (byte === backslash) at++
      else if (byte === quote) isInText = false
      continue
    }
    if (byte === quote) isInText = true
    else if (byte === openList || byte === openObject) depth++
    else if (byte === closeList || byte === closeObject) depth--
    if (depth > 1 || (depth === 1 && byte !== comma)) continue
    const item = bytes.subarray(start, at)
    const isEmptyList = depth === 0 && items === 0 && item.every(isSpace)
    if (!isEmptyList && !emit(item)) return false
    items++
    start = at + 1
  }
  return depth === 0 && bytes.subarray(at).every(isSpace)
}
