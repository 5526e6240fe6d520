/** Text of several lines as one, for messages. */
export const oneLine = (text: string): string => text.trim().replace(/\s*\n\s*/g, "; ")

/** What was thrown, in a line. */
export const messageOf = (error: unknown): string => oneLine(error instanceof Error ? error.message : String(error))
