/**
 * Finds the first name that occurs twice in one object of a JSON text; undefined if there is none. `JSON.parse`
 * silently takes the last value and some readers take the first, so such a text is ambiguous: `safetensors.ts` refuses
 * headers that have one. The text must be valid JSON.
 *
 * @example
 * ```ts
 * repeatedKey(`{"a":{"b":1},"b":{"c":1,"c":2}}`) // "c"
 * ```
 */
export const repeatedKey = (text: string): string | undefined => {
  /** An entry for each object and list that is not closed yet: the object's names so far, or undefined for a list. */
  const open: Array<Set<string> | undefined> = []
  /** The last string that was read, with its quotes; it is a name if a colon follows. */
  let last = ""
  for (let at = 0; at < text.length; at++) {
    const character = text[at]
    if (character === "{") open.push(new Set())
    else if (character === "[") open.push(undefined)
    else if (character === "}" || character === "]") open.pop()
    else if (character === `"`) {
      const end = endOfString(text, at)
      last = text.slice(at, end + 1)
      at = end
    } else if (character === ":") {
      // The same name can be written with different escapes, so compare names after parsing.
      const name: unknown = JSON.parse(last)
      const names = open.at(-1)
      if (typeof name !== "string" || names === undefined) continue
      if (names.has(name)) return name
      names.add(name)
    }
  }
  return undefined
}

/** Returns the position of the closing quote of the string that begins at `start`. */
const endOfString = (text: string, start: number): number => {
  for (let at = start + 1; at < text.length; at++) {
    if (text[at] === "\\") at++
    else if (text[at] === `"`) return at
  }
  return text.length
}
