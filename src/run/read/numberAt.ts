import { dataAt } from "../find/Value.ts"

/** Returns the number at a path of data; undefined if there is none. */
export const numberAt = (data: unknown, path: ReadonlyArray<string>): number | undefined => {
  const value = dataAt(data, path)
  return typeof value === "number" ? value : undefined
}
