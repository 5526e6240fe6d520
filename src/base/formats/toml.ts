/**
 * Parses TOML, for all modules. The result is plain data, as from YAML, with the line of each key for messages. This
 * module reads no files: callers pass the text.
 */
import { Effect } from "effect"
import { parse, TomlError } from "smol-toml"
import { ConfigError } from "../config/Config.ts"
import { isDeeper, messageOf } from "../text/text.ts"
import type { YamlDocument } from "../config/yaml.ts"

/** The largest depth of nested arrays and tables. */
const deepest = 100
const tooDeep = `expected at most ${deepest} arrays and tables inside each other, found more`

/**
 * Parses a TOML text into plain data; fails with a `ConfigError` that names the source and the line.
 *
 * @example
 * ```ts
 * const { value, keyLineOf } = yield* readTomlText("[lora]\nrank = 8", "orch.toml")
 * // value: { lora: { rank: 8 } }; keyLineOf(["lora", "rank"]): 2
 * ```
 */
export const readTomlText = (
  text: string,
  source: string,
): Effect.Effect<Pick<YamlDocument, "value" | "keyLineOf">, ConfigError> =>
  Effect.suspend(() => {
    try {
      const value = parse(text, { maxDepth: deepest })
      // The library's limit does not count the parts of keys, such as a.b.c = 1.
      if (isDeeper(value, deepest)) return Effect.fail(ConfigError.at({ source }, "", tooDeep))
      return Effect.succeed({ value, keyLineOf: keyLinesOf(text) })
    } catch (error) {
      const place = error instanceof TomlError ? `${source}:${error.line}` : source
      // Keep only the problem: the library's message also repeats the line of the text, with a mark below it.
      const [problem] = messageOf(error).replace("Invalid TOML document: ", "").split("; ")
      return Effect.fail(ConfigError.at({ source: place }, "", `expected TOML: ${problem}`))
    }
  })

/** The longest key, with its table, whose line is kept. */
const longestKey = 1000

/** Matches the beginning of a line without spaces around it. Neither pattern can match a text in two ways. */
const header = /^\[{1,2}([^\]]+)\]/
const assignment = /^[A-Za-z0-9_."' \t-]+(?==)/

const partsOf = (key: string): ReadonlyArray<string> =>
  key.split(".").map((part) => part.trim().replace(/^["']|["']$/g, ""))

/**
 * Returns the function that finds the line of a key. The lines only serve messages, so the text is searched for tables
 * (`[lora]`) and assignments (`rank = 8`) without a full parse.
 */
const keyLinesOf = (text: string): YamlDocument["keyLineOf"] => {
  const lines = new Map<string, number>()
  let table = ""
  for (const [index, untrimmed] of text.split("\n").entries()) {
    const line = untrimmed.trim()
    const [, name] = header.exec(line) ?? []
    const [key] = assignment.exec(line) ?? []
    if (name !== undefined) table = `${name}.`
    const whole = name ?? (key === undefined ? "" : table + key)
    const path = whole === "" || whole.length > longestKey ? [] : partsOf(whole)
    for (let length = 1; length <= path.length; length++) {
      const place = path.slice(0, length).join("\0")
      if (!lines.has(place)) lines.set(place, index + 1)
    }
  }
  return (path) => lines.get(path.join("\0"))
}
