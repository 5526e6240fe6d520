/** Formats settings as a Markdown table, for docs/settings.md. */
import { type Plain, snakeCase, toSnakeCase } from "../src/base/config/Config.ts"
import type { Meanings } from "./meanings.ts"

const shown = (value: unknown): string =>
  value === undefined ? "required" : `\`${JSON.stringify(toSnakeCase(value))}\``

/** Returns a table with a row for each required key and each key with a default; `texts` replaces some defaults. */
export const table = (
  defaults: Plain,
  meanings: Meanings,
  required: ReadonlyArray<string> = [],
  texts: ReadonlyMap<string, string> = new Map(),
): string => {
  const rows = [...required, ...Object.keys(defaults)].map(
    (key) => `| \`${snakeCase(key)}\` | ${texts.get(key) ?? shown(defaults[key])} | ${meanings.get(key) ?? ""} |`,
  )
  return ["| key | default | meaning |", "| --- | --- | --- |", ...rows].join("\n")
}
