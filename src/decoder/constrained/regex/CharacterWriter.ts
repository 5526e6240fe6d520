/** Adds characters to networks, as UTF-8, and in JSON strings with the escapes that JSON needs. */
import type { NetworkBuilder } from "../Network.ts"
import { between, type CharacterRange, type CharacterSet } from "./CharacterSet.ts"

const quote = 0x22
const backslash = 0x5c
const lastOfByte = 0x7f

/** The letters of short escapes. Other control characters are written as \u0001. */
const shortEscapes: ReadonlyMap<number, string> = new Map([
  [quote, '"'],
  [backslash, "\\"],
  [0x08, "b"],
  [0x09, "t"],
  [0x0a, "n"],
  [0x0c, "f"],
  [0x0d, "r"],
])

/** The ways to write the characters of a set. */
interface WrittenSet {
  /** The characters that are one byte. */
  readonly single: CharacterSet
  /** The network of all others; undefined if there are none. */
  readonly network: number | undefined
}

export class CharacterWriter {
  private readonly builder: NetworkBuilder
  private readonly quoted: boolean
  private readonly sets = new Map<CharacterSet, WrittenSet>()
  /** The networks of characters of several bytes, by the ranges of their sets. */
  private readonly networks = new Map<string, number>()

  /** With `quoted`, characters are written as in a JSON string. */
  constructor(builder: NetworkBuilder, { quoted }: { readonly quoted: boolean }) {
    this.builder = builder
    this.quoted = quoted
  }

  /** Adds one character of a set. Returns the number of transitions. */
  add(set: CharacterSet, from: number, to: number): number {
    const { single, network } = this.sets.get(set) ?? this.written(set)
    for (const { least, most } of single) this.builder.read(from, least, most, to)
    if (network !== undefined) this.builder.call(from, network, to)
    return single.length + 1
  }

  private written(set: CharacterSet): WrittenSet {
    const escaped = this.quoted ? escapedOf(set) : []
    const longer = between(set, lastOfByte + 1, 0x10_ffff)
    const written = { single: this.singleBytes(set), network: this.networkOf(escaped, longer) }
    this.sets.set(set, written)
    return written
  }

  private networkOf(escaped: ReadonlyArray<number>, longer: CharacterSet): number | undefined {
    if (escaped.length === 0 && longer.length === 0) return undefined
    const key = [...escaped, "", ...longer.map(({ least, most }) => `${least}-${most}`)].join()
    const network = this.networks.get(key) ?? this.network(escaped, longer)
    this.networks.set(key, network)
    return network
  }

  private singleBytes(set: CharacterSet): CharacterSet {
    if (!this.quoted) return between(set, 0, lastOfByte)
    return [
      ...between(set, 0x20, quote - 1),
      ...between(set, quote + 1, backslash - 1),
      ...between(set, backslash + 1, lastOfByte),
    ]
  }

  private network(escaped: ReadonlyArray<number>, longer: CharacterSet): number {
    const { builder } = this
    const { index, first, last } = builder.network()
    if (escaped.length > 0) this.addEscapes(escaped, first, last)
    for (const [least, most] of sameLengths)
      for (const range of between(longer, least, most)) addUtf8(builder, range, first, last)
    return index
  }

  private addEscapes(codes: ReadonlyArray<number>, from: number, to: number): void {
    const { builder } = this
    const escaped = builder.literal(from, [backslash])
    for (const code of codes) {
      const text = shortEscapes.get(code) ?? `u${code.toString(16).padStart(4, "0")}`
      builder.jump(builder.literal(escaped, new TextEncoder().encode(text)), to)
    }
  }
}

/** Lists the characters of a set that JSON strings only have as escapes. */
const escapedOf = (set: CharacterSet): ReadonlyArray<number> =>
  [...between(set, 0, 0x1f), ...between(set, quote, quote), ...between(set, backslash, backslash)].flatMap(
    ({ least, most }) => Array.from({ length: most - least + 1 }, (_, at) => least + at),
  )

/** The code points of two, three and four bytes in UTF-8. */
const sameLengths = [
  [0x80, 0x7ff],
  [0x800, 0xffff],
  [0x1_0000, 0x10_ffff],
] as const

/** Encodes a code point of several bytes. */
const encoded = (code: number): Uint8Array => {
  const last = 0x80 | (code & 0x3f)
  if (code < 0x800) return Uint8Array.of(0xc0 | (code >> 6), last)
  const third = 0x80 | ((code >> 6) & 0x3f)
  if (code < 0x1_0000) return Uint8Array.of(0xe0 | (code >> 12), third, last)
  return Uint8Array.of(0xf0 | (code >> 18), 0x80 | ((code >> 12) & 0x3f), third, last)
}

/** Adds the characters of a range that all have the same number of bytes. */
const addUtf8 = (builder: NetworkBuilder, { least, most }: CharacterRange, from: number, to: number): void =>
  addBytes(builder, { low: encoded(least), high: encoded(most) }, from, to)

interface ByteTexts {
  readonly low: Uint8Array
  readonly high: Uint8Array
}

/** Adds the byte sequences between two of the same length, whose bytes after the first one go from 0x80 to 0xbf. */
const addBytes = (builder: NetworkBuilder, { low, high }: ByteTexts, from: number, to: number): void => {
  const [least, most] = [low[0], high[0]]
  if (low.length === 1) return builder.read(from, least, most, to)
  const [lowest, highest] = [low.slice(1).fill(0x80), low.slice(1).fill(0xbf)]
  const addFrom = (first: number, last: number, rest: ByteTexts): void => {
    if (first > last) return
    const next = builder.state()
    builder.read(from, first, last, next)
    addBytes(builder, rest, next, to)
  }
  if (least === most) return addFrom(least, most, { low: low.slice(1), high: high.slice(1) })
  addFrom(least, least, { low: low.slice(1), high: highest })
  addFrom(least + 1, most - 1, { low: lowest, high: highest })
  addFrom(most, most, { low: lowest, high: high.slice(1) })
}
