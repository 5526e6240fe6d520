/**
 * Parses regular expressions of ECMAScript with the flag `u`, as far as they describe regular languages: without lookarounds,
 * back references and word boundaries.
 */
import * as CharacterSet from "./CharacterSet.ts"
import { formatError } from "../Network.ts"

/** The largest number of characters of a regular expression. */
const mostCharacters = 4096
/** The largest number of groups inside each other. */
const mostNested = 50
/** The largest number of a quantifier. */
const mostRepeated = 4096

/** A part of a regular expression. */
export type RegexPart =
  | { readonly type: "characters"; readonly set: CharacterSet.CharacterSet }
  | { readonly type: "sequence"; readonly parts: ReadonlyArray<RegexPart> }
  | { readonly type: "alternatives"; readonly parts: ReadonlyArray<RegexPart> }
  | { readonly type: "repeated"; readonly part: RegexPart; readonly least: number; readonly most: number }
  | { readonly type: "begin" }
  | { readonly type: "end" }

/** Parses a regular expression. Throws an `EngineError` if it is wrong, or has parts that are not supported. */
export const parseRegex = (source: unknown, path: string): RegexPart => {
  if (typeof source !== "string") throw formatError(path, "expected a regular expression as a text")
  if (source.length > mostCharacters)
    throw formatError(path, `expected at most ${mostCharacters} characters, found ${source.length}`)
  const problem = problemOf(source)
  if (problem !== undefined)
    throw formatError(path, `expected a regular expression of ECMAScript with the flag u: ${problem}`)
  return new RegexParser(source, path).alternatives()
}

/** Returns what is wrong with the syntax; undefined if it is right, as the parser expects it. */
const problemOf = (source: string): string | undefined => {
  try {
    // The constructor checks the syntax. The expression itself is never run.
    const { unicode } = new RegExp(source, "u")
    return unicode ? undefined : "it is not read with the flag u"
  } catch (error) {
    return error instanceof Error ? error.message.split(": ").at(-1) : String(error)
  }
}

const codeOf = (character: string): number => character.codePointAt(0) ?? 0

/** The characters of escapes such as `\n`. */
const controls: Readonly<Record<string, number>> = { t: 0x09, n: 0x0a, v: 0x0b, f: 0x0c, r: 0x0d, "0": 0 }

const classes: Readonly<Record<string, CharacterSet.CharacterSet>> = {
  d: CharacterSet.digits,
  D: CharacterSet.complement(CharacterSet.digits),
  w: CharacterSet.wordCharacters,
  W: CharacterSet.complement(CharacterSet.wordCharacters),
  s: CharacterSet.spaces,
  S: CharacterSet.complement(CharacterSet.spaces),
}

/** Leaves out the halves of surrogate pairs, which no text in UTF-8 has. */
const withoutSurrogates = (set: CharacterSet.CharacterSet): CharacterSet.CharacterSet => [
  ...CharacterSet.between(set, 0, 0xd7ff),
  ...CharacterSet.between(set, 0xe000, 0x10_ffff),
]

/** Matches each character. */
const anyCharacter: RegexPart = { type: "characters", set: withoutSurrogates(CharacterSet.all) }

/** Matches any text. */
const anyText: RegexPart = { type: "repeated", part: anyCharacter, least: 0, most: Infinity }

/** Makes an expression of the texts that contain a match of another one. */
export const containing = (part: RegexPart): RegexPart => {
  const parts = part.type === "sequence" ? part.parts : []
  const before = parts[0]?.type === "begin" ? [] : [anyText]
  const after = parts.at(-1)?.type === "end" ? [] : [anyText]
  return { type: "sequence", parts: [...before, part, ...after] }
}

/** Returns the least and the largest number of characters of the texts that an expression matches. */
export const lengthsOfRegex = (part: RegexPart): { readonly least: number; readonly most: number } => {
  switch (part.type) {
    case "begin":
    case "end":
      return { least: 0, most: 0 }
    case "characters":
      return { least: 1, most: 1 }
    case "repeated": {
      const { least, most } = lengthsOfRegex(part.part)
      // Zero times infinity is no number.
      return { least: least * part.least, most: most === 0 || part.most === 0 ? 0 : most * part.most }
    }
    case "sequence":
      return part.parts
        .map(lengthsOfRegex)
        .reduce((sum, { least, most }) => ({ least: sum.least + least, most: sum.most + most }), { least: 0, most: 0 })
    case "alternatives": {
      const lengths = part.parts.map(lengthsOfRegex)
      return {
        least: Math.min(...lengths.map(({ least }) => least)),
        most: Math.max(...lengths.map(({ most }) => most)),
      }
    }
  }
}

class RegexParser {
  private readonly characters: ReadonlyArray<string>
  private readonly path: string
  private at = 0
  private nested = 0

  constructor(source: string, path: string) {
    this.characters = Array.from(source)
    this.path = path
  }

  /** Parses alternatives up to the end of a group or of the expression. */
  alternatives(): RegexPart {
    const parts = [this.sequence()]
    while (this.take("|")) parts.push(this.sequence())
    return parts.length === 1 ? parts[0] : { type: "alternatives", parts }
  }

