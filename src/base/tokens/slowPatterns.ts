/**
 * Finds regular expressions that take very long on some texts. Somebody else's `tokenizer.json` contains expressions,
 * and JavaScript does not limit the time of a match: `(a+)+$` takes minutes for 40 characters, and so do
 * `a*a*a*a*a*a*b` and twenty times `a?`. An expression is refused if the work at one place of a text can grow faster
 * than the text's length. The expressions of published tokenizers pass.
 *
 * It reads JavaScript's syntax with the flag `u`, to which the library converts the syntax of tokenizers.
 *
 * @example
 * ```ts
 * patternProblem("(a+)+$") // "a repeated group has a repetition or alternatives inside, …"
 * patternProblem("\\s+(?!\\S)|\\s+") // undefined
 * ```
 */
import { FormatError } from "../formats/FormatError.ts"

/** The largest length of an expression. Published expressions have a few hundred characters. */
const mostCharacters = 4096
const deepestGroups = 64
/**
 * The largest work at one place of a text: a constant part, and a part per character of the text. Published expressions
 * need 15,000 and 100.
 */
const mostWork = [2 ** 15, 512] as const

/** An amount of work or a count: at most `factor` times the text's length to the power of `degree`. */
interface Amount {
  readonly factor: number
  readonly degree: number
}

const amount = (factor: number, degree = 0): Amount => ({ factor, degree })
const zero = amount(0)
const one = amount(1)
const times = (a: Amount, b: Amount): Amount =>
  a.factor === 0 || b.factor === 0 ? zero : amount(a.factor * b.factor, a.degree + b.degree)
const sum = (...all: ReadonlyArray<Amount>): Amount =>
  all.reduce((a, b) => amount(a.factor + b.factor, Math.max(a.degree, b.degree)), zero)

/** The cost of matching a part of an expression at one place of a text. */
interface Cost {
  /** The number of ways in which the part can match. All are tried if the rest of the expression does not match. */
  readonly ways: Amount
  /** The work of trying all ways to match. */
  readonly all: Amount
  /**
   * The work until the part turns out not to match. If nothing that can fail follows, only this is needed, since the
   * first match is final.
   */
  readonly fails: Amount
  /** The work until the part matches once, or turns out not to match. */
  readonly once: Amount
  readonly canFail: boolean
}

const character: Cost = { ways: one, all: one, fails: one, once: one, canFail: true }

const sequence = (parts: ReadonlyArray<Cost>): Cost => {
  const last = parts.findLastIndex(({ canFail }) => canFail)
  let [ways, all, before, fails] = [one, zero, zero, zero]
  for (const [index, part] of parts.entries()) {
    if (index < last) before = sum(before, times(ways, part.all))
    if (index === last) fails = sum(before, times(ways, part.fails))
    all = sum(all, times(ways, part.all))
    ways = times(ways, part.ways)
  }
  const once = sum(fails, ...parts.slice(Math.max(last, 0)).map((part) => part.once))
  return { ways, all, fails, once, canFail: last >= 0 }
}

const alternatives = (parts: ReadonlyArray<Cost>): Cost => {
  const added = (key: "ways" | "all" | "fails" | "once"): Amount => sum(...parts.map((part) => part[key]))
  return {
    ways: added("ways"),
    all: added("all"),
    fails: added("fails"),
    once: added("once"),
    canFail: parts.every(({ canFail }) => canFail),
  }
}

/**
 * Returns the cost of a lookahead or lookbehind, which is matched only once. A lookbehind is matched from right to
 * left.
 */
const looking = (inside: Cost, isBehind: boolean): Cost => {
  const work = isBehind ? times(inside.ways, inside.all) : inside.once
  return { ways: one, all: work, fails: work, once: work, canFail: true }
}

const slow = (problem: string): never => {
  throw new FormatError({ message: problem })
}

const endless = amount(1, Infinity)

