import { Effect } from "effect"
import { parse } from "yaml"
import type { Override } from "../config/Config.ts"
import { UsageError } from "./UsageError.ts"

/** `key.path=value`, the value as YAML has it; numbers may have underscores between digits. */
export const setting = (text: string): Effect.Effect<Override, UsageError> => {
  const at = text.indexOf("=")
  if (at < 1) return Effect.fail(new UsageError({ message: `--set ${text}: expected key.path=value` }))
  const raw = text.slice(at + 1)
  const plain = /^[-+]?\d[\d_]*(\.[\d_]+)?(e[-+]?\d+)?$/i.test(raw) ? raw.replaceAll("_", "") : raw
  return Effect.try({
    try: () => ({ path: text.slice(0, at), value: asNumber(plain) ?? parse(plain), source: "--set" }),
    catch: () => new UsageError({ message: `--set ${text}: the value is not valid YAML` }),
  })
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
