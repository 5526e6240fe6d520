import { assert, describe, it } from "vitest"
import { decode, encode, metadata } from "../../../src/base/formats/safetensors.ts"
import { FormatError } from "../../../src/base/formats/FormatError.ts"

/** A file as the format's text describes it: length, header, data. */
const file = (header: string, data: ReadonlyArray<number> = []): Uint8Array => {
  const text = new TextEncoder().encode(header)
  return Uint8Array.from([...new Uint8Array(BigUint64Array.of(BigInt(text.length)).buffer), ...text, ...data])
}

/** Reads one tensor by the format's text alone, without our reader. */
const readAlone = (bytes: Uint8Array, name: string) => {
  const view = new DataView(bytes.buffer, bytes.byteOffset)
  const length = Number(view.getBigUint64(0, true))
  const header = JSON.parse(new TextDecoder().decode(bytes.slice(8, 8 + length)))
  const { dtype, shape, data_offsets } = header[name]
  const [start, end] = data_offsets.map((offset: number) => 8 + length + offset)
  /** A float of 16 bits, if it is neither 0 nor below the normal ones nor infinite. */
  const small = (half: number, exponentBits: number): number => {
    const fractionBits = 15 - exponentBits
    const exponent = ((half & 0x7fff) >> fractionBits) - (2 ** (exponentBits - 1) - 1)
    return (half >> 15 ? -1 : 1) * 2 ** exponent * (1 + (half & (2 ** fractionBits - 1)) / 2 ** fractionBits)
  }
  const kinds: Readonly<Record<string, readonly [number, (at: number) => number]>> = {
    F64: [8, (at) => view.getFloat64(at, true)],
    I64: [8, (at) => Number(view.getBigInt64(at, true))],
    U64: [8, (at) => Number(view.getBigUint64(at, true))],
    F32: [4, (at) => view.getFloat32(at, true)],
    I32: [4, (at) => view.getInt32(at, true)],
    U32: [4, (at) => view.getUint32(at, true)],
    F16: [2, (at) => small(view.getUint16(at, true), 5)],
    BF16: [2, (at) => small(view.getUint16(at, true), 8)],
    I16: [2, (at) => view.getInt16(at, true)],
    U16: [2, (at) => view.getUint16(at, true)],
    I8: [1, (at) => view.getInt8(at)],
    U8: [1, (at) => view.getUint8(at)],
    BOOL: [1, (at) => view.getUint8(at)],
  }
  const [width, read] = kinds[dtype]
  const numbers: Array<number> = []
  for (let at = start; at < end; at += width) numbers.push(read(at))
  return { dtype, shape, numbers, begin: start, width }
}

const four = {
  weight: { shape: [2, 2], data: Float32Array.of(1, -2, 0.5, Infinity) },
  mask: { shape: [3], data: Uint8Array.of(1, 0, 255) },
  count: { shape: [], data: Int32Array.of(-7) },
  moments: { shape: [1, 2], data: Float64Array.of(Math.PI, -0) },
  nothing: { shape: [0, 5], data: new Float32Array(0) },
}

const everyKind = {
  u64: { shape: [1], data: Float64Array.of(2 ** 53 - 1), dtype: "U64" as const },
  i64: { shape: [2], data: Float64Array.of(-1, 2 ** 40), dtype: "I64" as const },
  u32: { shape: [1], data: Float64Array.of(2 ** 32 - 1), dtype: "U32" as const },
  bf16: { shape: [2], data: Float32Array.of(1, -3.140625), dtype: "BF16" as const },
  f16: { shape: [2], data: Float32Array.of(1, -65504), dtype: "F16" as const },
  u16: { shape: [1], data: Int32Array.of(65535), dtype: "U16" as const },
  i16: { shape: [1], data: Int32Array.of(-32768), dtype: "I16" as const },
  i8: { shape: [2], data: Int32Array.of(-128, 127), dtype: "I8" as const },
  bool: { shape: [2], data: Uint8Array.of(0, 1), dtype: "BOOL" as const },
}

