/** Reads `.wandb` files by the descriptions of LevelDB's log format and of protobuf's encoding, without the library's code. */
import { crc32 } from "node:zlib"

const block = 32 * 1024

/** Returns the records of a file, and the kinds of the chunks that they are in. */
export const recordsIn = (file: Uint8Array): { readonly records: Array<Buffer>; readonly chunks: Array<number> } => {
  const bytes = Buffer.from(file)
  if (bytes.toString("latin1", 0, 4) !== ":W&B" || bytes.readUInt16LE(4) !== 0xbee1 || bytes[6] !== 0) {
    throw new Error("no header")
  }
  const [records, chunks]: [Array<Buffer>, Array<number>] = [[], []]
  let parts: Array<Buffer> | undefined
  for (let at = 7; at < bytes.length;) {
    const rest = block - (at % block)
    if (rest < 7) {
      if (bytes.subarray(at, at + rest).some((byte) => byte !== 0)) throw new Error(`no zeros at ${at}`)
      at += rest
      continue
    }
    const [size, kind] = [bytes.readUInt16LE(at + 4), bytes[at + 6]]
    const content = bytes.subarray(at + 7, at + 7 + size)
    if (size > rest - 7 || content.length !== size) throw new Error(`a chunk of ${size} bytes at ${at}`)
    if (crc32(content, crc32(Buffer.of(kind))) !== bytes.readUInt32LE(at)) throw new Error(`wrong checksum at ${at}`)
    const isStart = kind === 1 || kind === 2
    if (isStart !== (parts === undefined)) throw new Error(`kind ${kind} at ${at}`)
    parts = [...(parts ?? []), content]
    if (kind === 1 || kind === 4) {
      records.push(Buffer.concat(parts))
      parts = undefined
    }
    chunks.push(kind)
    at += 7 + size
  }
  if (parts !== undefined) throw new Error("the last record is cut off")
  return { records, chunks }
}

/** Returns the values of a message by the numbers of its fields: texts and messages as bytes, whole numbers as numbers. */
export const fieldsIn = (bytes: Buffer): Readonly<Record<number, ReadonlyArray<Buffer | number>>> => {
  const fields: Record<number, Array<Buffer | number>> = {}
  let at = 0
  const varint = (): number => {
    let value = 0n
    for (let shift = 0n; ; shift += 7n) {
      const byte = bytes[at++]
      value |= BigInt(byte & 127) << shift
      if (byte < 128) return Number(value)
    }
  }
  while (at < bytes.length) {
    const key = varint()
    const type = key & 7
    if (type !== 0 && type !== 2) throw new Error(`type ${type}`)
    const number = varint()
    if (type === 2) at += number
    if (at > bytes.length) throw new Error("cut off")
    ;(fields[key >> 3] ??= []).push(type === 0 ? number : bytes.subarray(at - number, at))
  }
  return fields
}

const messageIn = (bytes: Buffer, field: number): Readonly<Record<number, ReadonlyArray<Buffer | number>>> => {
  const value = fieldsIn(bytes)[field]?.[0]
  if (!(value instanceof Buffer)) throw new Error(`field ${field} is no message`)
  return fieldsIn(value)
}

/** Returns the texts of a field. */
export const textsOf = (values: ReadonlyArray<Buffer | number> | undefined): ReadonlyArray<string> =>
  (values ?? []).map((value) => (typeof value === "number" ? String(value) : value.toString("utf8")))

/** Reads the items of a list: the name of each, with dots between its parts, and its JSON. */
const itemsOf = (values: ReadonlyArray<Buffer | number> | undefined): Readonly<Record<string, string>> =>
  Object.fromEntries(
    (values ?? []).map((value) => {
      if (typeof value === "number") throw new Error("no item")
      const { 1: key, 2: nested, 16: json } = fieldsIn(value)
      return [[...textsOf(key), ...textsOf(nested)].join("."), textsOf(json)[0]]
    }),
  )

/** Reads a run's log into the parts that the tests compare. The numbers of fields are those of `wandb_internal.proto`. */
export const runIn = (file: Uint8Array) => {
  const { records } = recordsIn(file)
  const kinds = records.map((record) => Number(Object.keys(fieldsIn(record)).find((field) => field !== "1")))
  const of = (kind: number) => records.filter((_, at) => kinds[at] === kind).map((record) => messageIn(record, kind))
  const [run] = of(17)
  const [exit] = of(18)
  const start = run[17][0]
  const git = run[21]?.[0]
  const config = run[4][0]
  return {
    kinds,
    numbers: records.map((record) => fieldsIn(record)[1][0]),
    run: Object.fromEntries([1, 2, 3, 6, 7, 8, 9].map((field) => [field, textsOf(run[field]).at(0)])),
    tags: textsOf(run[10]),
    config: itemsOf(config instanceof Buffer ? fieldsIn(config)[1] : []),
    start: start instanceof Buffer ? fieldsIn(start) : {},
    commit: git instanceof Buffer ? textsOf(fieldsIn(git)[2])[0] : undefined,
    history: of(2).map((row) => {
      const [step] = row[2]
      return { step: step instanceof Buffer ? fieldsIn(step)[1][0] : undefined, items: itemsOf(row[1]) }
    }),
    summary: itemsOf(of(3)[0][1]),
    files: (of(6)[0][1] ?? []).map((item) => (item instanceof Buffer ? fieldsIn(item) : {})),
    exit,
  }
}
