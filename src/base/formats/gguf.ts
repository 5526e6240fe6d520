/**
 * Reads GGUF files, the format of llama.cpp: metadata, a list of tensors, and their numbers, which may be quantized in
 * blocks. Tensors are read one at a time, as 32-bit floats.
 *
 * A file may claim sizes that it does not have. So each number is compared with the size of the file before memory is taken.
 *
 * @example
 * ```ts
 * const { metadata, tensors, read } = yield* open(files, "model-q4_k_m.gguf")
 * metadata["general.architecture"] // "qwen3"
 * const { shape, data } = yield* read("blk.0.attn_q.weight")
 * ```
 */
import { Effect, Stream } from "effect"
import { attempt } from "../config/attempt.ts"
import { utf8 } from "../text/utf8.ts"
import { FormatError } from "./FormatError.ts"
import { type BlockType, blockTypes, decodeBlocks } from "./ggufBlocks.ts"
import type { ReadableParts } from "./Weights.ts"

interface GgufTensor {
  /** The sizes of the axes, rows first, as in PyTorch. */
  readonly shape: ReadonlyArray<number>
  readonly type: BlockType
  /** The position of the first byte in the file. */
  readonly offset: number
  readonly bytes: number
}

/** A value of the metadata; arrays, such as the tokens of a vocabulary, are skipped. */
type GgufValue = string | number | boolean

interface GgufFile {
  readonly metadata: Readonly<Record<string, GgufValue>>
  readonly tensors: ReadonlyMap<string, GgufTensor>
  /** Reads a tensor as 32-bit floats. With `item`, it reads only the part with this index on the first axis. */
  readonly read: (
    name: string,
    item?: number,
  ) => Effect.Effect<{ readonly shape: ReadonlyArray<number>; readonly data: Float32Array }, FormatError>
}

/** The largest header, which has the tokens of a vocabulary. */
const largestHeader = 2 ** 28
const mostKeys = 65_536
const mostTensors = 65_536
const longestName = 1024
const mostAxes = 4
const largestAlignment = 65_536

const refuse = (message: string): never => {
  throw new FormatError({ message })
}

/** Opens a GGUF file: reads its header and checks it. */
export const open = Effect.fnUntraced(function* (
  files: ReadableParts,
  path: string,
): Effect.fn.Return<GgufFile, FormatError> {
  const wrong = (message: string) => new FormatError({ path, message: `${path}: ${message}` })
  const size = yield* Effect.mapError(files.size(path), ({ message }) => wrong(message))
  const part = Effect.fnUntraced(function* (offset: number, bytes: number) {
    const data = new Uint8Array(bytes)
    let filled = 0
    const pieces = files.stream(path, { offset, bytes })
    const copied = Stream.runForEach(pieces, (piece) =>
      Effect.sync(() => {
        data.set(piece.subarray(0, bytes - filled), filled)
        filled += piece.length
      }),
    )
    yield* Effect.mapError(copied, ({ message }) => wrong(message))
    if (filled >= bytes) return data
    return yield* wrong(`expected ${bytes} bytes at ${offset}, found ${filled}; the file was cut meanwhile`)
  })
  const parsed = (bytes: Uint8Array) =>
    Effect.mapError(
      attempt(() => headerOf(bytes, size), FormatError),
      ({ message }) => wrong(message),
    )
  let header: ReturnType<typeof headerOf> = null
  for (let length = 2 ** 16; header === null; length *= 16) {
    const bytes = Math.min(size, length, largestHeader)
    header = yield* parsed(yield* part(0, bytes))
    if (header === null && bytes === size) return yield* wrong("its header goes on after the end of the file")
    if (header === null && bytes === largestHeader) {
      return yield* wrong(`its header has more than ${largestHeader} bytes, the most that are read`)
    }
  }
  const { metadata, tensors } = header
  const read = Effect.fnUntraced(function* (name: string, item?: number) {
    const tensor = tensors.get(name)
    if (tensor === undefined) return yield* wrong(`there is no tensor "${name}"`)
    const { shape, type, offset, bytes } = tensor
    if (item === undefined) return { shape, data: decodeBlocks(type, yield* part(offset, bytes)) }
    const [items, ...rest] = shape
    if (rest.length === 0 || item >= items) return yield* wrong(`tensor "${name}": it has no item ${item}`)
    // Rows are whole blocks, so all items have the same number of bytes.
    const each = bytes / items
    return { shape: rest, data: decodeBlocks(type, yield* part(offset + item * each, each)) }
  })
  return { metadata, tensors, read }
})

/** Reads numbers and texts one after another. */
class Cursor {
  at = 0
  /** Whether the header goes on after the bytes that were read. */
  needsMore = false
  private readonly bytes: Uint8Array
  private readonly view: DataView
  /** The number of bytes of the whole file. */
  private readonly size: number

  constructor(bytes: Uint8Array, size: number) {
    this.bytes = bytes
    this.size = size
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  }

  /** Moves behind `count` bytes, and returns the position of the first. */
  take(count: number): number {
    const from = this.at
    if (from + count > this.size) refuse(`its header has a length of ${count} bytes at ${from}, which the file lacks`)
    if (from + count > this.bytes.length) {
      this.needsMore = true
      refuse("its header goes on after the bytes that were read")
    }
    this.at += count
    return from
  }

  u32(): number {
    return this.view.getUint32(this.take(4), true)
  }

  u64(): number {
    const value = this.view.getBigUint64(this.take(8), true)
    return value <= BigInt(Number.MAX_SAFE_INTEGER)
      ? Number(value)
      : refuse(`it has the number ${value}, which is too large`)
  }

  text(): string {
    const length = this.u64()
    const from = this.take(length)
    return utf8.decode(this.bytes.subarray(from, from + length))
  }

