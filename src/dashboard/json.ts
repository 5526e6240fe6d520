/** Reads JSON files that other programs wrote, which may be incomplete or hold any value. */

/** Parses a JSON text; undefined if it is invalid, such as the first half of a file. */
export const parsed = (text: string | undefined): unknown => {
  if (text === undefined) return undefined
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Returns the fields of an object; an object without fields for other values. */
export const fields = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null ? { ...value } : {}

export const finite = (value: unknown): number | null =>
  typeof value === "number" && Number.isFinite(value) ? value : null
