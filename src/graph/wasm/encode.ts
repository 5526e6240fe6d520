import { utf8 } from "../../config/utf8.ts"
/**
 * Writes the binary format of WebAssembly, as far as the compiler needs it: a module of functions over one memory that it
 * owns and exports, with constants in data segments.
 *
 * Code is a tree of bytes (`Code`), so that expressions are composed without copying, and flattened once at the end.
 */

export type ValueType = "i32" | "i64" | "f32" | "f64" | "v128"

/** Bytes in nested arrays of any depth. */
export type Code = number | ReadonlyArray<Code>

const typeBytes: Readonly<Record<ValueType, number>> = { i32: 0x7f, i64: 0x7e, f32: 0x7d, f64: 0x7c, v128: 0x7b }

/** Encodes an unsigned integer as LEB128. */
export const unsigned = (value: number): Code => {
  if (value < 0x80) return value
  const bytes: Array<number> = []
  let rest = value
  while (rest >= 0x80) {
    bytes.push((rest % 0x80) | 0x80)
    rest = Math.floor(rest / 0x80)
  }
  bytes.push(rest)
  return bytes
}

/** Encodes a signed 32-bit integer as LEB128. */
export const signed = (value: number): Code => {
  if (value >= 0 && value < 0x40) return value
  const bytes: Array<number> = []
  let rest = value | 0
  for (;;) {
    const byte = rest & 0x7f
    rest >>= 7
    if ((rest === 0 && (byte & 0x40) === 0) || (rest === -1 && (byte & 0x40) !== 0)) {
      bytes.push(byte)
      return bytes
    }
    bytes.push(byte | 0x80)
  }
}

/** Encodes a signed 64-bit integer as LEB128. */
export const signed64 = (value: bigint): Code => {
  const bytes: Array<number> = []
  let rest = BigInt.asIntN(64, value)
  for (;;) {
    const byte = Number(rest & 0x7fn)
    rest >>= 7n
    if ((rest === 0n && (byte & 0x40) === 0) || (rest === -1n && (byte & 0x40) !== 0)) {
      bytes.push(byte)
      return bytes
    }
    bytes.push(byte | 0x80)
  }
}

/** Collects bytes in a buffer that doubles when it is full. */
class ByteSink {
  private bytes = new Uint8Array(1024)
  private length = 0

  push(code: Code): void {
    if (typeof code === "number") {
      if (this.length === this.bytes.length) this.grow(this.length + 1)
      this.bytes[this.length++] = code
    } else {
      for (let i = 0; i < code.length; i++) this.push(code[i])
    }
  }

  append(bytes: Uint8Array): void {
    if (this.length + bytes.length > this.bytes.length) this.grow(this.length + bytes.length)
    this.bytes.set(bytes, this.length)
    this.length += bytes.length
  }

  private grow(needed: number): void {
    const larger = new Uint8Array(Math.max(needed, this.bytes.length * 2))
    larger.set(this.bytes.subarray(0, this.length))
    this.bytes = larger
  }

  /** Returns the collected bytes and empties the sink. */
  finish(): Uint8Array<ArrayBuffer> {
    const bytes = this.bytes.slice(0, this.length)
    this.length = 0
    return bytes
  }
}

/** One buffer for everything that is flattened, so that it grows only once. */
const scratch = new ByteSink()

export const flatten = (code: Code): Uint8Array<ArrayBuffer> => {
  scratch.push(code)
  return scratch.finish()
}

export interface FunctionType {
  readonly params: ReadonlyArray<ValueType>
  readonly results: ReadonlyArray<ValueType>
}

const vector = (items: ReadonlyArray<Code>): Code => [unsigned(items.length), items]
const name = (text: string): Code => {
  const bytes = utf8.encode(text)
  return [unsigned(bytes.length), [...bytes]]
}

