/** Trees of keys and values, and the two spellings of a key. This module imports nothing, so that the web page can load it. */

export type Plain = { readonly [key: string]: unknown }

export const isPlain = (value: unknown): value is Plain =>
  typeof value === "object" &&
  value !== null &&
  (Object.getPrototypeOf(value) === Object.prototype || Object.getPrototypeOf(value) === null)

/** Converts a key to camelCase: `lambda_` becomes `lambda`. Keys that begin with an underscore (`_tag`) are kept. */
export const camelCase = (key: string): string =>
  key.startsWith("_")
    ? key
    : key.replace(/_+([a-z0-9])/g, (_, letter: string) => letter.toUpperCase()).replace(/_+$/, "")

/** Converts a key to snake_case. Keys that begin with an underscore, such as `_tag`, are kept. */
export const snakeCase = (key: string): string =>
  key.startsWith("_") ? key : key.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
