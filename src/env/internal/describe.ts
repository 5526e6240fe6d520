import { jsonOf, shortened } from "../../config/text.ts"

/** A value in a few words, for messages. */
export const describe = (value: unknown): string => {
  if (value === undefined) return "nothing"
  if (typeof value === "function") return "a function"
  if (typeof value === "number" || typeof value === "bigint") return String(value)
  if (value instanceof Promise) return "a promise"
  return shortened(jsonOf(value) ?? `a ${typeof value}`)
}