  number(type: NumberType): number | boolean {
    const from = this.take(widths[type])
    switch (type) {
      case 0:
        return this.view.getUint8(from)
      case 1:
        return this.view.getInt8(from)
      case 2:
        return this.view.getUint16(from, true)
      case 3:
        return this.view.getInt16(from, true)
      case 4:
        return this.view.getUint32(from, true)
      case 5:
        return this.view.getInt32(from, true)
      case 6:
        return this.view.getFloat32(from, true)
      case 7:
        return this.view.getUint8(from) !== 0
      case 10:
        return Number(this.view.getBigUint64(from, true))
      case 11:
        return Number(this.view.getBigInt64(from, true))
      case 12:
        return this.view.getFloat64(from, true)
    }
  }
}

/** The numbers of bytes of the types of numbers, by their numbers in the format. 8 is a text and 9 an array. */
const widths = { 0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8 } as const
type NumberType = keyof typeof widths
const isNumberType = (type: number): type is NumberType => Object.hasOwn(widths, type)

const valueOf = (cursor: Cursor, type: number, key: string): GgufValue | undefined => {
  if (type === 8) return cursor.text()
  if (isNumberType(type)) return cursor.number(type)
  if (type !== 9) return refuse(`${key}: expected a type of the format, found ${type}`)
  const item = cursor.u32()
  const count = cursor.u64()
  if (isNumberType(item)) cursor.take(count * widths[item])
  else if (item !== 8) return refuse(`${key}: expected an array of numbers or texts, found one of type ${item}`)
  else for (let index = 0; index < count; index++) cursor.take(cursor.u64())
  return undefined
}

/** Reads the header from the first bytes of a file of `size` bytes. Returns null if it has more bytes. */
const headerOf = (bytes: Uint8Array, size: number) => {
  const cursor = new Cursor(bytes, size)
  try {
    return parseHeader(cursor, size)
  } catch (error) {
    if (cursor.needsMore) return null
    throw error
  }
}

const parseHeader = (cursor: Cursor, size: number) => {
  if (size < 24 || cursor.u32() !== 0x46554747) refuse("expected a GGUF file, which begins with GGUF")
  const version = cursor.u32()
  if (version !== 2 && version !== 3) refuse(`expected version 2 or 3 of GGUF, found ${version}`)
  const [tensorCount, keyCount] = [cursor.u64(), cursor.u64()]
  if (tensorCount > mostTensors) refuse(`expected at most ${mostTensors} tensors, found ${tensorCount}`)
  if (keyCount > mostKeys) refuse(`expected at most ${mostKeys} keys, found ${keyCount}`)
  const metadata = new Map<string, GgufValue>()
  for (let index = 0; index < keyCount; index++) {
    const key = nameIn(cursor)
    const value = valueOf(cursor, cursor.u32(), key)
    if (value !== undefined) metadata.set(key, value)
  }
  const places = Array.from({ length: tensorCount }, () => placeIn(cursor))
  const alignment = metadata.get("general.alignment") ?? 32
  if (typeof alignment !== "number" || !Number.isInteger(alignment) || alignment < 1 || alignment > largestAlignment)
    return refuse(`general.alignment: expected an integer from 1 to ${largestAlignment}, found ${String(alignment)}`)
  const begin = Math.ceil(cursor.at / alignment) * alignment
  const tensors = new Map<string, GgufTensor>()
  for (const { name, shape, type, offset, bytes } of places) {
    if (tensors.has(name)) refuse(`there are two tensors "${name}"`)
    if (begin + offset + bytes > size)
      refuse(`tensor "${name}": expected ${bytes} bytes at ${begin + offset}, but the file has ${size}`)
    tensors.set(name, { shape, type, offset: begin + offset, bytes })
  }
  refuseShared(tensors)
  return { metadata: Object.fromEntries(metadata), tensors }
}

/** Refuses tensors that share bytes: a small file could otherwise become any number of large arrays. */
const refuseShared = (tensors: ReadonlyMap<string, GgufTensor>): void => {
  let end = 0
  for (const [name, { offset, bytes }] of [...tensors].sort(([, a], [, b]) => a.offset - b.offset)) {
    if (bytes === 0) continue
    if (offset < end) refuse(`tensor "${name}" begins at ${offset}, within the bytes of another tensor`)
    end = offset + bytes
  }
}

const nameIn = (cursor: Cursor): string => {
  const name = cursor.text()
  return name.length <= longestName
    ? name
    : refuse(`a name has ${name.length} characters; expected at most ${longestName}`)
}

const placeIn = (cursor: Cursor) => {
  const name = nameIn(cursor)
  const axes = cursor.u32()
  if (axes > mostAxes) refuse(`tensor "${name}": expected at most ${mostAxes} axes, found ${axes}`)
  const shape = Array.from({ length: axes }, () => cursor.u64()).reverse()
  const id = cursor.u32()
  const offset = cursor.u64()
  const type = blockTypes.find((one) => one.id === id)
  if (type === undefined) {
    const known = blockTypes.map((one) => one.name).join(", ")
    return refuse(`tensor "${name}": expected numbers of the types ${known}, found type ${id}`)
  }
  const count = shape.reduce((product, length) => product * length, 1)
  if (!Number.isSafeInteger(count)) refuse(`tensor "${name}": its shape [${shape.join(", ")}] is too large`)
  const row = shape.at(-1) ?? 1
  if (row % type.numbers !== 0)
    refuse(`tensor "${name}": expected rows of whole blocks of ${type.numbers} numbers, found ${row} numbers`)
  return { name, shape, type, offset, bytes: (count / type.numbers) * type.bytes }
}
