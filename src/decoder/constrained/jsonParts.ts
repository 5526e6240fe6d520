/** Adds the parts of JSON texts to networks: strings, numbers within limits, whitespace, and any value. */
import { type NetworkBuilder } from "./Network.ts"

const code = (character: string): number => character.charCodeAt(0)
const quote = code('"')
const backslash = code("\\")
const encoder = new TextEncoder()

/** The largest number of digits before and after the point of a number without limits. Such integers are read back exactly. */
const mostDigits = 15
/** The largest number of spaces after a line feed. */
const mostIndent = 16

/** Adds states that read a text. Returns the last one. */
export const addText = (builder: NetworkBuilder, from: number, text: string): number =>
  builder.literal(from, encoder.encode(text))

/** Adds states that read one of several texts. Texts share the states of their common beginning. */
export const addTexts = (builder: NetworkBuilder, from: number, texts: Iterable<string>, to: number): void => {
  const children = new Map<string, number>()
  for (const text of texts) {
    let at = from
    for (const byte of encoder.encode(text)) {
      const key = `${at} ${byte}`
      const next = children.get(key) ?? builder.literal(at, [byte])
      children.set(key, next)
      at = next
    }
    builder.jump(at, to)
  }
}

/** Adds a transition for each of the characters. */
const addAny = (builder: NetworkBuilder, from: number, characters: string, to: number): void => {
  for (const character of characters) builder.read(from, code(character), code(character), to)
}

const addDigit = (builder: NetworkBuilder, from: number, to: number): void =>
  builder.read(from, code("0"), code("9"), to)

/** Adds four hexadecimal digits that are no part of a surrogate pair. */
const addHexDigits = (builder: NetworkBuilder, from: number, to: number): void => {
  const hex = (start: number, end: number): void => {
    addDigit(builder, start, end)
    builder.read(start, code("a"), code("f"), end)
    builder.read(start, code("A"), code("F"), end)
  }
  const [second, afterD, third, fourth] = [builder.state(), builder.state(), builder.state(), builder.state()]
  addDigit(builder, from, second)
  for (const first of ["a", "A"]) builder.read(from, code(first), code(first) + 2, second)
  for (const first of ["e", "E"]) builder.read(from, code(first), code(first) + 1, second)
  addAny(builder, from, "dD", afterD)
  builder.read(afterD, code("0"), code("7"), third)
  hex(second, third)
  hex(third, fourth)
  hex(fourth, to)
}

/** Adds one character of a string: a code point in UTF-8, or an escape. */
const addCharacter = (builder: NetworkBuilder, from: number, to: number): void => {
  builder.read(from, 0x20, quote - 1, to)
  builder.read(from, quote + 1, backslash - 1, to)
  builder.read(from, backslash + 1, 0x7f, to)
  const [one, two, three] = [builder.state(), builder.state(), builder.state()]
  builder.read(one, 0x80, 0xbf, to)
  builder.read(two, 0x80, 0xbf, one)
  builder.read(three, 0x80, 0xbf, two)
  /** The first bytes of longer characters, the range of their second byte, and the state after it. */
  const longer = [
    { first: [0xe0, 0xe0], second: [0xa0, 0xbf], after: one },
    { first: [0xed, 0xed], second: [0x80, 0x9f], after: one },
    { first: [0xf0, 0xf0], second: [0x90, 0xbf], after: two },
    { first: [0xf4, 0xf4], second: [0x80, 0x8f], after: two },
  ]
  builder.read(from, 0xc2, 0xdf, one)
  builder.read(from, 0xe1, 0xec, two)
  builder.read(from, 0xee, 0xef, two)
  builder.read(from, 0xf1, 0xf3, three)
  for (const { first, second, after } of longer) {
    const state = builder.state()
    builder.read(from, first[0], first[1], state)
    builder.read(state, second[0], second[1], after)
  }
  const [escaped, hex] = [builder.state(), builder.state()]
  builder.read(from, backslash, backslash, escaped)
  addAny(builder, escaped, '"\\/bfnrt', to)
  addAny(builder, escaped, "u", hex)
  addHexDigits(builder, hex, to)
}

/** The networks that many places of a format share. */
export interface SharedNetworks {
  /** One character of a string. */
  readonly character: number
  /** A string of any length. */
  readonly string: number
  /** Optional whitespace: a space, or a line feed and spaces. */
  readonly space: number
  /** Any JSON value. */
  readonly value: number
  /** Any JSON object. */
  readonly object: number
}

