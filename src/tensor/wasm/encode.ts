/**
 * Encodes WebAssembly modules as bytes, with the features that our modules (`tensor/graph/wasm`, `rl/returns/simd.ts`)
 * need: functions over one memory that the module exports, with constants in data segments (initial contents of the
 * memory). The module owns the memory, or imports one that threads share.
 *
 * Code is a tree of bytes (`WasmCode`), so that expressions are composed without copying, and flattened once at the
 * end.
 */
import { utf8 } from "../../base/text/utf8.ts"
import { ByteWriter } from "../../base/formats/ByteWriter.ts"

export type ValueType = "i32" | "i64" | "f32" | "f64" | "v128"

/** Bytes in nested arrays of any depth. */
export type WasmCode = number | Uint8Array | ReadonlyArray<WasmCode>

const typeBytes: Readonly<Record<ValueType, number>> = { i32: 0x7f, i64: 0x7e, f32: 0x7d, f64: 0x7c, v128: 0x7b }

/** Encodes an unsigned integer as LEB128, as modules hold integers: seven bits per byte, the lowest first. */
export const unsigned = (value: number): WasmCode => {
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
export const signed = (value: number): WasmCode => (value >= 0 && value < 0x40 ? value : signed64(BigInt(value | 0)))

/** Encodes a signed 64-bit integer as LEB128. */
export const signed64 = (value: bigint): WasmCode => {
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

const append = (to: ByteWriter, code: Exclude<WasmCode, number>): void => {
  if (code instanceof Uint8Array) {
    to.piece(code)
    return
  }
  for (let i = 0; i < code.length; i++) {
    const part = code[i]
    if (typeof part === "number") to.byte(part)
    else append(to, part)
  }
}

/** The buffer that all calls of `flatten` share, so that not every call must grow one. */
const scratch = new ByteWriter()

/** Copies the bytes of a tree into one new array. */
export const flatten = (code: WasmCode): Uint8Array<ArrayBuffer> => {
  scratch.clear()
  append(scratch, [code])
  return new Uint8Array(scratch.written)
}

export interface FunctionType {
  readonly params: ReadonlyArray<ValueType>
  readonly results: ReadonlyArray<ValueType>
}

const vector = (items: ReadonlyArray<WasmCode>): WasmCode => [unsigned(items.length), items]
/** Encodes the number of bytes, then the bytes. */
const sized = (bytes: Uint8Array): WasmCode => [unsigned(bytes.length), bytes]
const name = (text: string): WasmCode => sized(utf8.encode(text))
const section = (id: number, items: ReadonlyArray<WasmCode>): WasmCode => [id, sized(flatten(vector(items)))]

/** Encodes a function's local variables as counts and types: successive variables of one type share a count. */
const declarations = (locals: ReadonlyArray<ValueType>): WasmCode => {
  const groups: Array<WasmCode> = []
  for (let i = 0; i < locals.length;) {
    let end = i
    while (end < locals.length && locals[end] === locals[i]) end++
    groups.push([unsigned(end - i), typeBytes[locals[i]]])
    i = end
  }
  return vector(groups)
}

/** Computes the FNV-1a hash of bytes. */
const hash = (bytes: Uint8Array): number => {
  let word = 0x811c9dc5
  for (let i = 0; i < bytes.length; i++) word = Math.imul(word ^ bytes[i], 0x01000193)
  return word
}

/** Initial content of the memory, at an address. */
export interface Segment {
  readonly address: number
  readonly bytes: Uint8Array
}

/** Collects functions, exports and data, and encodes them as a module. */
export class ModuleBuilder {
  private readonly types: Array<FunctionType> = []
  private readonly functions: Array<{ readonly type: number; body: Uint8Array }> = []
  private readonly byHash = new Map<number, Array<number>>()
  private readonly exported: Array<WasmCode> = []
  private readonly names: Array<WasmCode> = []
  /** The initial contents of the memory. */
  readonly segments: Array<Segment> = []

  /**
   * Adds a function and returns its index; an equal function with parameters is not added again. Profilers and debuggers
   * show the function's name.
   */
  define(type: FunctionType, locals: ReadonlyArray<ValueType>, code: WasmCode, functionName?: string): number {
    const body = flatten([declarations(locals), code, 0x0b])
    const typeIndex = this.typeIndex(type)
    // A function without parameters has the addresses of its arrays in its code, so no other function can equal it.
    const key = type.params.length === 0 ? undefined : hash(body)
    const candidates = key === undefined ? [] : (this.byHash.get(key) ?? [])
    const existing = candidates.find((at) => {
      const other = this.functions[at]
      return (
        other.type === typeIndex && other.body.length === body.length && other.body.every((byte, i) => byte === body[i])
      )
    })
    if (existing !== undefined) return existing
    const index = this.functions.length
    this.functions.push({ type: typeIndex, body })
    if (functionName !== undefined) this.names.push([unsigned(index), name(functionName)])
    if (key !== undefined) this.byHash.set(key, [...candidates, index])
    return index
  }

  /** Reserves the index of a function that `complete` defines later, so that functions before it can call it. */
  declare(type: FunctionType): number {
    return this.functions.push({ type: this.typeIndex(type), body: new Uint8Array() }) - 1
  }

  complete(index: number, locals: ReadonlyArray<ValueType>, code: WasmCode): void {
    this.functions[index].body = flatten([declarations(locals), code, 0x0b])
  }

  export(exportName: string, index: number): void {
    this.exported.push([name(exportName), 0x00, unsigned(index)])
  }

  /** Sets the initial content of the memory at an address. */
  data(address: number, bytes: Uint8Array): void {
    this.segments.push({ address, bytes })
  }

  /**
   * Returns the bytes of the module. Its memory has `pages` pages of 64 KiB, can grow to `mostPages` and is exported as
   * `memory`. With `shared`, the module imports a shared memory of this size as `env.memory`. Then it does not contain
   * its `segments`, since each thread that instantiates the module would write them again; the caller writes them.
   */
  encode(pages: number, mostPages: number = pages, shared = false): Uint8Array<ArrayBuffer> {
    const types = this.types.map(({ params, results }) => [
      0x60,
      vector(params.map((param) => typeBytes[param])),
      vector(results.map((result) => typeBytes[result])),
    ])
    const signatures = this.functions.map(({ type }) => unsigned(type))
    const bodies = this.functions.map(({ body }) => sized(body))
    const initial = shared ? [] : this.segments
    const segments = initial.map(({ address, bytes }) => [0x00, 0x41, signed(address), 0x0b, sized(bytes)])
    // First the name and version of the format. The sections are: types, imports, functions, memory, exports, code, data and names.
    return flatten([
      [0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00],
      section(1, types),
      shared ? section(2, [[name("env"), name("memory"), 0x02, 0x03, unsigned(pages), unsigned(mostPages)]]) : [],
      section(3, signatures),
      shared ? [] : section(5, [[0x01, unsigned(pages), unsigned(mostPages)]]),
      section(7, [...this.exported, [name("memory"), 0x02, 0x00]]),
      section(10, bodies),
      section(11, segments),
      this.names.length === 0 ? [] : [0, sized(flatten([name("name"), 1, sized(flatten(vector(this.names)))]))],
    ])
  }

  private typeIndex(type: FunctionType): number {
    const textOf = ({ params, results }: FunctionType): string => `${params.join()} ${results.join()}`
    const index = this.types.findIndex((other) => textOf(other) === textOf(type))
    return index >= 0 ? index : this.types.push(type) - 1
  }
}