describe("safetensors", () => {
  it("have exactly these bytes", () => {
    const bytes = encode({ b: { shape: [1], data: Float32Array.of(1) } }, { format: "pt" })
    const header = '{"__metadata__":{"format":"pt"},"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}'
    const padded = header.padEnd(Math.ceil(header.length / 8) * 8)
    assert.deepEqual([...bytes], [...file(padded, [0, 0, 0x80, 0x3f])])
    assert.deepEqual(metadata(bytes), { format: "pt" })
  })

  it("round-trip", () => {
    assert.deepEqual(decode(encode(four)), four)
    assert.deepEqual(metadata(encode(four)), {})
    assert.deepEqual(decode(encode({})), {})
  })

  it("are read alike by a reader written from the specification, with all numbers aligned", () => {
    const bytes = encode({ ...four, ...everyKind })
    for (const [name, { shape, data }] of Object.entries({ ...four, ...everyKind })) {
      const decoded = readAlone(bytes, name)
      assert.deepEqual([decoded.shape, decoded.numbers], [shape, [...data]], name)
      assert.strictEqual(decoded.begin % decoded.width, 0, name)
    }
  })

  it("hold every dtype, from wide to narrow, and round-trip", () => {
    const bytes = encode({ ...four, ...everyKind })
    assert.deepEqual(decode(bytes), { ...four, ...everyKind })
    const length = new DataView(bytes.buffer).getUint32(0, true)
    const header: Record<string, { dtype: string; data_offsets: [number, number] }> = JSON.parse(
      new TextDecoder().decode(bytes.subarray(8, 8 + length)),
    )
    assert.deepEqual(
      Object.values(header).map(({ dtype }) => dtype),
      ["U64", "I64", "F64", "F32", "F32", "U32", "I32", "BF16", "F16", "U16", "I16", "I8", "U8", "BOOL"],
    )
    const raw = (name: string) => {
      const [begin, end] = header[name].data_offsets
      return [...bytes.subarray(8 + length + begin, 8 + length + end)]
    }
    assert.deepEqual(raw("i64"), [255, 255, 255, 255, 255, 255, 255, 255, 0, 0, 0, 0, 0, 1, 0, 0])
    assert.deepEqual(raw("u32"), [255, 255, 255, 255])
    assert.deepEqual(raw("bf16"), [0x80, 0x3f, 0x49, 0xc0])
    assert.deepEqual(raw("f16"), [0x00, 0x3c, 0xff, 0xfb])
    assert.deepEqual(raw("i16"), [0x00, 0x80])
    assert.deepEqual(raw("i8"), [0x80, 0x7f])
  })

  it("take names that are numbers", () => {
    const tensor = { shape: [1], data: Uint8Array.of(1) }
    const bytes = encode({ "10": tensor, "9": tensor, a: tensor })
    const text = new TextDecoder().decode(bytes.subarray(8, 200))
    assert.isBelow(text.indexOf(`"10"`), text.indexOf(`"9"`))
    assert.deepEqual(Object.keys(decode(bytes)).sort(), ["10", "9", "a"])
  })

  it("have the same bytes for any order of the tensors", () => {
    assert.deepEqual(encode(Object.fromEntries(Object.entries(four).reverse())), encode(four))
  })

  it("are copied when read from the middle of a buffer", () => {
    const bytes = encode(four)
    const around = new Uint8Array(bytes.length + 3)
    around.set(bytes, 3)
    const decoded = decode(around.subarray(3))
    around.fill(0)
    assert.deepEqual(decoded, four)
  })

  const entry = (shape: string, offsets: string, dtype = "F32") =>
    `{"dtype":"${dtype}","shape":${shape},"data_offsets":${offsets}}`
  it.each([
    ["too short", Uint8Array.of(1, 2, 3), "the file has 3 bytes, expected at least 8"],
    ["a header beyond the end", file("{}").fill(3, 0, 1), "the header's 3 bytes do not fit in the file's 10"],
    [
      "very many tensors",
      file(JSON.stringify(Object.fromEntries(Array.from({ length: 200_001 }, (_, at) => [at, 0])))),
      /^the file has 200001 tensors; expected at most 200000$/,
    ],
    ["a huge header", file("{}").fill(255, 0, 8), /^the header has 1844\d+ bytes; expected at most 100000000$/],
    ["no object", file("[]"), `the header does not begin with "{"`],
    ["no JSON", file("{oops"), /^the header is not JSON: /],
    ["no description", file(`{"a":1}`), /^the header does not describe tensors: .*\["a"\]/],
    [
      "an unknown kind",
      file(`{"a":${entry("[1]", "[0,1]", "F8_E4M3")}}`, [0]),
      `tensor "a" has the unknown dtype F8_E4M3; expected one of U64, I64, F64, F32, U32, I32, BF16, F16, U16, I16, I8, U8, BOOL`,
    ],
    [
      "a tensor twice",
      file(`{"a":${entry("[1]", "[0,4]")},"\\u0061":${entry("[1]", "[0,4]")}}`, [0, 0, 0, 0]),
      `the header has "a" twice`,
    ],
    [
      "a field twice",
      file(`{"a":{"dtype":"U8","dtype":"I8","shape":[1],"data_offsets":[0,1]}}`, [0]),
      `has "dtype" twice`,
    ],
    ["no UTF-8", file("{}  ").fill(255, 10, 11), /^the header is not UTF-8: /],
    ["a byte order mark", file("\ufeff{}"), `the header does not begin with "{"`],
    [
      "an integer that no number holds",
      file(`{"a":${entry("[1]", "[0,8]", "I64")}}`, [1, 0, 0, 0, 0, 0, 0x20, 0]),
      `tensor "a": 9007199254740993 is beyond ±2^53`,
    ],
    [
      "an end before the begin",
      file(`{"a":${entry("[0]", "[4,0]")}}`, [0, 0, 0, 0]),
      `tensor "a" begins at 4, expected 0`,
    ],
    ["a negative size", file(`{"a":${entry("[-1]", "[0,4]")}}`, [0, 0, 0, 0]), /^the header does not describe tensors/],
    ["a fraction", file(`{"a":${entry("[1]", "[0,4.5]")}}`, [0, 0, 0, 0]), /^the header does not describe tensors/],
    [
      "a wrong size",
      file(`{"a":${entry("[2]", "[0,4]")}}`, [0, 0, 0, 0]),
      `tensor "a" has 4 bytes, its shape [2] needs 8`,
    ],
    ["a hole", file(`{"a":${entry("[1]", "[4,8]")}}`, new Array(8).fill(0)), `tensor "a" begins at 4, expected 0`],
    [
      "an overlap",
      file(`{"a":${entry("[2]", "[0,8]")},"b":${entry("[1]", "[4,8]")}}`, new Array(8).fill(0)),
      `tensor "b" begins at 4, expected 8`,
    ],
    ["a torn end", file(`{"a":${entry("[2]", "[0,8]")}}`, [0, 0]), `tensor "a" ends at 8, beyond the 2 bytes of data`],
    [
      "a tail",
      file(`{"a":${entry("[1]", "[0,4]")}}`, [0, 0, 0, 0, 9]),
      "expected the file to end after the last tensor, found 1 more bytes",
    ],
    [
      "a size beyond all numbers",
      file(`{"a":${entry("[9007199254740991,9007199254740991,0]", "[0,4]")}}`, [0, 0, 0, 0]),
      `tensor "a" has 4 bytes, its shape [9007199254740991, 9007199254740991, 0] needs 0`,
    ],
  ])("with %s are refused", (_, bytes, message) => {
    assert.throws(() => decode(bytes), FormatError, message)
  })

  it.each([
    ["fewer numbers than its shape", { a: { shape: [2], data: Float32Array.of(1) } }, `tensor "a" has 1 numbers`],
    [
      "numbers that its kind lacks",
      { a: { shape: [1], data: Int32Array.of(128), dtype: "I8" as const } },
      `tensor "a" cannot be written as I8: 128 is not a I8`,
    ],
    ["the name of the metadata", { __metadata__: { shape: [1], data: Uint8Array.of(1) } }, "a tensor cannot be named"],
  ])("are not made of a tensor with %s", (_, tensors, message) => {
    assert.throws(() => encode(tensors), FormatError, message)
  })

  it("with metadata that isn't text are refused", () => {
    assert.throws(() => metadata(file(`{"__metadata__":{"a":1}}`)), FormatError, "expected metadata of texts by name")
  })
})