  private sequence(): RegexPart {
    const parts: Array<RegexPart> = []
    while (this.at < this.characters.length && !"|)".includes(this.next)) parts.push(this.quantified(this.term()))
    return { type: "sequence", parts }
  }

  private get next(): string {
    return this.characters[this.at] ?? ""
  }

  /** Reads a text if it comes next. Returns whether it did. */
  private take(text: string): boolean {
    for (const [index, character] of Array.from(text).entries())
      if (this.characters[this.at + index] !== character) return false
    this.at += text.length
    return true
  }

  private read(): string {
    return this.characters[this.at++] ?? ""
  }

  private refused(what: string): Error {
    return formatError(this.path, `${what} are not supported in regular expressions; write it without`)
  }

  private term(): RegexPart {
    const character = this.read()
    if (character === "^") return { type: "begin" }
    if (character === "$") return { type: "end" }
    if (character === "(") return this.group()
    return { type: "characters", set: withoutSurrogates(this.set(character)) }
  }

  private set(character: string): CharacterSet.CharacterSet {
    if (character === ".") return CharacterSet.complement(CharacterSet.lineEnds)
    if (character === "[") return this.class()
    return character === "\\" ? this.escape() : CharacterSet.only(codeOf(character))
  }

  private group(): RegexPart {
    if (++this.nested > mostNested)
      throw formatError(this.path, `expected at most ${mostNested} groups inside each other`)
    if (this.take("?") && !this.take(":")) this.groupName()
    const part = this.alternatives()
    this.take(")")
    this.nested--
    return part
  }

  private groupName(): void {
    for (const kind of ["=", "!", "<=", "<!"])
      if (this.take(kind)) throw this.refused("lookaheads and lookbehinds, such as (?=a),")
    if (!this.take("<")) throw this.refused("flags of groups, such as (?i:a),")
    while (this.read() !== ">");
  }

  private quantified(part: RegexPart): RegexPart {
    const counts = this.quantifier()
    if (counts === undefined) return part
    // A lazy quantifier matches the same texts.
    this.take("?")
    const { least, most } = counts
    const largest = most === Infinity ? least : most
    if (largest > mostRepeated)
      throw formatError(this.path, `expected at most ${mostRepeated} repetitions, found ${largest}`)
    return { type: "repeated", part, least, most }
  }

  private quantifier(): { readonly least: number; readonly most: number } | undefined {
    if (this.take("*")) return { least: 0, most: Infinity }
    if (this.take("+")) return { least: 1, most: Infinity }
    if (this.take("?")) return { least: 0, most: 1 }
    if (!this.take("{")) return undefined
    const least = this.number()
    if (this.take("}")) return { least, most: least }
    this.take(",")
    if (this.take("}")) return { least, most: Infinity }
    const most = this.number()
    this.take("}")
    return { least, most }
  }

  private number(): number {
    let digits = ""
    while (/^\d$/.test(this.next)) digits += this.read()
    return Number(digits)
  }

  private class(): CharacterSet.CharacterSet {
    const isComplement = this.take("^")
    const ranges: Array<CharacterSet.CharacterRange> = []
    while (!this.take("]")) {
      const set = this.classAtom()
      // A hyphen at the end stands for itself; beside a class such as \d it is no syntax.
      const isRange = this.next === "-" && this.characters[this.at + 1] !== "]"
      if (!isRange) {
        ranges.push(...set)
        continue
      }
      this.at++
      ranges.push({ least: set[0].least, most: this.classAtom()[0].most })
    }
    const set = CharacterSet.union(ranges)
    return isComplement ? CharacterSet.complement(set) : set
  }

  private classAtom(): CharacterSet.CharacterSet {
    const character = this.read()
    if (character !== "\\") return CharacterSet.only(codeOf(character))
    return this.take("b") ? CharacterSet.only(0x08) : this.escape()
  }

  private escape(): CharacterSet.CharacterSet {
    const character = this.read()
    if (Object.hasOwn(classes, character)) return classes[character]
    if (Object.hasOwn(controls, character)) return CharacterSet.only(controls[character])
    if (/^[1-9k]$/.test(character)) throw this.refused("back references")
    if (/^[bB]$/.test(character)) throw this.refused("word boundaries")
    if (/^[pP]$/.test(character)) throw this.refused(String.raw`properties of characters, such as \p{L},`)
    if (character === "c") return CharacterSet.only(codeOf(this.read()) % 32)
    if (character === "x") return CharacterSet.only(this.hexadecimal(2))
    return CharacterSet.only(character === "u" ? this.unicode() : codeOf(character))
  }

  private hexadecimal(length: number): number {
    let digits = ""
    while (digits.length < length) digits += this.read()
    return Number.parseInt(digits, 16)
  }

  private unicode(): number {
    if (this.take("{")) {
      let digits = ""
      while (!this.take("}")) digits += this.read()
      return Number.parseInt(digits, 16)
    }
    const code = this.hexadecimal(4)
    const isFirstOfPair = code >= 0xd800 && code <= 0xdbff
    const following = this.characters.slice(this.at, this.at + 6).join("")
    if (!isFirstOfPair || !/^\\u[dD][c-fC-F][\da-fA-F]{2}$/.test(following)) return code
    this.at += 2
    return 0x1_0000 + (code - 0xd800) * 0x400 + (this.hexadecimal(4) - 0xdc00)
  }
}
