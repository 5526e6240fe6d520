/** Reads values from JSON texts that may be incomplete, or that another program may have written with other fields. */
import { parsedJson } from "../../base/text/text.ts"

/** Parses a JSON text; undefined if it is invalid, for example because a file was only half written. */
export const parsed = (text: string | undefined): unknown => (text === undefined ? undefined : parsedJson(text))

/** Returns the fields of an object; for any other value, an object without fields. */
export const fields = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null ? { ...value } : {}

/** Returns a finite number unchanged, and null for any other value. */
export const finite = (value: unknown): number | null =>
  typeof value === "number" && Number.isFinite(value) ? value : null
