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

/** The largest number of words whose beginnings are compared with each other. */
const mostWords = 64

/** Returns how many characters two words have in common at their beginnings. */
const commonOf = (a: string, b: string): number => {
  let length = 0
  while (length < a.length && a[length] === b[length]) length++
  return length
}

/**
 * Returns the alternatives of a group that only contains words, such as `q_proj|v_proj`; undefined if it contains anything
 * else, or a word that begins with another, because then several of them can match at one place.
 */
const wordsOf = (pattern: string): ReadonlyArray<string> | undefined => {
  if (!/^\w+(?:\|\w+)+$/.test(pattern)) return undefined
  const words = pattern.toLowerCase().split("|")
  const isClear = words.every((word, at) => words.every((other, index) => at === index || !other.startsWith(word)))
  return words.length <= mostWords && isClear ? words : undefined
}

/** Returns the cost of words of which at most one can match: of each, only the part that it shares with another is tried. */
const costOfWords = (words: ReadonlyArray<string>): Cost => {
  const shared = words.map((word) => Math.max(...words.map((other) => (other === word ? 0 : commonOf(word, other)))))
  const longest = Math.max(...words.map(({ length }) => length))
  const all = amount(shared.reduce((total, length) => total + length + 1, longest))
  return { ways: one, all, fails: all, once: all, canFail: true }
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

/** The largest work of matching a text whose length is known, in steps. */
const mostSteps = 2 ** 23

/** Returns in how many ways a text of `length` characters can be cut into `degree` parts and a rest. */
const cutsOf = (length: number, degree: number): number => {
  let cuts = 1
  for (let part = 1; part <= degree && cuts <= mostSteps; part++) cuts *= (length + part) / part
  return cuts
}

const problemOf = ({ factor, degree }: Amount, longestText: number | undefined): string | undefined => {
  if (degree === Infinity)
    return "a repeated group has a repetition or alternatives inside, which can take minutes for a short text"
  const isFast =
    longestText === undefined
      ? degree <= 1 && factor <= mostWork[degree]
      : factor * cutsOf(longestText, degree) <= mostSteps
  return isFast ? undefined : "it can match a short text in very many ways, which can take minutes"
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
    const start = this.at
    for (; this.at < this.pattern.length && this.pattern[this.at] !== ")";) {
      if (this.pattern[this.at] === "|") {
        this.at++
        branches.push(sequence(parts))
        parts = []
      } else parts.push(this.quantified(this.part()))
    }
    const words = wordsOf(this.pattern.slice(start, this.at))
    this.at++
    this.depth--
    return words === undefined ? alternatives([...branches, sequence(parts)]) : costOfWords(words)
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

/**
 * Returns why an expression is refused; undefined if it is not. If it is only matched from the beginning of texts of at
 * most `longestText` characters, it may take more work at one place.
 */
export const patternProblem = (pattern: string, longestText?: number): string | undefined => {
  if (pattern.length > mostCharacters) return `it has ${pattern.length} characters, more than ${mostCharacters}`
  try {
    return problemOf(new PatternReader(pattern).group().once, longestText)
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
    if (!(one instanceof RegExp)) for (const part of Object.values(one)) waiting.push(part)
    else {
      const problem = patternProblem(one.source)
      if (problem !== undefined) return `the regular expression ${JSON.stringify(one.source.slice(0, 100))}: ${problem}`
    }
  }
  return undefined
}
