/** Text of several lines as one, for messages. */
export const oneLine = (text: string): string => text.trim().replace(/\s*\n\s*/g, "; ")

/** What was thrown, in a line. */
export const messageOf = (error: unknown): string => oneLine(error instanceof Error ? error.message : String(error))

/** A text of a message that may be of any length, cut to what fits into a line. */
export const shortened = (text: string, most = 60): string =>
  text.length > most ? `${text.slice(0, most - 3)}…` : text

/** An error with its name, for a message; its own message may be of any length. */
export const shownError = (error: Error): string => shortened(`${error.name}: ${oneLine(error.message)}`, 1000)

/** JSON for a message; undefined for what JSON doesn't know, such as a function or an object that holds itself. */
export const jsonOf = (value: unknown, replace?: (key: string, item: unknown) => unknown): string | undefined => {
  try {
    return JSON.stringify(value, replace)
  } catch {
    return undefined
  }
}

/** JSON for files that people read: indented, with a line feed at the end. */
export const prettyJson = (value: unknown): string => `${JSON.stringify(value, null, 2)}\n`

/** Describes a value in a few words, for messages. */
export const describe = (value: unknown): string => {
  if (value === undefined) return "nothing"
  if (typeof value === "function") return "a function"
  if (typeof value === "number" || typeof value === "bigint") return String(value)
  if (value instanceof Promise) return "a promise"
  return shortened(jsonOf(value) ?? `a ${typeof value}`)
}
