import { parseYaml } from "../../config/yaml.ts"

/**
 * A value as the command line takes it: YAML, in whose numbers there may be underscores between digits. Throws an Error
 * with a line for people where it is none.
 */
export const settingValue = (text: string): unknown => {
  const plain = /^[-+]?\d[\d_]*(\.[\d_]+)?(e[-+]?\d+)?$/i.test(text) ? text.replaceAll("_", "") : text
  const number = asNumber(plain)
  if (number !== undefined) return number
  const found = parseYaml(plain)
  if ("problem" in found) throw new Error(found.problem)
  return found.value
}

/** YAML spells these .nan and .inf; people don't. */
const asNumber = (text: string): number | undefined =>
  /^nan$/i.test(text)
    ? NaN
    : /^[-+]?inf(inity)?$/i.test(text)
      ? text.startsWith("-")
        ? -Infinity
        : Infinity
      : undefined