/** Encodes the declarations of locals, in runs of one type. */
const declarations = (locals: ReadonlyArray<ValueType>): Code => {
  const runs: Array<Code> = []
  for (let i = 0; i < locals.length;) {
    let end = i
    while (end < locals.length && locals[end] === locals[i]) end++
    runs.push([unsigned(end - i), typeBytes[locals[i]]])
    i = end
  }
  return vector(runs)
}

/** Computes the FNV-1a hash of bytes. */
const hash = (bytes: Uint8Array): number => {
  let word = 0x811c9dc5
  for (let i = 0; i < bytes.length; i++) word = Math.imul(word ^ bytes[i], 0x01000193)
  return word
}

/** Builds a module. Functions with parameters are stored once if their type and bytes are equal. */
export class ModuleBuilder {
  private readonly types: Array<FunctionType> = []
  private readonly functions: Array<{ readonly type: number; readonly body: Uint8Array }> = []
  private readonly byHash = new Map<number, Array<number>>()
  private readonly exported: Array<Code> = []
  private readonly segments: Array<{ readonly address: number; readonly bytes: Uint8Array }> = []

  /** Adds a function and returns its index. */
  define(type: FunctionType, locals: ReadonlyArray<ValueType>, code: Code): number {
    const body = flatten([declarations(locals), code, 0x0b])
    const typeIndex = this.typeIndex(type)
    // A function without parameters contains its addresses, so no other one equals it.
    const key = type.params.length === 0 ? undefined : hash(body)
    const alike = key === undefined ? [] : (this.byHash.get(key) ?? [])
    const existing = alike.find((at) => {
      const other = this.functions[at]
      return (
        other.type === typeIndex && other.body.length === body.length && other.body.every((byte, i) => byte === body[i])
      )
    })
    if (existing !== undefined) return existing
    const index = this.functions.length
    this.functions.push({ type: typeIndex, body })
    if (key !== undefined) this.byHash.set(key, [...alike, index])
    return index
  }

  export(exportName: string, index: number): void {
    this.exported.push([name(exportName), 0x00, unsigned(index)])
  }

  /** Sets the initial content of the memory at an address. */
  data(address: number, bytes: Uint8Array): void {
    this.segments.push({ address, bytes })
  }

  /** Returns the bytes of the module, whose memory has exactly `pages` pages of 64 KiB and is exported as `memory`. */
  encode(pages: number): Uint8Array<ArrayBuffer> {
    const sink = new ByteSink()
    const section = (id: number, content: Uint8Array): void => {
      sink.push([id, unsigned(content.length)])
      sink.append(content)
    }
    sink.push([0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00])
    section(
      1,
      flatten(
        vector(
          this.types.map((type) => [
            0x60,
            vector(type.params.map((param) => typeBytes[param])),
            vector(type.results.map((result) => typeBytes[result])),
          ]),
        ),
      ),
    )
    section(3, flatten(vector(this.functions.map((entry) => unsigned(entry.type)))))
    section(5, flatten(vector([[0x01, unsigned(pages), unsigned(pages)]])))
    section(7, flatten(vector([...this.exported, [name("memory"), 0x02, 0x00]])))
    const code = new ByteSink()
    code.push(unsigned(this.functions.length))
    for (const entry of this.functions) {
      code.push(unsigned(entry.body.length))
      code.append(entry.body)
    }
    section(10, code.finish())
    const data = new ByteSink()
    data.push(unsigned(this.segments.length))
    for (const segment of this.segments) {
      data.push([0x00, 0x41, signed(segment.address), 0x0b, unsigned(segment.bytes.length)])
      data.append(segment.bytes)
    }
    section(11, data.finish())
    return sink.finish()
  }

  private typeIndex(type: FunctionType): number {
    const same = (a: ReadonlyArray<ValueType>, b: ReadonlyArray<ValueType>): boolean =>
      a.length === b.length && a.every((value, i) => value === b[i])
    const index = this.types.findIndex((one) => same(one.params, type.params) && same(one.results, type.results))
    if (index >= 0) return index
    this.types.push(type)
    return this.types.length - 1
  }
}
