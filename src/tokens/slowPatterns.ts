/**
 * Finds regular expressions that take exponential time on some texts. A `tokenizer.json` of somebody else holds expressions,
 * and JavaScript has no limit on the time of a match: `(a+)+$` takes minutes for 40 characters. Such an expression repeats a
 * part that itself repeats something or has alternatives, or has many repetitions in a row. Those of published tokenizers do
 * not. The expressions are those of JavaScript, with the flag `u`: tokenizers have another syntax, which the library rewrites.
 *
 * @example
 * ```ts
 * patternProblem("(a+)+$") // "a repeated group has a repetition or alternatives inside, …"
 * patternProblem("\\s+(?!\\S)|\\s+") // undefined
 * ```
 */

/** Published expressions have a few hundred characters. */
const mostCharacters = 4096
/** A group may be repeated so often at most if it holds a repetition, such as the optional one `(?:'s|'t)?`. */
const fewTimes = 3
/** The most repetitions in a row. Published expressions have five; each multiplies the time by the length of the text. */
const mostChoices = 8

/** An escape, a class of characters, the beginning of a group, or any other character. */
const part = /\\(?:[pPu]\{[^}]*\}|[^])|\[(?:\\[^]|[^\]\\])*\]|\((?:\?(?:<?[=!]|<[^>]*>|[a-z-]*:))?|[^]/y
const quantifier = /(?:[*+?]|\{\d+(?:,\d*)?\})\??/y

interface Group {
  /** Whether the group only looks ahead or behind: nothing in it is tried again after it. */
  readonly looks: boolean
  /** Whether the group holds a repetition or alternatives outside of groups that only look. */
  holds: boolean
  /** The repetitions in a row, of the alternative that has the most, and of the last one. */
  most: number
  choices: number
}

const opened = (start: string): Group => ({ looks: /[=!]$/.test(start), holds: false, most: 0, choices: 0 })

const endAlternative = (group: Group): void => {
  group.most = Math.max(group.most, group.choices)
  group.choices = 0
}

/** Returns how often a quantifier repeats at most, and at least. */
const repetitions = (text: string): readonly [least: number, most: number] => {
  if (!text.startsWith("{")) return [text.startsWith("+") ? 1 : 0, text.startsWith("?") ? 1 : Infinity]
  const [, least, comma, most] = /(\d+)(,?)(\d*)/.exec(text) ?? []
  return [Number(least), comma === "" ? Number(least) : most === "" ? Infinity : Number(most)]
}

const matchAt = (expression: RegExp, text: string, at: number): string | undefined => {
  expression.lastIndex = at
  return expression.exec(text)?.[0]
}

/** Returns why an expression is refused; undefined if it is not. */
export const patternProblem = (pattern: string): string | undefined => {
  if (pattern.length > mostCharacters) return `it has ${pattern.length} characters, more than ${mostCharacters}`
  const groups = [opened("")]
  let at = 0
  while (at < pattern.length) {
    const text = matchAt(part, pattern, at) ?? pattern[at]
    at += text.length
    const group = groups[groups.length - 1]
    if (text.startsWith("(")) {
      groups.push(opened(text))
      continue
    }
    if (text === "|") {
      group.holds = true
      endAlternative(group)
      continue
    }
    const inner = text === ")" && groups.length > 1 ? groups.pop() : undefined
    const outer = groups[groups.length - 1]
    if (inner !== undefined) endAlternative(inner)
    const holds = inner !== undefined && !inner.looks && inner.holds
    const repeated = matchAt(quantifier, pattern, at) ?? ""
    at += repeated.length
    const [least, most] = repeated === "" ? [1, 1] : repetitions(repeated)
    if (holds && most > fewTimes)
      return "a repeated group has a repetition or alternatives inside, which can take minutes for a short text"
    // A fixed number of repetitions, such as the three digits of `(\d{3})+`, leaves no choice.
    const isChoice = least !== most
    outer.holds ||= holds || isChoice
    outer.choices += (inner?.most ?? 0) * Math.max(1, Math.min(most, fewTimes)) + (isChoice ? 1 : 0)
    if (outer.choices > mostChoices)
      return `more than ${mostChoices} repetitions follow each other, which can take minutes for a short text`
  }
  return undefined
}

/** Returns the first expression in a part of the library's tokenizer that is refused, with the reason. */
export const slowPatternIn = (value: unknown): string | undefined => {
  const waiting = [value]
  const seen = new Set<unknown>()
  for (const one of waiting) {
    // The parts of a tokenizer are functions with properties.
    if ((typeof one !== "object" && typeof one !== "function") || one === null || seen.has(one)) continue
    seen.add(one)
    if (!(one instanceof RegExp)) waiting.push(...Object.values(one))
    else {
      const problem = patternProblem(one.source)
      if (problem !== undefined) return `the regular expression ${JSON.stringify(one.source.slice(0, 100))}: ${problem}`
    }
  }
  return undefined
}
