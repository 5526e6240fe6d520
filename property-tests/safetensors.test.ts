import * as fc from "fast-check"
import { assert, describe, it } from "vitest"
import { decode, encode, metadata, type TensorEntries } from "../src/base/formats/safetensors.ts"
import { FormatError } from "../src/base/formats/FormatError.ts"

const shape = fc.array(fc.integer({ min: 0, max: 4 }), { maxLength: 3 })
const tensor = shape.chain((dimensions) => {
  const length = dimensions.reduce((size, dimension) => size * dimension, 1)
  const exactly = { minLength: length, maxLength: length }
  const data = fc.oneof(
    fc.float32Array(exactly),
    fc.float64Array(exactly),
    fc.int32Array(exactly),
    fc.uint8Array(exactly),
  )
  return data.map((numbers) => ({ shape: dimensions, data: numbers }))
})
const name = fc.string({ unit: "grapheme" }).filter((text) => text !== "__metadata__" && text !== "__proto__")
const tensors: fc.Arbitrary<TensorEntries> = fc.dictionary(name, tensor, { maxKeys: 6, noNullPrototype: true })
const remarks = fc.dictionary(name, fc.string(), { maxKeys: 3, noNullPrototype: true })

describe("safetensors", () => {
  it("round-trip with every bit, shape and metadata", () => {
    fc.assert(
      fc.property(tensors, remarks, (given, said) => {
        const bytes = encode(given, said)
        const back = decode(bytes)
        assert.deepEqual(Object.keys(back).sort(), Object.keys(given).sort())
        for (const [key, { shape: dimensions, data }] of Object.entries(given)) {
          assert.strictEqual(back[key].data.constructor, data.constructor)
          assert.deepEqual(back[key].shape, dimensions)
          assert.deepEqual([...new Uint8Array(back[key].data.buffer)], [...new Uint8Array(data.buffer)])
        }
        assert.deepEqual(metadata(bytes), said)
      }),
    )
  })

  it("are refused if cut off anywhere or followed by anything", () => {
    fc.assert(
      fc.property(tensors, fc.nat(), (given, at) => {
        const bytes = encode(given)
        assert.throws(() => decode(bytes.subarray(0, at % bytes.length)), FormatError)
        assert.throws(() => decode(Uint8Array.from([...bytes, 0])), FormatError)
      }),
    )
  })

  it("with any bytes changed are read, or refused with a FormatError", () => {
    fc.assert(
      fc.property(tensors, fc.array(fc.tuple(fc.nat(), fc.nat(255)), { minLength: 1 }), (given, changes) => {
        const bytes = encode(given)
        for (const [at, value] of changes) bytes[at % bytes.length] = value
        try {
          decode(bytes)
        } catch (error) {
          assert.instanceOf(error, FormatError)
        }
      }),
    )
  })
})
