/** Reads JSON files of other programs, which may hold anything, or be cut off. */

/** Parses a JSON text; undefined if it is invalid, such as half a file. */
export const parsed = (text: string | undefined): unknown => {
  if (text === undefined) return undefined
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Returns the fields of an object; none for other values. */
export const fields = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null ? { ...value } : {}

export const finite = (value: unknown): number | null =>
  typeof value === "number" && Number.isFinite(value) ? value : null
