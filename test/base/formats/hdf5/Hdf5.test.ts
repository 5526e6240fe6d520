import { assert, describe, it } from "vitest"
import { encode, type Hdf5Group } from "../../../../src/base/formats/hdf5/Hdf5.ts"
import { lookup3 } from "../../../../src/base/formats/hdf5/lookup3.ts"
import { checksum, type Found, read } from "./hdf5Reader.ts"
import { FormatError } from "../../../../src/base/formats/FormatError.ts"

const at = (file: Found, path: string): Found =>
  path
    .split("/")
    .filter((name) => name !== "")
    .reduce((node, name) => node.children?.[name] ?? assert.fail(`${path}: there is no "${name}"`), file)

const refused = (make: () => unknown): string => {
  try {
    make()
  } catch (error) {
    assert.instanceOf(error, FormatError)
    return error.message
  }
  return assert.fail("it was written")
}

describe("lookup3", () => {
  it("gives the published hashes of its author's examples", () => {
    const text = new TextEncoder().encode("Four score and seven years ago")
    for (const sum of [lookup3, checksum]) {
      assert.strictEqual(sum(new Uint8Array(0)), 0xdeadbeef)
      assert.strictEqual(sum(text), 0x17770551)
    }
  })
})

describe("an HDF5 file", () => {
  const data = Float32Array.of(1, -0, 3.5, Infinity, NaN, 1e-45)
  const tree: Hdf5Group = {
    attributes: { "": "x" },
    children: { numbers: { shape: [2, 3], data } },
  }

  it("begins with its signature, a superblock of version 2 and its length", () => {
    const bytes = encode({ children: {} })
    const start = [0x89, 0x48, 0x44, 0x46, 0x0d, 0x0a, 0x1a, 0x0a, 2, 8, 8, 0]
    assert.deepStrictEqual([...bytes.subarray(0, 12)], start)
    assert.strictEqual(new DataView(bytes.buffer).getBigUint64(28, true), BigInt(bytes.length))
    assert.deepEqual(read(bytes), { attributes: {}, children: {} })
  })

  it("holds groups, numbers and texts, also empty ones and very many", { tags: "slow" }, () => {
    const many = Object.fromEntries(
      Array.from({ length: 5000 }, (_, index) => [`text ${index}`, `${index} ü`.repeat(index % 7)]),
    )
    const tree: Hdf5Group = {
      attributes: { long: "x".repeat(200_000), empty: "" },
      children: {
        "a b": { attributes: many, children: {} },
        "ü 漢": { shape: [2, 3], data, attributes: { unit: "m" } },
        one: { shape: [], data: Float32Array.of(7) },
        none: { shape: [2, 0], data: new Float32Array(0) },
        // A part of a larger array.
        part: { shape: [2], data: data.subarray(2, 4) },
      },
    }
    const decoded = read(encode(tree))
    assert.deepEqual(decoded.attributes, tree.attributes)
    assert.deepEqual(at(decoded, "a b").attributes, many)
    assert.deepEqual(at(decoded, "ü 漢"), { attributes: { unit: "m" }, shape: [2, 3], data })
    assert.deepEqual(at(decoded, "one"), { attributes: {}, shape: [], data: Float32Array.of(7) })
    assert.deepEqual(at(decoded, "none"), { attributes: {}, shape: [2, 0], data: new Float32Array(0) })
    assert.deepEqual(at(decoded, "part").data, Float32Array.of(3.5, Infinity))
    assert.deepEqual(encode(tree), encode(tree))
  })

  it("refuses names, texts and shapes that HDF5 cannot hold", () => {
    const numbers = { shape: [2], data: new Float32Array(2) }
    const names = `expected a name other than "" and ".", without "/"`
    const text = "has a zero character or half of a surrogate pair; expected text that UTF-8 can hold"
    const cases: ReadonlyArray<readonly [string, Hdf5Group]> = [
      ["/: an attribute has an empty name; expected a name", tree],
      [`/: found a child named ""; ${names}`, { children: { "": numbers } }],
      [`/a: found a child named "b/c"; ${names}`, { children: { a: { children: { "b/c": numbers } } } }],
      [`/a: found a child named "."; ${names}`, { children: { a: { children: { ".": numbers } } } }],
      [`/: the value of the attribute "a" ${text}`, { attributes: { a: "x\0y" }, children: {} }],
      [`/: the value of the attribute "a" ${text}`, { attributes: { a: "\ud800" }, children: {} }],
      ["/a: expected 3 numbers for the shape [3], found 2", { children: { a: { ...numbers, shape: [3] } } }],
      [
        "/a: expected a shape of at most 32 whole numbers from 0, found [2, 0.5, 2]",
        { children: { a: { ...numbers, shape: [2, 0.5, 2] } } },
      ],
      ["/: a name in it is too long; expected less than 65535 bytes", { children: { ["x".repeat(70_000)]: numbers } }],
    ]
    for (const [message, group] of cases)
      assert.strictEqual(
        refused(() => encode(group)),
        message,
      )
  })
})
