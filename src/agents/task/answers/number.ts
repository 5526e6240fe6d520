/** Parses numbers in plain text or LaTeX, as people and models write them. The scorers of answers use it. */
import { unboxed } from "./text.ts"

// Besides groups of three digits, groups of two are allowed, as in 12,34,567 (written so in India).
const digits = String.raw`(?:\d{1,3}(?:,\d{2,3})*,\d{3}|\d+)`
const number = String.raw`[-+]?(?:${digits}(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?`
const whole = new RegExp(`^${number}$`)
// After a digit, a letter or a bracket, "-" is a minus between two numbers, not a sign.
const within = new RegExp(
  String.raw`(?:(?<![\w.)\]}])[-+])?(?:${digits}(?:\.\d+)?|(?<![\d.])\.\d+)(?:[eE][-+]?\d+)?`,
  "g",
)

/** Removes signs and commands that only typeset a number, such as `$`, `%` and `\text{…}`, and unifies its notation. */
export const bare = (text: string): string =>
  text
    .replace(/[\u2212\u2013]/g, "-")
    .replace(/\\(?:text|mathrm|mathbf|textbf)\s*\{([^{}]*)\}/g, " $1 ")
    .replace(/\\[,;:! ]|\\quad|\\left|\\right|~/g, "")
    .replace(/\{,\}/g, ",")
    .replace(/\\\$|\$|\\%|%|\\\(|\\\)|\\\[|\\\]|\*\*/g, "")
    .replace(/[\u00a0\u202f\u2009](?=\d{3})/g, "")
    .replace(/(\d)\s*(?:\\times|×)\s*10\s*\^\s*(?:\{\s*)?([-+]?\d+)\s*\}?/g, "$1e$2")
    .trim()

const read = (text: string): number | undefined => {
  const value = Number(text.replaceAll(",", ""))
  return Number.isFinite(value) ? value : undefined
}

const fraction = new RegExp(
  String.raw`^([-+]?)\\[dt]?frac\s*(?:\{\s*(${number})\s*\}|(\d))\s*(?:\{\s*(${number})\s*\}|(\d))$`,
)
const quotient = new RegExp(String.raw`^(${number})\s*/\s*(${number})$`)

/**
 * Parses a whole text as a number; undefined if it is not one: `1,234.5`, `$3$`, `-\frac{1}{2}`, `2/3`, `1.5 \times 10^3`.
 */
export const numberOf = (text: string): number | undefined => {
  const plain = bare(unboxed(text))
  if (whole.test(plain)) return read(plain)
  const parts = fraction.exec(plain) ?? undefined
  const ratio = quotient.exec(plain)
  const top = parts === undefined ? ratio?.[1] : (parts[2] ?? parts[3])
  const bottom = parts === undefined ? ratio?.[2] : (parts[4] ?? parts[5])
  if (top === undefined || bottom === undefined) return undefined
  const value = ((parts?.[1] === "-" ? -1 : 1) * (read(top) ?? NaN)) / (read(bottom) ?? NaN)
  return Number.isFinite(value) ? value : undefined
}

/**
 * Returns the number in a text: the boxed one, otherwise the whole text, otherwise the last number in it; undefined if there
 * is none.
 */
export const lastNumber = (text: string): number | undefined => {
  // The last number is near the end, and searching a long text full of digits would be slow.
  const plain = unboxed(text).slice(-4000)
  const exact = numberOf(plain)
  if (exact !== undefined) return exact
  const spaced = bare(plain).replace(/\\[dt]?frac\s*\{\s*(\d+)\s*\}\s*\{\s*(\d+)\s*\}/g, "$1/$2")
  const ratio = /[-+]?\d+\s*\/\s*\d+(?=[^\d/]*$)/.exec(spaced)
  if (ratio !== null) return numberOf(ratio[0])
  const last = [...spaced.matchAll(within)].at(-1)
  return last === undefined ? undefined : read(last[0])
}
