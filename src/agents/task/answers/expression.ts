/**
 * Parses mathematical expressions, in plain text or LaTeX, into functions of their variables. Two expressions count as
 * equivalent if their values agree at 24 random points, which are the same in each call. `math.ts` uses it.
 */
import { stream } from "../../../base/rng/Rng.ts"
import { bare } from "./number.ts"

type Variables = ReadonlyMap<string, number>
type Formula = (variables: Variables) => number

/** The largest number of characters in an expression. Longer texts are not parsed, so that parsing is always fast. */
const mostCharacters = 2000
/** The largest depth of nested brackets and signs, so that parsing cannot overflow the stack. */
const mostDepth = 100

const functions: Readonly<Record<string, (value: number) => number>> = {
  sin: Math.sin,
  cos: Math.cos,
  tan: Math.tan,
  arcsin: Math.asin,
  arccos: Math.acos,
  arctan: Math.atan,
  sinh: Math.sinh,
  cosh: Math.cosh,
  tanh: Math.tanh,
  exp: Math.exp,
  ln: Math.log,
  log: Math.log,
  sqrt: Math.sqrt,
  abs: Math.abs,
  floor: Math.floor,
  ceil: Math.ceil,
}
const constants: Readonly<Record<string, number>> = { pi: Math.PI, e: Math.E }
const operators: Readonly<Record<string, (left: number, right: number) => number>> = {
  "+": (left, right) => left + right,
  "-": (left, right) => left - right,
  "*": (left, right) => left * right,
  "/": (left, right) => left / right,
}
const applied = (sign: string, left: Formula, right: Formula): Formula => {
  const operator = operators[sign]
  return (at) => operator(left(at), right(at))
}
const greek = "alpha|beta|gamma|delta|epsilon|theta|lambda|mu|phi|psi|omega|rho|sigma|tau"
/** Sort long names first, so that `sinh` is read as one word, not as `sin` and `h`. */
const names = Object.keys(functions).toSorted((a, b) => b.length - a.length)
const words = new RegExp(`^(?:${[...names, "frac", "pi", greek].join("|")})`)

// The groups of this pattern: a number, letters, a sign, and any other character.
const token =
  /\s+|(\d+(?:\.\d*)?(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?)|\\?([A-Za-z]+)|(\*\*|[-+*/^(){}[\]!_])|([\s\S])/gy

/** Splits a text into numbers, names and signs; undefined if it contains anything else. */
const tokensOf = (text: string): ReadonlyArray<string> | undefined => {
  // Converts powers such as `x**2` first, because `bare` removes `**`, the mark of bold text.
  const plain = bare(text.replace(/(?<=[\w)\]}])\s*\*\*\s*(?=[\w({\\-])/g, "^"))
    .replace(/\\(?:cdot|times)|[×·]/g, "*")
    .replace(/\\div|÷/g, "/")
    .replace(/\\[dt]?frac/g, "\\frac")
    // In LaTeX without braces, `\frac` takes single digits: \frac12 is a half.
    .replace(/\\frac\s*(\d)/g, "\\frac{$1}")
    .replace(/(\\frac\s*\{[^{}]*\})\s*(\d)/g, "$1{$2}")
    .replace(/π/g, "pi ")
    .replace(/√/g, "sqrt ")
    .replace(/\\operatorname\s*\{(\w+)\}/g, "$1")
  const tokens: Array<string> = []
  for (const [, number, letters, sign, other] of plain.matchAll(token)) {
    if (other !== undefined) return undefined
    if (number !== undefined) tokens.push(number)
    else if (sign !== undefined) tokens.push(sign === "**" ? "^" : sign)
    else if (letters !== undefined) {
      // Split letters without spaces: "xy" is a product, "sinx" is a function of x.
      for (let rest = letters; rest !== "";) {
        const word = words.exec(rest)?.[0] ?? rest[0]
        tokens.push(word)
        rest = rest.slice(word.length)
      }
    }
  }
  return tokens
}

const factorial = (value: number): number => {
  if (!Number.isInteger(value) || value < 0 || value > 170) return Number.NaN
  let product = 1
  for (let factor = 2; factor <= value; factor++) product *= factor
  return product
}

/** The error that the parser throws if a text is not an expression. It is always caught in this file. */
class Unreadable extends Error {}

const closing: Readonly<Record<string, string>> = { "(": ")", "{": "}", "[": "]" }

/** A recursive descent parser of sums of products of powers. Its methods throw `Unreadable` at a wrong token. */
class ExpressionParser {
  readonly names = new Set<string>()
  readonly #tokens: ReadonlyArray<string>
  #at = 0
  #depth = 0

  constructor(tokens: ReadonlyArray<string>) {
    this.#tokens = tokens
  }

  whole(): Formula {
    const value = this.#sum()
    if (this.#at < this.#tokens.length) throw new Unreadable()
    return value
  }

  #peek(): string | undefined {
    return this.#tokens[this.#at]
  }

