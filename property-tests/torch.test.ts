import * as fc from "fast-check"
import { readFileSync } from "node:fs"
import { assert, describe, it } from "vitest"
import { readPickle } from "../src/base/formats/torch/pickle.ts"
import { decode } from "../src/base/formats/torch/torch.ts"
import { dict, pickle, tensor, torchFile, zip } from "../test/base/formats/torchFile.ts"
import { tries } from "../test/house/tries.ts"
import { FormatError } from "../src/base/formats/FormatError.ts"

const real = new Uint8Array(readFileSync(new URL("../test/base/formats/data/state_dict.pt", import.meta.url)))

/** It is read, or refused with a FormatError. */
const isHandled = (read: () => unknown): void => {
  try {
    read()
  } catch (error) {
    assert.instanceOf(error, FormatError)
  }
}

/** A shape, one of its layouts in a storage, and where in the storage it begins. */
const view = fc
  .record({
    shape: fc.array(fc.integer({ min: 0, max: 4 }), { maxLength: 4 }),
    order: fc.infiniteStream(fc.nat()),
    step: fc.integer({ min: 0, max: 3 }),
    offset: fc.nat(5),
  })
  .map(({ shape, order, step, offset }) => {
    const axes = shape.map((_, axis) => ({ axis, key: order.next().value })).sort((a, b) => a.key - b.key)
    const stride = shape.map(() => 0)
    let next = step
    for (const { axis } of axes) {
      stride[axis] = next
      next *= Math.max(1, shape[axis])
    }
    const last = shape.includes(0) ? 0 : shape.reduce((at, size, axis) => at + (size - 1) * stride[axis], offset)
    return { shape, stride, offset, elements: last + 1 }
  })

/** The numbers of a view, from its definition. */
const numbersOf = (
  shape: ReadonlyArray<number>,
  stride: ReadonlyArray<number>,
  at: number,
  storage: Float32Array,
): ReadonlyArray<number> => {
  const [size, ...inner] = shape
  if (size === undefined) return [storage[at]]
  return Array.from({ length: size }, (_, index) =>
    numbersOf(inner, stride.slice(1), at + index * stride[0], storage),
  ).flat()
}

describe("a file of torch.save", () => {
  it("gives every view the numbers at its offset and strides", () => {
    fc.assert(
      fc.property(view, fc.boolean(), ({ shape, stride, offset, elements }, zip64) => {
        const storage = Float32Array.from({ length: elements }, (_, at) => at)
        const file = torchFile(dict({ a: tensor({ elements, shape, stride, offset }) }), { 0: storage }, { zip64 })
        const { a } = decode(file)
        assert.deepEqual(a.shape, shape)
        assert.deepEqual([...a.data], numbersOf(shape, stride, offset, storage))
      }),
      { numRuns: tries(300) },
    )
  })

  it("cut off anywhere is refused", () => {
    for (let size = 0; size < real.length; size++) assert.throws(() => decode(real.subarray(0, size)), FormatError)
  })

  it("with any bytes changed is read, or refused with a FormatError", () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.nat(), fc.nat(255)), { minLength: 1, maxLength: 6 }), (changes) => {
        const bytes = real.slice()
        for (const [at, value] of changes) bytes[at % bytes.length] = value
        isHandled(() => decode(bytes))
      }),
      { numRuns: tries(3000) },
    )
  })
})

describe("a pickle", () => {
  const good = pickle(dict({ a: tensor({ elements: 6, shape: [2, 3], stride: [3, 1] }), b: dict({}) }))
  // Mixes instructions that an attacker would use with those that are allowed, in any order.
  const instruction = fc.oneof(
    fc.constantFrom(
      ..."(.0a]}ehjqrtbcQRNGJKMXsu)\x80\x81\x82\x83\x84\x85\x86\x87\x88\x89\x8a\x8b\x8c\x92\x93\x94\x95"
        .split("")
        .map((character) => [character.charCodeAt(0)]),
    ),
    fc
      .constantFrom(
        "cos\nsystem\n",
        "ccollections\nOrderedDict\n",
        "ctorch._utils\n_rebuild_tensor_v2\n",
        "X\x01\0\0\0a",
      )
      .map((text) => [...new TextEncoder().encode(text)]),
    fc.uint8Array({ maxLength: 3 }).map((bytes) => [...bytes]),
  )

  it("of any instructions in any order is read, or refused with a FormatError", () => {
    fc.assert(
      fc.property(fc.array(instruction, { maxLength: 30 }), (instructions) => {
        isHandled(() => readPickle(Uint8Array.from([0x80, 2, ...instructions.flat(), 0x2e])))
      }),
      { numRuns: tries(5000) },
    )
  })

  it("with any bytes changed, in a good archive, is read, or refused with a FormatError", () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.nat(), fc.nat(255)), { minLength: 1, maxLength: 4 }), (changes) => {
        const bytes = [...good]
        for (const [at, value] of changes) bytes[at % bytes.length] = value
        isHandled(() =>
          decode(
            zip([
              ["a/data.pkl", bytes],
              ["a/data/0", new Array<number>(24).fill(0)],
            ]),
          ),
        )
      }),
      { numRuns: tries(2000) },
    )
  })
})
