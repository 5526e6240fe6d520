import * as fc from "fast-check"
import { assert, describe, it } from "vitest"
import { type Hdf5Dataset, encode, type Hdf5Group, type Hdf5Node } from "../src/base/formats/hdf5/Hdf5.ts"
import { lookup3 } from "../src/base/formats/hdf5/lookup3.ts"
import { checksum, type Found, read } from "../test/base/formats/hdf5/hdf5Reader.ts"

const text = fc.string({ unit: "grapheme" }).filter((value) => !value.includes("\0"))
const name = text.filter((value) => value !== "" && value !== "." && value !== "__proto__" && !value.includes("/"))
const attributes = fc.dictionary(name, text, { maxKeys: 4, noNullPrototype: true })

const dataset: fc.Arbitrary<Hdf5Dataset> = fc.array(fc.integer({ min: 0, max: 4 }), { maxLength: 3 }).chain((shape) => {
  const length = shape.reduce((product, size) => product * size, 1)
  return fc.record({
    attributes,
    shape: fc.constant(shape),
    data: fc.float32Array({ minLength: length, maxLength: length }),
  })
})

const { group } = fc.letrec<{ readonly node: Hdf5Node; readonly group: Hdf5Group }>((tie) => ({
  group: fc.record({
    attributes,
    children: fc.dictionary(name, tie("node"), { maxKeys: 4, noNullPrototype: true }),
  }),
  node: fc.oneof({ depthSize: "small", withCrossShrink: true }, dataset, tie("group")),
}))

const bits = (data: ArrayBufferView | undefined): ReadonlyArray<number> =>
  data === undefined ? [] : [...new Uint8Array(data.buffer, data.byteOffset, data.byteLength)]

const same = (found: Found, given: Hdf5Node): void => {
  assert.deepEqual(found.attributes, given.attributes)
  if ("data" in given) {
    assert.deepEqual(found.shape, given.shape)
    assert.deepEqual(bits(found.data), bits(given.data))
    return
  }
  assert.deepEqual(Object.keys(found.children ?? {}), Object.keys(given.children))
  for (const [key, child] of Object.entries(given.children)) same(found.children?.[key] ?? assert.fail(key), child)
}

describe("HDF5 files", () => {
  it("round-trip with every group, bit, shape and text", () => {
    fc.assert(fc.property(group, (given) => same(read(encode(given)), given)))
  })

  it("have the same bytes for the same tree", () => {
    fc.assert(fc.property(group, (given) => assert.deepEqual(encode(given), encode(structuredClone(given)))))
  })

  it("have checksums that detect a changed byte in any header", () => {
    // Without texts and numbers there is nothing but headers, each with its checksum, and what fills up to the next.
    const bare = fc.letrec<{ readonly group: Hdf5Group; readonly child: Hdf5Group }>((tie) => ({
      group: fc.record({ children: fc.dictionary(name, tie("child"), { maxKeys: 3, noNullPrototype: true }) }),
      child: fc.oneof({ depthSize: "small" }, fc.constant({ children: {} }), tie("group")),
    })).group
    fc.assert(
      fc.property(bare, fc.nat(), fc.integer({ min: 1, max: 255 }), (given, at, change) => {
        const bytes = encode(given)
        const where = at % bytes.length
        bytes[where] ^= change
        try {
          same(read(bytes), { attributes: {}, ...given })
        } catch {
          return
        }
        // Only what fills up may be anything.
        assert.strictEqual(bytes[where], change)
      }),
    )
  })

  it("have a checksum that is lookup3 of bytes of any length", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 60 }), (bytes) => assert.strictEqual(lookup3(bytes), checksum(bytes))),
    )
  })
})
