/** A value in a few words, for messages. */
export const describe = (value: unknown): string => {
  if (value === undefined) return "nothing"
  if (typeof value === "function") return "a function"
  if (typeof value === "number" || typeof value === "bigint") return String(value)
  const text = JSON.stringify(value) ?? `a ${typeof value}`
  return text.length > 60 ? `${text.slice(0, 57)}…` : text
}
