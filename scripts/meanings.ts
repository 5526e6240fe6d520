/** Reads the meanings of settings from the comments where they are defined. */
import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"

export type Meanings = ReadonlyMap<string, string>

const root = fileURLToPath(new URL("..", import.meta.url))
export const read = (file: string): string => readFileSync(`${root}/${file}`, "utf8")

/** Reads the comments on fields, by field name; the first text with a comment wins. */
export const meaningsIn = (texts: ReadonlyArray<string>): Meanings => {
  const meanings = new Map<string, string>()
  for (const text of texts) {
    for (const [, comment, key] of text.matchAll(/\/\*\*\s+(?:\* )?((?:(?!\*\/)[^])*?)\s+\*\/\n {2}(\w+): /g)) {
      if (!meanings.has(key)) meanings.set(key, comment.replace(/\s*\n\s*\* ?/g, " "))
    }
  }
  return meanings
}

/** Returns the text of a Schema, or of other named fields, in a file. */
export const schemaIn = (file: string, name: string): string =>
  read(file)
    .split(`const ${name} = `)[1]
    ?.split(/\n(?:export |const )/)[0] ?? ""

export const meaningsOf = (file: string, name: string): Meanings => meaningsIn([schemaIn(file, name)])
