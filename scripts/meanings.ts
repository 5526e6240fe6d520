/**
 * Reads the meanings of settings: the comments on the fields of the Schemas in src/. The scripts put them into
 * docs/settings.md and schemas/. The fields are found by regular expressions, so they must be formatted by oxfmt.
 */
import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"

/** The comment on each field, by the name of the field. */
export type Meanings = ReadonlyMap<string, string>

const root = fileURLToPath(new URL("..", import.meta.url))

/** Reads a source file by its path in the repository. */
export const read = (file: string): string => readFileSync(`${root}/${file}`, "utf8")

/** Finds the comments on fields in source texts. Of several comments on fields of the same name, the first is used. */
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

/** Reads the comments on the fields of a constant, which holds a Schema or fields. */
export const meaningsOf = (file: string, name: string): Meanings => meaningsIn([schemaIn(file, name)])
