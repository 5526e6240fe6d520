/** Files as `torch.save` lays them out, written by hand: a pickle's instructions, and a zip archive that stores them. */
export type Bytes = ReadonlyArray<number>

const text = (value: string): Bytes => [...new TextEncoder().encode(value)]
const u16 = (value: number): Bytes => [value & 255, (value >> 8) & 255]
const u32 = (value: number): Bytes => [...u16(value & 0xffff), ...u16(value >>> 16)]
const u64 = (value: number): Bytes => [...u32(value % 2 ** 32), ...u32(Math.floor(value / 2 ** 32))]

// A pickle

export const op = {
  mark: 0x28,
  reduce: 0x52,
  build: 0x62,
  emptyDict: 0x7d,
  emptyTuple: 0x29,
  emptyList: 0x5d,
  setItems: 0x75,
  setItem: 0x73,
  append: 0x61,
  persistentId: 0x51,
  stop: 0x2e,
}

export const string = (value: string): Bytes => [0x58, ...u32(text(value).length), ...text(value)]
export const int = (value: number): Bytes => [0x4a, ...u32(value)]
export const global = (module: string, name: string): Bytes => [0x63, ...text(`${module}\n${name}\n`)]
export const tuple = (...items: ReadonlyArray<Bytes>): Bytes => [op.mark, ...items.flat(), 0x74]
export const orderedDict: Bytes = [...global("collections", "OrderedDict"), op.emptyTuple, op.reduce]
export const dict = (entries: Readonly<Record<string, Bytes>>, empty: Bytes = [op.emptyDict]): Bytes => [
  ...empty,
  op.mark,
  ...Object.entries(entries).flatMap(([key, value]) => [...string(key), ...value]),
  op.setItems,
]
export const pickle = (value: Bytes): Bytes => [0x80, 2, ...value, op.stop]

export interface TensorPickle {
  readonly type?: string
  readonly key?: string
  readonly elements: number
  readonly offset?: number
  readonly shape: ReadonlyArray<number>
  readonly stride: ReadonlyArray<number>
}

export const tensor = ({
  type = "FloatStorage",
  key = "0",
  elements,
  offset = 0,
  shape,
  stride,
}: TensorPickle): Bytes => [
  ...global("torch._utils", "_rebuild_tensor_v2"),
  ...tuple(
    [...tuple(string("storage"), global("torch", type), string(key), string("cpu"), int(elements)), op.persistentId],
    int(offset),
    tuple(...shape.map(int)),
    tuple(...stride.map(int)),
    [0x89],
    orderedDict,
  ),
  op.reduce,
]

export const parameter = (of: Bytes): Bytes => [
  ...global("torch._utils", "_rebuild_parameter"),
  ...tuple(of, [0x88], orderedDict),
  op.reduce,
]

// An archive

export interface ZipOptions {
  readonly zip64?: boolean
  readonly method?: number
  readonly flags?: number
  readonly comment?: string
  readonly crc?: (bytes: Bytes) => number
}

const crc32 = (bytes: Bytes): number => {
  let sum = 0xffffffff
  for (const byte of bytes) {
    sum ^= byte
    for (let bit = 0; bit < 8; bit++) sum = sum & 1 ? (sum >>> 1) ^ 0xedb88320 : sum >>> 1
  }
  return ~sum >>> 0
}

