/**
 * A reader of HDF5 files by the format's specification, for tests: it shares nothing with the writer, checks every
 * checksum, and refuses what it does not know.
 */
export interface Found {
  readonly attributes: Readonly<Record<string, string>>
  readonly children?: Readonly<Record<string, Found>>
  readonly shape?: ReadonlyArray<number>
  readonly data?: Float32Array
}

const must = (condition: boolean, message: string): void => {
  if (!condition) throw new Error(`no such HDF5 file: ${message}`)
}

/** lookup3 as its author describes it, over integers without a limit that are cut to 32 bits. */
export const checksum = (bytes: Uint8Array): number => {
  const cut = (value: bigint): bigint => BigInt.asUintN(32, value)
  const turn = (value: bigint, by: bigint): bigint => cut(value << by) | (value >> (32n - by))
  const start = cut(0xdeadbeefn + BigInt(bytes.length))
  let [a, b, c] = [start, start, start]
  const blocks = Math.max(1, Math.ceil(bytes.length / 12))
  const zeros = new Uint8Array(blocks * 12)
  zeros.set(bytes)
  const view = new DataView(zeros.buffer)
  const add = (block: number): void => {
    a = cut(a + BigInt(view.getUint32(block * 12, true)))
    b = cut(b + BigInt(view.getUint32(block * 12 + 4, true)))
    c = cut(c + BigInt(view.getUint32(block * 12 + 8, true)))
  }
  const mix = (x: bigint, y: bigint, z: bigint, by: bigint): readonly [bigint, bigint] => [
    cut(x - z) ^ turn(z, by),
    cut(z + y),
  ]
  for (let block = 0; block < blocks - 1; block++) {
    add(block)
    ;[a, c] = mix(a, b, c, 4n)
    ;[b, a] = mix(b, c, a, 6n)
    ;[c, b] = mix(c, a, b, 8n)
    ;[a, c] = mix(a, b, c, 16n)
    ;[b, a] = mix(b, c, a, 19n)
    ;[c, b] = mix(c, a, b, 4n)
  }
  if (bytes.length === 0) return Number(c)
  add(blocks - 1)
  const end = (x: bigint, y: bigint, by: bigint): bigint => cut((x ^ y) - turn(y, by))
  c = end(c, b, 14n)
  a = end(a, c, 11n)
  b = end(b, a, 25n)
  c = end(c, b, 16n)
  a = end(a, c, 4n)
  b = end(b, a, 14n)
  c = end(c, b, 24n)
  return Number(c)
}

