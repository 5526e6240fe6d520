/**
 * Scores mathematical answers: numbers, tuples, sets and matrices within a tolerance, and equivalent expressions.
 *
 * @example
 * ```ts
 * const score = math({ mode: "auto", tolerance: 1e-6, expectBoxed: false })
 * score("It is \\boxed{\\{2, 1\\}}.", { targets: ["{1, 2}"] }).score // 1
 * ```
 */
import { constantOf, equivalent } from "./expression.ts"
import { bare, lastNumber, numberOf } from "./number.ts"
import { exact, type AnswerKey, type AnswerScorer, verdict } from "./score.ts"
import { normalise, unboxed } from "./text.ts"

/** The ways to compare answers: by the target's form (`auto`), as expressions (`expr_equiv`), or as one kind of value. */
export const modes = ["auto", "numeric_tol", "tuple_tol", "set_tol", "matrix_tol", "expr_equiv"] as const
export type Mode = (typeof modes)[number]

/** A mathematical value. A tuple of tuples that have the same length is a matrix, given row by row. */
type MathValue =
  | { readonly _tag: "Number"; readonly value: number }
  | { readonly _tag: "Tuple"; readonly items: ReadonlyArray<MathValue> }
  | { readonly _tag: "Set"; readonly items: ReadonlyArray<MathValue> }

const closing: Readonly<Record<string, string>> = { "(": ")", "[": "]", "{": "}" }

/** Splits a text at the commas and semicolons outside brackets; undefined if the brackets are not balanced. */
const parts = (text: string): ReadonlyArray<string> | undefined => {
  const items: Array<string> = []
  const open: Array<string> = []
  let from = 0
  for (let at = 0; at < text.length; at++) {
    const sign = text[at]
    if (Object.hasOwn(closing, sign)) open.push(closing[sign])
    else if (")]}".includes(sign)) {
      if (open.pop() !== sign) return undefined
    } else if ((sign === "," || sign === ";") && open.length === 0) {
      items.push(text.slice(from, at))
      from = at + 1
    }
  }
  items.push(text.slice(from))
  return open.length === 0 ? items : undefined
}

/** Returns the contents of a pair of brackets that encloses the whole text; undefined if there is no such pair. */
const within = (text: string, open: string): string | undefined => {
  const close = closing[open]
  if (!text.startsWith(open) || !text.endsWith(close)) return undefined
  let depth = 0
  for (let at = 0; at < text.length; at++) {
    if (text[at] === open) depth++
    else if (text[at] === close && --depth === 0) return at === text.length - 1 ? text.slice(1, -1) : undefined
  }
  return undefined
}

/** Returns the list if all of its items are defined; otherwise undefined. */
const complete = <A>(items: ReadonlyArray<A | undefined>): ReadonlyArray<A> | undefined => {
  const present = items.filter((item) => item !== undefined)
  return present.length === items.length ? present : undefined
}

/** Parses each text of a list as a value; undefined if one of them is not a value, or if there is no list. */
const all = (texts: ReadonlyArray<string> | undefined): ReadonlyArray<MathValue> | undefined =>
  texts && complete(texts.map(valueOf))

const latexMatrix = (text: string): MathValue | undefined => {
  const inner = /^\\begin\{([pbvB]?matrix|array)\}(?:\{[clr| ]*\})?([\s\S]*)\\end\{\1\}$/.exec(text)?.[2]
  if (inner === undefined) return undefined
  const rows = inner.replace(/\\\\\s*$/, "").split(/\\\\(?:\[[^\]]*\])?/)
  const items = complete(rows.map((row) => all(row.split("&"))))
  return items && { _tag: "Tuple", items: items.map((row) => ({ _tag: "Tuple", items: row })) }
}

/** Converts LaTeX's brackets to plain ones, and removes math delimiters, spacing commands and a final full stop. */
const plainly = (text: string): string =>
  text
    // `\(` and `\[` delimit formulas in LaTeX, but not after another backslash, because `\\` is a line break.
    .replace(/\$|(?<!\\)\\[()[\]]/g, "")
    .replace(/\\(?:left|right)\s*/g, "")
    .replace(/\\langle/g, "(")
    .replace(/\\rangle/g, ")")
    .replace(/\\\{|\\lbrace/g, "{")
    .replace(/\\\}|\\rbrace/g, "}")
    .replace(/\{,\}/g, ",")
    .replace(/(?<!\\)\\[,;:! ]/g, "")
    .trim()
    .replace(/\.$/, "")

/** The largest number of characters of an answer that is parsed, so that parsing takes little time and stack. */
const mostCharacters = 2000

/** Parses a text as a matrix, tuple, set or number; undefined if it is none of these. */
const valueOf = (source: string): MathValue | undefined => {
  if (source.length > mostCharacters) return undefined
  const text = plainly(source)
  const matrix = latexMatrix(text)
  if (matrix !== undefined) return matrix
  for (const open of ["(", "["]) {
    const inner = within(text, open)
    const texts = inner === undefined ? undefined : parts(inner)
    // `(3)` is a number, but `[3]` is a tuple with one item.
    if (texts === undefined || (open === "(" && texts.length === 1)) continue
    const items = inner?.trim() === "" ? [] : all(texts)
    return items === undefined ? undefined : { _tag: "Tuple", items }
  }
  const inner = within(text, "{")
  if (inner !== undefined) {
    const items = inner.trim() === "" ? [] : all(parts(inner))
    if (items !== undefined) return { _tag: "Set", items }
  }
  if (/^\\(?:emptyset|varnothing)$|^∅$/.test(text)) return { _tag: "Set", items: [] }
  const value = numberOf(text) ?? constantOf(text)
  return value === undefined ? undefined : { _tag: "Number", value }
}

