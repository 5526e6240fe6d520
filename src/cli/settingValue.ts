import { parse } from "yaml"

/** A value as the command line takes it: YAML, in whose numbers there may be underscores between digits. */
export const settingValue = (text: string): unknown => {
  const plain = /^[-+]?\d[\d_]*(\.[\d_]+)?(e[-+]?\d+)?$/i.test(text) ? text.replaceAll("_", "") : text
  return asNumber(plain) ?? parse(plain)
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
