/** Writes the characters of a bundle that are not ASCII as escapes. V8 keeps a text with other characters in two bytes each, and reads it more slowly. */
import type { Plugin } from "rolldown"

/** Matches a template whose escapes would be taken literally. */
const raw = /String\.raw`[^`]*[^\0-\x7f][^`]*`/

const escaped = (character: string): string => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`

/**
 * The plugin that does so. In code, escapes mean the same in names, strings, templates and regular expressions; in comments
 * they mean nothing.
 */
export const ascii: Plugin = {
  name: "ascii",
  // Not `renderChunk`: what it returns is parsed and printed again, without escapes.
  generateBundle(_, bundle) {
    for (const chunk of Object.values(bundle)) {
      if (chunk.type !== "chunk") continue
      const found = raw.exec(chunk.code)
      if (found !== null) throw new Error(`${chunk.fileName}: a raw template must be of ASCII alone: ${found[0]}`)
      // The map of sources stays as it is: it only counts some columns of these lines wrongly.
      chunk.code = chunk.code.replace(/[^\0-\x7f]/g, escaped)
    }
  },
}