  #take(wanted: string): boolean {
    return this.#takeOf(wanted) !== undefined
  }

  /** Returns the next token and moves on, if the token is one of the signs; otherwise undefined. */
  #takeOf(...signs: ReadonlyArray<string>): string | undefined {
    const sign = signs.find((candidate) => candidate === this.#peek())
    if (sign !== undefined) this.#at++
    return sign
  }

  #sum(): Formula {
    if (++this.#depth > mostDepth) throw new Unreadable()
    let value = this.#product()
    for (let sign = this.#takeOf("+", "-"); sign !== undefined; sign = this.#takeOf("+", "-")) {
      value = applied(sign, value, this.#product())
    }
    this.#depth--
    return value
  }

  #product(): Formula {
    let value = this.#signed()
    for (;;) {
      const sign = this.#takeOf("*", "/")
      if (sign !== undefined) value = applied(sign, value, this.#signed())
      else if (this.#begins()) value = applied("*", value, this.#power())
      else return value
    }
  }

  /** Tells whether another factor follows without a multiplication sign. */
  #begins(): boolean {
    const next = this.#peek()
    return next !== undefined && (/^[\w.]/.test(next) || next === "(" || next === "{") && next !== "_"
  }

  #signed(): Formula {
    if (++this.#depth > mostDepth) throw new Unreadable()
    const negative = this.#take("-")
    const value = negative || this.#take("+") ? this.#signed() : this.#power()
    this.#depth--
    return negative ? (at) => -value(at) : value
  }

  #power(): Formula {
    let base = this.#atom()
    while (this.#take("!")) {
      const inner = base
      base = (at) => factorial(inner(at))
    }
    if (!this.#take("^")) return base
    const exponent = this.#signed()
    return (at) => base(at) ** exponent(at)
  }

  #group(): Formula {
    const open = this.#peek()
    if (open === undefined || !Object.hasOwn(closing, open)) throw new Unreadable()
    this.#at++
    const value = this.#sum()
    if (!this.#take(closing[open])) throw new Unreadable()
    return value
  }

  #atom(): Formula {
    const next = this.#peek()
    if (next === undefined) throw new Unreadable()
    if (Object.hasOwn(closing, next)) return this.#group()
    this.#at++
    if (/^[\d.]/.test(next)) {
      const number = Number(next)
      return () => number
    }
    if (!/^[A-Za-z]/.test(next)) throw new Unreadable()
    if (next === "frac") return applied("/", this.#atom(), this.#atom())
    if (Object.hasOwn(functions, next)) return this.#applied(next)
    if (Object.hasOwn(constants, next)) return () => constants[next]
    const name = this.#take("_") ? `${next}_${this.#subscript()}` : next
    this.names.add(name)
    return (at) => at.get(name) ?? Number.NaN
  }

  #subscript(): string {
    const braced = this.#take("{")
    const name = this.#peek()
    if (name === undefined || !/^\w+$/.test(name)) throw new Unreadable()
    this.#at++
    if (braced && !this.#take("}")) throw new Unreadable()
    return name
  }

  #applied(name: string): Formula {
    const apply = functions[name]
    if (name === "sqrt" && this.#peek() === "[") {
      const degree = this.#group()
      const radicand = this.#atom()
      return (at) => radicand(at) ** (1 / degree(at))
    }
    let base: Formula | undefined
    if (name === "log" && this.#take("_")) base = this.#atom()
    // `sin^2 x` means `(sin x)^2`.
    const exponent = this.#take("^") ? this.#atom() : undefined
    const bracketed = this.#peek() === "(" || this.#peek() === "{"
    const operand = bracketed || name === "sqrt" ? this.#atom() : this.#power()
    const value: Formula =
      base === undefined ? (at) => apply(operand(at)) : (at) => Math.log(operand(at)) / Math.log(base(at))
    return exponent === undefined ? value : (at) => value(at) ** exponent(at)
  }
}

/** Removes `y =` or `f(x) =` from the start of a text; other texts stay unchanged. */
const rightSide = (text: string): string => text.replace(/^\s*\\?[A-Za-z]+\s*(?:\([A-Za-z, ]*\))?\s*=(?!=)/, "")

const parse = (text: string): { readonly names: ReadonlySet<string>; readonly value: Formula } | undefined => {
  if (text.length > mostCharacters) return undefined
  const tokens = tokensOf(rightSide(text))
  if (tokens === undefined || tokens.length === 0) return undefined
  const reader = new ExpressionParser(tokens)
  try {
    return { value: reader.whole(), names: reader.names }
  } catch (error) {
    if (error instanceof Unreadable) return undefined
    throw error
  }
}

/** Returns the value of an expression without variables; undefined for other texts and non-finite values. */
export const constantOf = (text: string): number | undefined => {
  const parsed = parse(text)
  if (parsed === undefined || parsed.names.size > 0) return undefined
  const value = parsed.value(new Map())
  return Number.isFinite(value) ? value : undefined
}

/**
 * Tells whether both texts are expressions with equal values at all random points, except those where both values are
 * infinite or NaN. There must be at least one point to compare.
 */
export const equivalent = (left: string, right: string): boolean => {
  const [a, b] = [parse(left), parse(right)]
  if (a === undefined || b === undefined) return false
  const names = [...new Set([...a.names, ...b.names])].toSorted()
  const tries = names.length === 0 ? 1 : 24
  let compared = 0
  for (let index = 0; index < tries; index++) {
    // Roots and logarithms need positive values, but differences in sign show only at negative values, so try both.
    const low = index % 2 === 0 ? 0.1 : -3
    const at = new Map(names.map((name) => [name, low + (3 - low) * stream(0, "expression", index, name).uniform()]))
    const [x, y] = [a.value(at), b.value(at)]
    if (!Number.isFinite(x) && !Number.isFinite(y)) continue
    if (!(Math.abs(x - y) <= 1e-8 * Math.max(1, Math.abs(x), Math.abs(y)))) return false
    compared++
  }
  return compared > 0
}