/** Contents at multiples of 64, as torch pads them by an extra field. */
export const zip = (entries: ReadonlyArray<readonly [string, Bytes]>, options: ZipOptions = {}): Uint8Array => {
  const { zip64 = false, method = 0, flags = 0, comment = "", crc = crc32 } = options
  const out: Array<number> = []
  const directory: Array<number> = []
  for (const [name, contents] of entries) {
    const at = out.length
    const common = [...u16(flags), ...u16(method), ...u32(0), ...u32(crc(contents))]
    const room = (64 - ((at + 30 + text(name).length + 4) % 64)) % 64
    const padding = [...text("FB"), ...u16(room), ...new Array<number>(room).fill(0x5a)]
    const sizes = [...u32(contents.length), ...u32(contents.length)]
    out.push(...u32(0x04034b50), ...u16(0), ...common, ...sizes, ...u16(text(name).length), ...u16(padding.length))
    out.push(...text(name), ...padding)
    // A spread of very many bytes would exceed the stack.
    for (const byte of contents) out.push(byte)
    const wide = [...u16(1), ...u16(24), ...u64(contents.length), ...u64(contents.length), ...u64(at)]
    const extra = zip64 ? [...text("XX"), ...u16(1), 0, ...wide] : []
    directory.push(...u32(0x02014b50), ...u32(0), ...common)
    directory.push(...(zip64 ? [...u32(0xffffffff), ...u32(0xffffffff)] : sizes))
    directory.push(...u16(text(name).length), ...u16(extra.length), ...u16(0), ...u16(0), ...u16(0), ...u32(0))
    directory.push(...u32(zip64 ? 0xffffffff : at), ...text(name), ...extra)
  }
  const start = out.length
  out.push(...directory)
  if (zip64) {
    const record = out.length
    const counts = [...u64(entries.length), ...u64(entries.length), ...u64(directory.length), ...u64(start)]
    out.push(...u32(0x06064b50), ...u64(44), ...u16(0), ...u16(0), ...u32(0), ...u32(0), ...counts)
    out.push(...u32(0x07064b50), ...u32(0), ...u64(record), ...u32(1))
  }
  const count = u16(zip64 ? 0xffff : entries.length)
  const place = zip64 ? [...u32(0xffffffff), ...u32(0xffffffff)] : [...u32(directory.length), ...u32(start)]
  out.push(...u32(0x06054b50), ...u32(0), ...count, ...count, ...place, ...u16(text(comment).length), ...text(comment))
  return Uint8Array.from(out)
}

/** An archive of entries without checksums whose contents are all entries after them. */
export const overlapping = (entries: number): Uint8Array => {
  const headerBytes = 30 + 8
  const region = entries * headerBytes
  const out = new DataView(new ArrayBuffer(region + entries * (46 + 8) + 22 + 20 + 56))
  const write = (at: number, bytes: Bytes) => new Uint8Array(out.buffer).set(bytes, at)
  for (let index = 0; index < entries; index++) {
    const name = text(`a/${String(index).padStart(6, "0")}`)
    const at = index * headerBytes
    const bytes = region - at - headerBytes
    write(at, [...u32(0x04034b50), ...new Array<number>(14).fill(0), ...u32(bytes), ...u32(bytes), 8, 0, 0, 0, ...name])
    const entry = region + index * 54
    const rest = [...new Array<number>(12).fill(0), ...u32(at)]
    write(entry, [
      ...u32(0x02014b50),
      ...new Array<number>(16).fill(0),
      ...u32(bytes),
      ...u32(bytes),
      8,
      0,
      ...rest,
      ...name,
    ])
  }
  const end = region + entries * 54
  const counts = [...u64(entries), ...u64(entries), ...u64(entries * 54), ...u64(region)]
  write(end, [...u32(0x06064b50), ...u64(44), ...new Array<number>(12).fill(0), ...counts])
  write(end + 56, [...u32(0x07064b50), ...u32(0), ...u64(end), ...u32(1)])
  write(end + 76, [...u32(0x06054b50), ...u32(0), ...new Array<number>(12).fill(0xff), 0, 0])
  return new Uint8Array(out.buffer)
}

/** `data.pkl` with this value, and the storages by key. */
export const torchFile = (
  value: Bytes,
  storages: Readonly<Record<string, ArrayBufferView>> = {},
  options: ZipOptions & { readonly byteorder?: string } = {},
): Uint8Array =>
  zip(
    [
      ["archive/data.pkl", pickle(value)],
      ["archive/byteorder", text(options.byteorder ?? "little")],
      ...Object.entries(storages).map(([key, { buffer, byteOffset, byteLength }]): readonly [string, Bytes] => [
        `archive/data/${key}`,
        [...new Uint8Array(buffer, byteOffset, byteLength)],
      ]),
      ["archive/version", text("3\n")],
    ],
    options,
  )
