/** Reads JSON files of other programs, which may hold anything, or half of it. */

/** The value of a JSON text; undefined where it is not JSON, such as half a file. */
export const parsed = (text: string | undefined): unknown => {
  if (text === undefined) return undefined
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** The fields of an object; of any other value none. */
export const fields = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null ? { ...value } : {}

export const finite = (value: unknown): number | null =>
  typeof value === "number" && Number.isFinite(value) ? value : null
