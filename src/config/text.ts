/** Joins the lines of a text into one, for messages. */
export const oneLine = (text: string): string => text.trim().replace(/\s*\n\s*/g, "; ")

/** Returns the message of a thrown value in one line. */
export const messageOf = (error: unknown): string => oneLine(error instanceof Error ? error.message : String(error))

/** Shortens a text of any length, for messages. */
export const shortened = (text: string, most = 60): string =>
  text.length > most ? `${text.slice(0, most - 3)}…` : text

/** Shows an error with its name; its message may be of any length. */
export const shownError = (error: Error): string => shortened(`${error.name}: ${oneLine(error.message)}`, 1000)

/** Converts a value to JSON, for messages; undefined for values without JSON, such as a function or a cycle. */
export const jsonOf = (value: unknown, replace?: (key: string, item: unknown) => unknown): string | undefined => {
  try {
    return JSON.stringify(value, replace)
  } catch {
    return undefined
  }
}

/** Parses JSON; undefined for other texts. */
export const parsedJson = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Converts a value to JSON for files that people read: indented, with a line feed at the end. */
export const prettyJson = (value: unknown): string => `${JSON.stringify(value, null, 2)}\n`