export const read = (file: Uint8Array): Found => {
  const view = new DataView(file.buffer, file.byteOffset, file.byteLength)
  const number = (at: number, width: number): number =>
    width === 8
      ? Number(view.getBigUint64(at, true))
      : width === 4
        ? view.getUint32(at, true)
        : width === 2
          ? view.getUint16(at, true)
          : view.getUint8(at)
  const text = (from: number, to: number): string =>
    new TextDecoder("utf-8", { fatal: true }).decode(file.subarray(from, to))
  const isNowhere = (at: number): boolean => file.subarray(at, at + 8).every((byte) => byte === 0xff)
  const sealed = (from: number, to: number): void =>
    must(checksum(file.subarray(from, to)) === number(to, 4), `the checksum at ${to}`)

  const shapeAt = (at: number): ReadonlyArray<number> => {
    must(number(at, 1) === 2 && number(at + 2, 1) === 0, "a dataspace of version 2 without maxima")
    const rank = number(at + 1, 1)
    must(number(at + 3, 1) === (rank === 0 ? 0 : 1), "a dataspace that is scalar or simple")
    return Array.from({ length: rank }, (_, index) => number(at + 4 + 8 * index, 8))
  }

  const heapText = (collection: number, wanted: number): Uint8Array => {
    must(text(collection, collection + 4) === "GCOL" && number(collection + 4, 1) === 1, "a heap")
    const size = number(collection + 8, 8)
    must(size >= 4096 && size % 8 === 0, "a heap that is large enough")
    let found: Uint8Array | undefined
    let at = collection + 16
    while (at < collection + size) {
      const [index, length] = [number(at, 2), number(at + 8, 8)]
      if (index === wanted) found = file.subarray(at + 16, at + 16 + length)
      // The free space counts its own header, and is the last.
      if (index === 0) must(at + length === collection + size, "free space up to the heap's end")
      at = index === 0 ? at + length : at + 16 + Math.ceil(length / 8) * 8
    }
    must(at === collection + size, "a heap that ends where it says")
    if (found === undefined) throw new Error(`no object ${wanted} in the heap`)
    return found
  }

  const attributeAt = (at: number): readonly [string, string] => {
    must(
      number(at, 1) === 3 && number(at + 1, 1) === 0 && number(at + 8, 1) === 1,
      "an attribute of version 3 in UTF-8",
    )
    const [nameSize, kindSize, spaceSize] = [number(at + 2, 2), number(at + 4, 2), number(at + 6, 2)]
    const kind = at + 9 + nameSize
    must(file[kind - 1] === 0, "a name that ends")
    // Class 9, text; null-terminated, UTF-8; sixteen bytes a value; of unsigned bytes.
    const expected = [0x19, 1, 1, 0, 16, 0, 0, 0, 0x10, 0, 0, 0, 1, 0, 0, 0, 0, 0, 8, 0]
    must(String([...file.subarray(kind, kind + kindSize)]) === String(expected), "a text's kind")
    must(spaceSize === 4 && shapeAt(kind + kindSize).length === 0, "one value")
    const value = kind + kindSize + spaceSize
    const length = number(value, 4)
    const bytes = length === 0 ? new Uint8Array(0) : heapText(number(value + 4, 8), number(value + 12, 4))
    must(bytes.length === length, "a text of that length")
    return [text(at + 9, kind - 1), new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes)]
  }

  const linkAt = (at: number): readonly [string, number] => {
    must(number(at, 1) === 1 && number(at + 1, 1) === 0b10001 && number(at + 2, 1) === 1, "a hard link in UTF-8")
    const length = number(at + 3, 2)
    const name = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(
      file.subarray(at + 5, at + 5 + length),
    )
    return [name, number(at + 5 + length, 8)]
  }

  const dataAt = (layout: number, shape: ReadonlyArray<number>): Float32Array => {
    must(number(layout, 1) === 3 && number(layout + 1, 1) === 1, "numbers that lie together")
    const count = shape.reduce((product, size) => product * size, 1)
    must(number(layout + 10, 8) === 4 * count, "as many bytes as the shape needs")
    if (count === 0) must(isNowhere(layout + 2), "no address for no numbers")
    const start = count === 0 ? 0 : number(layout + 2, 8)
    must(start % 8 === 0, "numbers that can be read in place")
    return Float32Array.from({ length: count }, (_, index) => view.getFloat32(start + 4 * index, true))
  }

  const nodeAt = (at: number): Found => {
    must(text(at, at + 4) === "OHDR" && number(at + 4, 1) === 2 && number(at + 5, 1) === 2, "an object header")
    const [start, end] = [at + 10, at + 10 + number(at + 6, 4)]
    sealed(at, end)
    const messages: Array<{ readonly type: number; readonly at: number; readonly size: number }> = []
    let next = start
    while (next < end) {
      messages.push({ type: number(next, 1), at: next + 4, size: number(next + 1, 2) })
      next += 4 + number(next + 1, 2)
    }
    must(next === end, "messages that fill their header")
    const all = (type: number): ReadonlyArray<number> =>
      messages.filter((one) => one.type === type).map((one) => one.at)
    const attributes = Object.fromEntries(all(0x0c).map(attributeAt))
    must(Object.keys(attributes).length === all(0x0c).length, "attributes of different names")
    must(all(0x15).length === (all(0x0c).length === 0 ? 0 : 1), "a word on where the attributes are")
    must(
      all(0x15).every((info) => number(info, 2) === 0 && isNowhere(info + 2) && isNowhere(info + 10)),
      "attributes that are in the header",
    )
    if (all(0x02).length === 1) {
      const links = all(0x06).map(linkAt)
      return { attributes, children: Object.fromEntries(links.map(([name, child]) => [name, nodeAt(child)])) }
    }
    const [[space], [kind], [layout]] = [all(0x01), all(0x03), all(0x08)]
    // Class 1, little-endian, an implied first bit, sign at 31; 4 bytes; 8 bits of exponent at 23, 23 of fraction, bias 127.
    const float32 = [0x11, 0x20, 31, 0, 4, 0, 0, 0, 0, 0, 32, 0, 23, 8, 0, 23, 127, 0, 0, 0]
    must(String([...file.subarray(kind, kind + 20)]) === String(float32), "float32")
    const shape = shapeAt(space)
    return { attributes, shape, data: dataAt(layout, shape) }
  }

  must(String([...file.subarray(0, 8)]) === String([0x89, 0x48, 0x44, 0x46, 0x0d, 0x0a, 0x1a, 0x0a]), "its signature")
  must(String([...file.subarray(8, 12)]) === "2,8,8,0" && number(12, 8) === 0 && isNowhere(20), "its superblock")
  must(number(28, 8) === file.length, "its end")
  sealed(0, 44)
  return nodeAt(number(36, 8))
}