const repeated = (part: Cost, least: number, most: number): Cost => {
  const isSingle = part.ways.factor <= 1 && part.ways.degree === 0
  const rounds = most === Infinity ? amount(1, 1) : amount(most)
  const canFail = least > 0 && part.canFail
  const once = sum(times(rounds, part.all), times(amount(least), part.all))
  const first = least === 0 ? zero : part.fails
  if (isSingle) {
    const ways = most === Infinity ? rounds : amount(most - least + 1)
    return { ways, all: once, fails: least > 1 ? once : first, once, canFail }
  }
  let [power, ways, all] = [one, zero, zero]
  for (let count = 0; count <= most; count++) {
    if (power.factor > mostWork[0] || power.degree > 1) {
      ways = all = endless
      break
    }
    if (count >= least) ways = sum(ways, power)
    if (count < most) all = sum(all, times(power, part.all))
    power = times(power, part.ways)
  }
  // After a round matches, it is tried in other ways only if a later round must match, too.
  return { ways, all, fails: least > 1 ? all : first, once: least > 1 ? all : once, canFail }
}

const problemOf = ({ factor, degree }: Amount): string | undefined => {
  if (degree === Infinity)
    return "a repeated group has a repetition or alternatives inside, which can take minutes for a short text"
  return degree <= 1 && factor <= mostWork[degree]
    ? undefined
    : "it can match a short text in very many ways, which can take minutes"
}

/** Reads an expression of JavaScript with the flag `u`, and adds up its cost. */
class PatternReader {
  private at = 0
  private depth = 0
  private readonly pattern: string

  constructor(pattern: string) {
    this.pattern = pattern
  }

  /** Reads alternatives up to the end of their group. */
  group(): Cost {
    if (++this.depth > deepestGroups) slow(`it has more than ${deepestGroups} groups inside each other`)
    const branches: Array<Cost> = []
    let parts: Array<Cost> = []
    for (; this.at < this.pattern.length && this.pattern[this.at] !== ")";) {
      if (this.pattern[this.at] === "|") {
        this.at++
        branches.push(sequence(parts))
        parts = []
      } else parts.push(this.quantified(this.part()))
    }
    this.at++
    this.depth--
    return alternatives([...branches, sequence(parts)])
  }

  private taken(expression: RegExp): string | undefined {
    expression.lastIndex = this.at
    const [text] = expression.exec(this.pattern) ?? []
    this.at += text?.length ?? 0
    return text
  }

  private part(): Cost {
    const opening = this.taken(/\((?:\?(?:<?[=!]|<[^>]*>|[a-z-]*:))?/y)
    if (opening !== undefined) {
      const inside = this.group()
      return /[=!]$/.test(opening) ? looking(inside, opening.includes("<")) : inside
    }
    if (/\\[1-9k]/y.test(this.pattern.slice(this.at, this.at + 2))) slow("it refers to what a group has matched")
    if (this.taken(/\\[pPu]\{[^}]*\}|\\[^]|\[(?:\\[^]|[^\]\\])*\]/y) === undefined) this.at++
    return character
  }

  private quantified(part: Cost): Cost {
    const text = this.taken(/(?:[*+?]|\{\d+(?:,\d*)?\})\??/y)
    if (text === undefined) return part
    const [least, most = least] = text.match(/\d+|(?<=,)(?=\})/g) ?? []
    if (least === undefined) return repeated(part, text[0] === "+" ? 1 : 0, text[0] === "?" ? 1 : Infinity)
    return repeated(part, Number(least), most === "" ? Infinity : Number(most))
  }
}

/** Returns why an expression is refused; undefined if it is not. */
export const patternProblem = (pattern: string): string | undefined => {
  if (pattern.length > mostCharacters) return `it has ${pattern.length} characters, more than ${mostCharacters}`
  try {
    return problemOf(new PatternReader(pattern).group().once)
  } catch (error) {
    if (error instanceof FormatError) return error.message
    throw error
  }
}

/** Returns the first refused expression in a part of the library's tokenizer, with the reason. */
export const slowPatternIn = (value: unknown): string | undefined => {
  const waiting = [value]
  const seen = new Set<unknown>()
  for (const one of waiting) {
    // The library's parts are functions with properties, so walk over functions as well as objects.
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
