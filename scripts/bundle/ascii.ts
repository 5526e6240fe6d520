/**
 * Escapes the characters of bundles that are not ASCII. A single one of them makes V8 keep the whole text in two bytes a
 * character, and read it more slowly.
 */
import type { Plugin } from "rolldown"
import { parseAst } from "rolldown/parseAst"

const escaped = (character: string): string => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`

const isAscii = (text: string): boolean => !/[^\0-\x7f]/.test(text)

/** Lists the ranges of the tagged templates in a syntax tree. Their tags may read the text with its escapes. */
const taggedIn = (node: unknown): ReadonlyArray<readonly [number, number]> => {
  if (typeof node !== "object" || node === null) return []
  if ("type" in node && node.type === "TaggedTemplateExpression" && "start" in node && "end" in node)
    return [[Number(node.start), Number(node.end)]]
  return Object.values(node).flatMap(taggedIn)
}

/** Escapes the characters of a program, or fails where that would change what it does. */
const toAscii = (code: string, fileName: string): string => {
  if (isAscii(code)) return code
  const refuse = (what: string, found: string): never => {
    throw new Error(`${fileName}: ${what} must be ASCII: ${found.slice(0, 200)}`)
  }
  const afterBackslash = /.*\\[^\0-\x7f].*/.exec(code)
  if (afterBackslash !== null) refuse("what follows a backslash", afterBackslash[0])
  for (const [start, end] of taggedIn(parseAst(code))) {
    const template = code.slice(start, end)
    if (!isAscii(template)) refuse("a tagged template", template)
  }
  const ascii = code.replace(/[^\0-\x7f]/g, escaped)
  // This fails if an escape stands where only the character itself may.
  parseAst(ascii)
  return ascii
}

/** The plugin that escapes the characters of all files. The maps of sources then count some columns of these lines wrongly. */
export const ascii: Plugin = {
  name: "ascii",
  // The hook `renderChunk` comes too early: the bundler prints its result once more, without the escapes.
  generateBundle(_, bundle) {
    for (const chunk of Object.values(bundle)) {
      if (chunk.type === "chunk") chunk.code = toAscii(chunk.code, chunk.fileName)
    }
  },
}
