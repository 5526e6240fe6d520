import { assert, describe, it } from "vitest"
import { decode, encode, metadata, SafetensorsError } from "../../src/checkpoint/safetensors.ts"

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
  const width = { F64: 8, F32: 4, I32: 4, U8: 1 }[dtype as "F64" | "F32" | "I32" | "U8"]
  const numbers: Array<number> = []
  for (let at = start; at < end; at += width) {
    if (dtype === "F64") numbers.push(view.getFloat64(at, true))
    if (dtype === "F32") numbers.push(view.getFloat32(at, true))
    if (dtype === "I32") numbers.push(view.getInt32(at, true))
    if (dtype === "U8") numbers.push(view.getUint8(at))
  }
  return { dtype, shape, numbers, begin: start }
}

const four = {
  weight: { shape: [2, 2], data: Float32Array.of(1, -2, 0.5, Infinity) },
  mask: { shape: [3], data: Uint8Array.of(1, 0, 255) },
  count: { shape: [], data: Int32Array.of(-7) },
  moments: { shape: [1, 2], data: Float64Array.of(Math.PI, -0) },
  nothing: { shape: [0, 5], data: new Float32Array(0) },
}

describe("safetensors", () => {
  it("are these bytes", () => {
    const bytes = encode({ b: { shape: [1], data: Float32Array.of(1) } }, { format: "pt" })
    const header = '{"__metadata__":{"format":"pt"},"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}'
    const padded = header.padEnd(Math.ceil(header.length / 8) * 8)
    assert.deepEqual([...bytes], [...file(padded, [0, 0, 0x80, 0x3f])])
    assert.deepEqual(metadata(bytes), { format: "pt" })
  })

  it("come back as they were", () => {
    assert.deepEqual(decode(encode(four)), four)
    assert.deepEqual(metadata(encode(four)), {})
    assert.deepEqual(decode(encode({})), {})
  })

  it("are read the same by a reader made from the format's text, each number at a multiple of its width", () => {
    const bytes = encode(four)
    for (const [name, { shape, data }] of Object.entries(four)) {
      const found = readAlone(bytes, name)
      assert.deepEqual([found.shape, found.numbers], [shape, [...data]], name)
      assert.strictEqual(found.begin % data.BYTES_PER_ELEMENT, 0, name)
    }
  })

  it("are the same bytes in whatever order the tensors come", () => {
    assert.deepEqual(encode(Object.fromEntries(Object.entries(four).reverse())), encode(four))
  })

  it("are read from the middle of a buffer, and don't hold on to it", () => {
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
    ["too short", Uint8Array.of(1, 2, 3), "the file has 3 bytes, less than its first field"],
    ["a header beyond the end", file("{}").fill(3, 0, 1), "the header's 3 bytes do not fit in the file's 10"],
    ["a huge header", file("{}").fill(255, 0, 8), /^a header of 1844\d+ bytes; 100000000 are allowed$/],
    ["no object", file("[]"), `the header does not begin with "{"`],
    ["no JSON", file("{oops"), /^the header is not JSON: /],
    ["no description", file(`{"a":1}`), /^the header does not describe tensors: .*\["a"\]/],
    ["an unknown kind", file(`{"a":${entry("[1]", "[0,2]", "F8_E4M3")}}`, [0, 0]), /"F64" \| "I64"/],
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
    ["a tail", file(`{"a":${entry("[1]", "[0,4]")}}`, [0, 0, 0, 0, 9]), "1 bytes after the last tensor"],
    [
      "a size beyond all numbers",
      file(`{"a":${entry("[9007199254740991,9007199254740991,0]", "[0,4]")}}`, [0, 0, 0, 0]),
      `tensor "a" has 4 bytes, its shape [9007199254740991, 9007199254740991, 0] needs 0`,
    ],
  ])("with %s are refused", (_, bytes, message) => {
    assert.throws(() => decode(bytes), SafetensorsError, message)
  })

  it.each([
    ["fewer numbers than its shape", { a: { shape: [2], data: Float32Array.of(1) } }, `tensor "a" has 1 numbers`],
    ["the name of the metadata", { __metadata__: { shape: [1], data: Uint8Array.of(1) } }, "a tensor cannot be named"],
  ])("are not made of a tensor with %s", (_, tensors, message) => {
    assert.throws(() => encode(tensors), SafetensorsError, message)
  })

  it("with metadata that isn't text are refused", () => {
    assert.throws(
      () => metadata(file(`{"__metadata__":{"a":1}}`)),
      SafetensorsError,
      "the metadata is not text by name",
    )
  })
})
