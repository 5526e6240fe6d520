/**
 * Reads the meanings of settings, which are the comments on their fields in src/, for docs/settings.md and schemas/.
 */
import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"

/** The comment on each field, by the name of the field. */
export type Meanings = ReadonlyMap<string, string>

const root = fileURLToPath(new URL("..", import.meta.url))
export const read = (file: string): string => readFileSync(`${root}/${file}`, "utf8")

/** Finds the comments on fields in source texts. For several fields of the same name, it returns the first comment. */
export const meaningsIn = (texts: ReadonlyArray<string>): Meanings => {
  const meanings = new Map<string, string>()
  for (const text of texts) {
    for (const [, comment, key] of text.matchAll(/\/\*\*\s+(?:\* )?((?:(?!\*\/)[^])*?)\s+\*\/\n {2}(\w+): /g)) {
      if (!meanings.has(key)) meanings.set(key, comment.replace(/\s*\n\s*\* ?/g, " "))
    }
  }
  return meanings
}

/** Returns the source text of a constant that holds a Schema or fields; empty if the file has no such constant. */
export const schemaIn = (file: string, name: string): string =>
  read(file)
    .split(`const ${name} = `)[1]
    ?.split(/\n(?:export |const )/)[0] ?? ""

export const meaningsOf = (file: string, name: string): Meanings => meaningsIn([schemaIn(file, name)])
