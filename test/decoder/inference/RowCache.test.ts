import { assert, describe, it } from "@effect/vitest"
import { RowCache } from "../../../src/decoder/inference/RowCache.ts"

const config = { layers: 2, keyValueHeads: 2, headDim: 2 }
const segmentLengths = [2, 4]
const numbersOfToken = 2 * config.layers * config.keyValueHeads * config.headDim

/** Makes a cache of three rows of two segments of different length, and a function that reads a token back in the order of its entries. */
const open = () => {
  const segments = segmentLengths.map((length) => {
    const array = () => new Float32Array(3 * config.keyValueHeads * config.headDim * length)
    return { length, layers: [0, 1].map(() => ({ keys: array(), values: array() })) }
  })
  const cache = new RowCache(config, segments)
  const read = (row: number, at: number): ReadonlyArray<number> => {
    const [segment, place] = at < segmentLengths[0] ? [0, at] : [1, at - segmentLengths[0]]
    const { layers, length } = segments[segment]
    return layers.flatMap(({ keys, values }) => [
      ...[0, 1, 2, 3].map((line) => keys[(row * 4 + line) * length + place]),
      ...[0, 1].flatMap((head) => {
        const from = ((row * 2 + head) * length + place) * 2
        return [values[from], values[from + 1]]
      }),
    ])
  }
  return { cache, read, segments }
}

const token = (from: number): Float32Array => Float32Array.from({ length: numbersOfToken }, (_, at) => from + at)
const none = Array.from({ length: numbersOfToken }, () => 0)

describe("RowCache", () => {
  it("holds the tokens of each row, over several segments", () => {
    const { cache, read } = open()
    for (const row of [0, 2]) for (let at = 0; at < 5; at++) cache.write(row, at, token(100 * row + 1000 * at), 0)
    for (const row of [0, 2])
      for (let at = 0; at < 5; at++) assert.deepStrictEqual(read(row, at), [...token(100 * row + 1000 * at)])
    assert.deepStrictEqual(read(1, 0), none)
  })

  it("begins a row with the tokens of pages, and leaves nothing of its last sequence", () => {
    const { cache, read, segments } = open()
    for (let at = 0; at < 6; at++) cache.write(1, at, new Float32Array(numbersOfToken).fill(NaN), 0)
    // Pages of two tokens: the numbers of a head follow each other token by token.
    const pageSize = 2
    const pages = new Float32Array(3 * pageSize * numbersOfToken)
    const put = (page: number, offset: number, entries: Float32Array) =>
      entries.forEach((value, at) => {
        const line = page * (numbersOfToken / 2) + Math.floor(at / 2)
        pages[(line * pageSize + offset) * 2 + (at % 2)] = value
      })
    put(2, 0, token(10))
    put(2, 1, token(20))
    put(0, 0, token(30))
    put(0, 1, token(40))
    cache.fill(1, { cache: pages, pageSize }, [2, 0], 4)
    assert.deepStrictEqual(
      [0, 1, 2, 3].map((at) => read(1, at)[0]),
      [10, 20, 30, 40],
    )
    assert.deepStrictEqual(read(1, 3), [...token(40)])
    const layers = segments.flatMap((segment) => segment.layers)
    assert.isTrue(layers.every(({ keys, values }) => [...keys, ...values].every(Number.isFinite)))
    assert.deepStrictEqual([read(1, 4), read(1, 5)], [none, none])
  })

  it("exchanges the sequences of two rows, over all segments that one of them has", () => {
    const { cache, read } = open()
    for (let at = 0; at < 2; at++) cache.write(2, at, token(10 * at), 0)
    for (let at = 0; at < 5; at++) cache.write(0, at, token(500 + at), 0)
    cache.swap(2, 0)
    assert.deepStrictEqual(
      [0, 1, 2, 3, 4].map((at) => read(0, at)),
      [[...token(0)], [...token(10)], none, none, none],
    )
    for (let at = 0; at < 5; at++) assert.deepStrictEqual(read(2, at), [...token(500 + at)])
    // The sequence goes on where it is now, and a new one begins in a row without the numbers of the last.
    cache.write(0, 2, token(20), 0)
    assert.deepStrictEqual(read(0, 2), [...token(20)])
    cache.fill(2, { cache: new Float32Array(0), pageSize: 2 }, [], 0)
    assert.deepStrictEqual(
      [0, 1, 2, 3, 4].map((at) => read(2, at)),
      [none, none, none, none, none],
    )
  })
})
