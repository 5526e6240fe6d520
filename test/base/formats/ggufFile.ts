/** Writes GGUF files for tests, with whatever sizes are given. */

export interface GgufTensor {
  readonly name: string
  readonly shape: ReadonlyArray<number>
  /** The number of its type: 0 for F32. */
  readonly type: number
  readonly bytes: Uint8Array
}

const u32 = (value: number): Buffer => {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32LE(value)
  return bytes
}
const u64 = (value: number): Buffer => {
  const bytes = Buffer.alloc(8)
  bytes.writeBigUInt64LE(BigInt(value))
  return bytes
}
const text = (value: string): Buffer => Buffer.concat([u64(Buffer.byteLength(value)), Buffer.from(value)])

type GgufValue = string | number | ReadonlyArray<string>

const typed = (value: GgufValue): ReadonlyArray<Buffer> => {
  if (typeof value === "string") return [u32(8), text(value)]
  if (typeof value === "number") return [u32(4), u32(value)]
  return [u32(9), u32(8), u64(value.length), ...value.map(text)]
}

const alignment = 32
const padded = (length: number): number => Math.ceil(length / alignment) * alignment

export const ggufFile = (
  tensors: ReadonlyArray<GgufTensor>,
  keys: Readonly<Record<string, GgufValue>> = {},
): Uint8Array => {
  const parts: Array<Uint8Array> = [Buffer.from("GGUF"), u32(3), u64(tensors.length), u64(Object.keys(keys).length)]
  for (const [key, value] of Object.entries(keys)) parts.push(text(key), ...typed(value))
  let offset = 0
  for (const { name, shape, type, bytes } of tensors) {
    parts.push(text(name), u32(shape.length), ...shape.toReversed().map(u64), u32(type), u64(offset))
    offset += padded(bytes.length)
  }
  const header = Buffer.concat(parts)
  const numbers = tensors.flatMap(({ bytes }, at) => {
    const isLast = at === tensors.length - 1
    return [bytes, Buffer.alloc(isLast ? 0 : padded(bytes.length) - bytes.length)]
  })
  return new Uint8Array(Buffer.concat([header, Buffer.alloc(padded(header.length) - header.length), ...numbers]))
}
