/**
 * Finds regular expressions that take exponential time on some texts. A `tokenizer.json` of somebody else holds expressions,
 * and JavaScript has no limit on the time of a match: `(a+)+$` takes minutes for 40 characters. Such an expression repeats a
 * part that itself repeats something or has alternatives. Those of published tokenizers do not.
 *
 * @example
 * ```ts
 * patternProblem("(a+)+$") // "a repeated group has a repetition or alternatives inside"
 * patternProblem("\\s+(?!\\S)|\\s+") // undefined
 * ```
 */
import { isPlain } from "../config/plain.ts"

/** Published expressions have a few hundred characters. */
const mostCharacters = 4096
/** A group may be repeated so often at most if it holds a repetition, such as the optional one `(?:'s|'t)?`. */
const fewTimes = 3

/** Returns how often a quantifier at the beginning of a text repeats at most; undefined if there is none. */
const repetitions = (rest: string): number | undefined => {
  const [, sign, least, comma, most] = /^(?:([*+?])|\{(\d+)(,?)(\d*)\})/.exec(rest) ?? []
  if (sign !== undefined) return sign === "?" ? 1 : Infinity
  if (least === undefined) return undefined
  if (comma === "") return Number(least)
  return most === "" ? Infinity : Number(most)
}

/** Returns the place behind a class of characters that begins at `start`; classes can hold others. */
const endOfClass = (pattern: string, start: number): number => {
  let depth = 0
  for (let at = start; at < pattern.length; at++) {
    if (pattern[at] === "\\") at++
    else if (pattern[at] === "[") depth++
    else if (pattern[at] === "]" && --depth === 0) return at + 1
  }
  return pattern.length
}

/** Returns why an expression is refused; undefined if it is not. */
export const patternProblem = (pattern: string): string | undefined => {
  if (pattern.length > mostCharacters) return `it has ${pattern.length} characters, more than ${mostCharacters}`
  /** For each open group, whether it holds a repetition or alternatives. */
  const groups: Array<boolean> = [false]
  let at = 0
  while (at < pattern.length) {
    let holds = false
    const character = pattern[at]
    if (character === "\\")
      at += /^\\[pPux]\{/.test(pattern.slice(at, at + 3)) ? pattern.slice(at).indexOf("}") + 1 || 2 : 2
    else if (character === "[") at = endOfClass(pattern, at)
    else if (character === "(") {
      groups.push(false)
      // What follows, such as `?:` and `?<!`, is no quantifier.
      at += pattern[at + 1] === "?" ? 2 : 1
      continue
    } else {
      if (character === "|") groups[groups.length - 1] = true
      if (character === ")") holds = groups.pop() ?? false
      at++
    }
    const times = repetitions(pattern.slice(at, at + 24))
    if (holds && times !== undefined && times > fewTimes) {
      return "a repeated group has a repetition or alternatives inside, which can take minutes for a short text"
    }
    if (groups.length === 0) return undefined
    // A fixed number of repetitions, such as the three digits of `(\d{3})+`, leaves no choice.
    const isChoice = times !== undefined && !/^\{\d+\}/.test(pattern.slice(at, at + 24))
    if (holds || isChoice) groups[groups.length - 1] = true
  }
  return undefined
}

/** Returns the first expression in the settings of a tokenizer that is refused, with the reason. */
export const slowPatternIn = (value: unknown): string | undefined => {
  const items: ReadonlyArray<unknown> = Array.isArray(value) ? value : isPlain(value) ? Object.values(value) : []
  const pattern = isPlain(value) ? value.Regex : undefined
  const problem = typeof pattern === "string" ? patternProblem(pattern) : undefined
  if (problem !== undefined)
    return `the regular expression ${JSON.stringify(String(pattern).slice(0, 100))}: ${problem}`
  for (const item of items) {
    const inside = slowPatternIn(item)
    if (inside !== undefined) return inside
  }
  return undefined
}
