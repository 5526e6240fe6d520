/** Reads the limits of the lengths of strings and arrays. */
import type { Plain } from "../../base/config/plain.ts"
import { formatError } from "./Network.ts"

/** The largest length of a string and of an array with a limit. A larger limit is treated as this one. */
const mostCounted = 4096

interface LengthKeys {
  readonly least: string
  readonly most: string
}

export interface Lengths {
  readonly least: number
  /** Infinite if the schema has no limit. */
  readonly most: number
}

/** Reads the limits that the keys of a schema set. */
export const lengthsOf = (schema: Plain, keys: LengthKeys, path: string): Lengths => {
  const lengthOf = (key: string, standard: number): number => {
    const value = schema[key]
    if (value === undefined) return standard
    if (typeof value !== "number" || !Number.isInteger(value) || value < 0)
      throw formatError(`${path}.${key}`, "expected a whole number of at least 0")
    return value
  }
  const least = lengthOf(keys.least, 0)
  if (least > mostCounted) throw formatError(`${path}.${keys.least}`, `expected at most ${mostCounted}, found ${least}`)
  return { least, most: lengthOf(keys.most, Infinity) }
}

/** Returns the largest length that is told apart from longer ones. */
export const countedLength = ({ least, most }: Lengths): number => Math.min(most, Math.max(least, mostCounted))