const isMatrix = (value: MathValue): boolean =>
  value._tag === "Tuple" &&
  value.items.length > 0 &&
  value.items.every(
    (row, _, [first]) => row._tag === "Tuple" && first._tag === "Tuple" && row.items.length === first.items.length,
  )

/** Converts a matrix with one row or one column to a tuple; returns other values unchanged. */
const flat = (value: MathValue): MathValue => {
  if (value._tag !== "Tuple" || !isMatrix(value)) return value
  const rows = value.items.map((row) => (row._tag === "Tuple" ? row.items : []))
  if (rows.length === 1) return { _tag: "Tuple", items: rows[0] }
  return rows[0].length === 1 ? { _tag: "Tuple", items: rows.flat() } : value
}

const same = (a: MathValue, b: MathValue, tolerance: number): boolean => {
  if (a._tag === "Number" && b._tag === "Number") return Math.abs(a.value - b.value) <= tolerance
  if (a._tag === "Tuple" && b._tag === "Tuple") {
    return a.items.length === b.items.length && a.items.every((item, at) => same(item, b.items[at], tolerance))
  }
  if (a._tag === "Set" && b._tag === "Set") {
    // An item that occurs twice in a set counts once.
    const each = (some: ReadonlyArray<MathValue>, others: ReadonlyArray<MathValue>) =>
      some.every((item) => others.some((other) => same(item, other, tolerance)))
    return each(a.items, b.items) && each(b.items, a.items)
  }
  return false
}

/** The number of characters at the end of an answer in which a matrix is searched. */
const mostOfMatrix = 10_000

/** Returns the last matrix in a text or, if there is none, the last group in brackets. */
const lastGroup = (text: string): string | undefined => {
  const plain = plainly(text)
  // The last matrix is near the end, and searching a long text full of beginnings would be slow.
  const matrix = [...plain.slice(-mostOfMatrix).matchAll(/\\begin\{(\w+)\}[\s\S]*?\\end\{\1\}/g)].at(-1)
  if (matrix !== undefined) return matrix[0]
  let end = plain.length - 1
  while (end >= 0 && !")]}".includes(plain[end])) end--
  let depth = 0
  for (let at = end; at >= 0; at--) {
    if (")]}".includes(plain[at])) depth++
    else if (Object.hasOwn(closing, plain[at]) && --depth === 0) return plain.slice(at, end + 1)
  }
  return undefined
}

/** Parses a whole text as a value of this kind; undefined if it is not one. The brackets of a tuple or set may be missing. */
const read = (text: string, kind: ValueKind): MathValue | undefined => {
  const value = valueOf(text.replace(/^\s*\\?[A-Za-z]\s*=/, ""))
  if (kind === "Matrix") return value !== undefined && isMatrix(value) ? value : undefined
  if (kind === "Number") return value?._tag === "Number" ? value : undefined
  if (value?._tag === kind) return kind === "Tuple" ? flat(value) : value
  if (text.length > mostCharacters || (value !== undefined && value._tag !== "Number")) return undefined
  const listed = all(parts(plainly(text)))
  return listed === undefined ? undefined : { _tag: kind, items: listed }
}

export interface MathOptions {
  readonly mode: Mode
  readonly tolerance: number
  /** Whether the answer must be in `\boxed{…}` or be the whole text; if false, it may also be among other words. */
  readonly expectBoxed: boolean
}

type ValueKind = MathValue["_tag"] | "Matrix"

const kindOf = (target: string): ValueKind | undefined => {
  const value = valueOf(target)
  if (value === undefined) return undefined
  if (value._tag === "Tuple") return isMatrix(value) ? "Matrix" : "Tuple"
  return value._tag
}

const kinds: Readonly<Record<string, ValueKind>> = {
  numeric_tol: "Number",
  tuple_tol: "Tuple",
  set_tol: "Set",
  matrix_tol: "Matrix",
}

/**
 * Finds a value of this kind in an answer; undefined if there is none. If `expectBoxed` is false, the value may be surrounded
 * by other words.
 */
const valueIn = (answer: string, kind: ValueKind, expectBoxed: boolean): MathValue | undefined => {
  const proper = unboxed(answer)
  const whole = read(proper, kind)
  if (whole !== undefined || expectBoxed) return whole
  if (kind === "Number") {
    const last = lastNumber(bare(proper))
    return last === undefined ? undefined : { _tag: "Number", value: last }
  }
  const group = lastGroup(proper)
  return group === undefined ? undefined : read(group, kind)
}

/** Tells whether an answer equals one target. Returns a text with the reason if the answer has no value to compare. */
const against = (answer: string, target: string, { mode, tolerance, expectBoxed }: MathOptions): boolean | string => {
  const wanted = unboxed(target)
  const proper = unboxed(answer)
  if (normalise(proper) === normalise(wanted)) return true
  if (mode === "expr_equiv") return equivalent(proper, wanted)
  const kind = kinds[mode] ?? kindOf(wanted)
  if (kind === undefined) return exact(answer, { targets: [target] }).score === 1
  const [a, b] = [valueIn(answer, kind, expectBoxed), read(wanted, kind)]
  if (b === undefined) return false
  return a === undefined ? `there is no ${kind.toLowerCase()} in it` : same(a, b, tolerance)
}

/** Makes a scorer of mathematical answers. With `auto`, the target determines the kind of value. */
export const math =
  (options: MathOptions): AnswerScorer =>
  (answer: string, key: AnswerKey) => {
    const results = key.targets.map((target) => against(answer, target, options))
    const right = results.indexOf(true)
    if (right >= 0) return verdict(1, key.targets[right], answer)
    const [first] = results
    return verdict(0, key.targets[0], answer, typeof first === "string" ? first : undefined)
  }
