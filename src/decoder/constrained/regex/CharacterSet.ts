/** Sets of Unicode characters, as sorted ranges of code points that neither overlap nor touch. */

export interface CharacterRange {
  readonly least: number
  readonly most: number
}

export type CharacterSet = ReadonlyArray<CharacterRange>

const last = 0x10_ffff

/** Makes a set of ranges in any order, which may overlap. */
export const union = (ranges: Iterable<CharacterRange>): CharacterSet => {
  const sorted = [...ranges].sort((one, other) => one.least - other.least)
  const merged: Array<CharacterRange> = []
  for (const { least, most } of sorted) {
    const before = merged.at(-1)
    if (before === undefined || least > before.most + 1) merged.push({ least, most })
    else merged[merged.length - 1] = { least: before.least, most: Math.max(before.most, most) }
  }
  return merged
}

/** Returns all characters that are not in a set. */
export const complement = (set: CharacterSet): CharacterSet => {
  const rest: Array<CharacterRange> = []
  let next = 0
  for (const { least, most } of set) {
    if (least > next) rest.push({ least: next, most: least - 1 })
    next = most + 1
  }
  if (next <= last) rest.push({ least: next, most: last })
  return rest
}

/** Returns the characters of a set between two code points. */
export const between = (set: CharacterSet, least: number, most: number): CharacterSet =>
  set
    .filter((range) => range.most >= least && range.least <= most)
    .map((range) => ({ least: Math.max(range.least, least), most: Math.min(range.most, most) }))

export const only = (code: number): CharacterSet => [{ least: code, most: code }]

const setOf = (...codes: ReadonlyArray<readonly [number, number] | number>): CharacterSet =>
  union(
    codes.map((code) => (typeof code === "number" ? { least: code, most: code } : { least: code[0], most: code[1] })),
  )

/** Every character. */
export const all: CharacterSet = setOf([0, last])
/** The characters of `\d`, `\w` and `\s` in ECMAScript. */
export const digits = setOf([0x30, 0x39])
export const wordCharacters = setOf([0x30, 0x39], [0x41, 0x5a], 0x5f, [0x61, 0x7a])
export const spaces = setOf(
  [0x09, 0x0d],
  0x20,
  0xa0,
  0x1680,
  [0x2000, 0x200a],
  [0x2028, 0x2029],
  0x202f,
  0x205f,
  0x3000,
  0xfeff,
)
/** The characters that `.` does not match. */
export const lineEnds = setOf(0x0a, 0x0d, [0x2028, 0x2029])