export const addSharedNetworks = (builder: NetworkBuilder): SharedNetworks => {
  const character = builder.network()
  addCharacter(builder, character.first, character.last)

  const string = builder.network()
  const inside = builder.state()
  builder.read(string.first, quote, quote, inside)
  addCharacter(builder, inside, inside)
  builder.read(inside, quote, quote, string.last)

  const space = builder.network()
  builder.jump(space.first, space.last)
  addAny(builder, space.first, " ", space.last)
  let indent = builder.state()
  addAny(builder, space.first, "\n", indent)
  for (let count = 0; count <= mostIndent; count++) {
    builder.jump(indent, space.last)
    if (count === mostIndent) break
    const next = builder.state()
    addAny(builder, indent, " ", next)
    indent = next
  }

  const [value, object, array] = [builder.network(), builder.network(), builder.network()]
  const shared = {
    character: character.index,
    string: string.index,
    space: space.index,
    value: value.index,
    object: object.index,
  }
  addMembers(builder, shared, object)
  addItems(builder, shared, array)
  for (const text of ["null", "true", "false"]) builder.jump(addText(builder, value.first, text), value.last)
  addNumber(builder, value.first, value.last)
  for (const { index } of [string, object, array]) builder.call(value.first, index, value.last)
  return shared
}

interface Ends {
  readonly first: number
  readonly last: number
}

/** Adds any object. */
const addMembers = (builder: NetworkBuilder, { string, space, value }: SharedNetworks, { first, last }: Ends): void => {
  const [open, key, colon, before, after, end] = Array.from({ length: 6 }, () => builder.state())
  const begun = builder.state()
  addAny(builder, first, "{", begun)
  builder.call(begun, space, open)
  addAny(builder, open, "}", last)
  builder.jump(open, key)
  builder.call(key, string, colon)
  addAny(builder, colon, ":", before)
  const valueState = builder.state()
  builder.call(before, space, valueState)
  builder.call(valueState, value, after)
  const next = builder.state()
  addAny(builder, after, ",", next)
  builder.call(next, space, key)
  builder.call(after, space, end)
  addAny(builder, end, "}", last)
}

/** Adds any array. */
const addItems = (builder: NetworkBuilder, { space, value }: SharedNetworks, { first, last }: Ends): void => {
  const [begun, open, item, after, next, end] = Array.from({ length: 6 }, () => builder.state())
  addAny(builder, first, "[", begun)
  builder.call(begun, space, open)
  addAny(builder, open, "]", last)
  builder.jump(open, item)
  builder.call(item, value, after)
  addAny(builder, after, ",", next)
  builder.call(next, space, item)
  builder.call(after, space, end)
  addAny(builder, end, "]", last)
}

/** Adds up to `most` digits. Returns the states after each of them. */
const addDigits = (builder: NetworkBuilder, from: number, most: number): ReadonlyArray<number> => {
  const states: Array<number> = []
  let at = from
  for (let count = 0; count < most; count++) {
    const next = builder.state()
    addDigit(builder, at, next)
    states.push(next)
    at = next
  }
  return states
}

/** Adds any integer. Returns the states after which it can end. */
const addWhole = (builder: NetworkBuilder, from: number): ReadonlyArray<number> => {
  const unsigned = builder.state()
  builder.jump(from, unsigned)
  addAny(builder, from, "-", unsigned)
  const [zero, first] = [builder.state(), builder.state()]
  addAny(builder, unsigned, "0", zero)
  builder.read(unsigned, code("1"), code("9"), first)
  return [zero, first, ...addDigits(builder, first, mostDigits - 1)]
}

/** Adds any integer. */
export const addInteger = (builder: NetworkBuilder, from: number, to: number): void => {
  for (const state of addWhole(builder, from)) builder.jump(state, to)
}

/** Adds any number. */
export const addNumber = (builder: NetworkBuilder, from: number, to: number): void => {
  const [whole, point, number, exponent, unsigned] = Array.from({ length: 5 }, () => builder.state())
  for (const state of addWhole(builder, from)) builder.jump(state, whole)
  builder.jump(whole, number)
  addAny(builder, whole, ".", point)
  for (const state of addDigits(builder, point, mostDigits)) builder.jump(state, number)
  builder.jump(number, to)
  addAny(builder, number, "eE", exponent)
  builder.jump(exponent, unsigned)
  addAny(builder, exponent, "+-", unsigned)
  for (const state of addDigits(builder, unsigned, 2)) builder.jump(state, to)
}
