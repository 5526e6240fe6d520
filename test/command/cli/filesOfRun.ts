import { readdirSync, readFileSync, statSync } from "node:fs"
import { join } from "node:path"
import { assert } from "vitest"
import { parse } from "yaml"
import { validator } from "../../house/validators.ts"

/** The schema of each file of a run (of each line of a jsonl file); null for a file that no schema describes. */
export type SchemaFor = ReadonlyArray<readonly [path: RegExp, schema: string | null]>

const filesIn = (folder: string): ReadonlyArray<string> =>
  readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((path) => statSync(join(folder, path)).isFile())

/** The values of a file, with where each is. */
const valuesOf = (folder: string, path: string): ReadonlyArray<readonly [string, unknown]> => {
  const text = readFileSync(join(folder, path), "utf8")
  if (!path.endsWith(".jsonl")) return [[path, parse(text)]]
  // A memory may be empty.
  const lines = text === "" ? [] : text.trimEnd().split("\n")
  return lines.map((line, index) => [`${path}:${index + 1}`, JSON.parse(line)])
}

/** Validates every file of a run; gives the schemas that were needed for that. */
export const validated = (run: string, schemaFor: SchemaFor): ReadonlySet<string> => {
  const validators = new Map<string, ReturnType<typeof validator>>()
  for (const path of filesIn(run)) {
    // `latest` is a link to another of the folders.
    if (path.startsWith("checkpoints/latest/")) continue
    const schema = schemaFor.find(([pattern]) => pattern.test(path))?.[1]
    assert.isDefined(schema, `${path}: no schema is for it`)
    if (schema === undefined || schema === null) continue
    const problem = validators.get(schema) ?? validator(schema)
    validators.set(schema, problem)
    for (const [place, value] of valuesOf(run, path)) assert.isUndefined(problem(value), place)
  }
  return new Set(validators.keys())
}

export const schemasOf = (schemaFor: SchemaFor): ReadonlyArray<string> => [
  ...new Set(schemaFor.flatMap(([, schema]) => (schema === null ? [] : [schema]))),
]
