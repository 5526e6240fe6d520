import { Effect } from "effect"
import type {
  StepAdapter,
  GeneratingProgram,
  ReadingProgram,
  StepModel,
} from "../../../src/decoder/inference/StepModel.ts"

export interface FakeOptions {
  readonly pages?: number
  readonly pageSize?: number
  readonly maxLength?: number
  readonly vocabSize?: number
  readonly generating?: ReadonlyArray<number>
  readonly reading?: ReadonlyArray<number>
  readonly adapterSlots?: number
  /** The model calls it before each step. */
  readonly onStep?: (program: GeneratingProgram | ReadingProgram) => Effect.Effect<void>
}

const mixed = (...numbers: ReadonlyArray<number>): number => {
  let hash = 17
  for (const number of numbers) {
    hash = Math.imul(hash ^ (number | 0), 0x9e3779b1)
    hash ^= hash >>> 15
  }
  return (hash >>> 0) % 65_521
}

/** The entry of a token: it depends on the token, on the entries of all tokens before it, and on the weights. */
const entryOf = (sumBefore: number, token: number, weights: number): number => mixed(sumBefore, token, weights)

const logitOf = (sum: number, id: number): number => (mixed(sum, id, 99) % 64) / 8

/** Returns the logits after a sequence, computed from the whole sequence without a cache. */
export const logitsAfter = (ids: ArrayLike<number>, vocabSize: number, weights = 0): Float32Array => {
  let sum = 0
  for (let at = 0; at < ids.length; at++) sum = (sum + entryOf(sum, ids[at], weights)) % 65_521
  return Float32Array.from({ length: vocabSize }, (_, id) => logitOf(sum, id))
}

/** An adapter of the fake model: one number. */
export const fakeAdapter = (value: number): StepAdapter => ({
  rank: 1,
  alpha: 1,
  tensors: { value: { shape: [1], data: Float32Array.of(value) } },
})

export const fakeWeights = (value: number) => ({ value: { shape: [1], data: Float32Array.of(value) } })

/**
 * A model without learning: its logits are hashes of all tokens of a sequence and of its weights, which it reads from the
 * pages and rows of the cache. So a page or a row of another sequence, a token left out, or other weights change the answer.
 * Only the first rows of a program have room for long sequences: none of them, half of them, or all. The weights are the sum
 * of the base's number and 1000 times the adapter's.
 */
export const fakeModel = ({
  pages = 64,
  pageSize = 4,
  maxLength = 48,
  vocabSize = 29,
  generating = [1, 8],
  reading = [1, 3],
  adapterSlots = 2,
  onStep = () => Effect.void,
}: FakeOptions = {}): StepModel => {
  const cache = new Float32Array((pages + 1) * pageSize)
  const adapters = new Float32Array(adapterSlots)
  let base = 0
  const rowCache = new Float32Array(Math.max(...generating) * maxLength)
  const shortRoom = Math.floor(maxLength / 3)
  const weightsOf = (slot: number): number => base + (slot < 0 ? 0 : 1000 * adapters[slot])
  const feedsOf = (rows: number, tokens: number) => ({
    tokens: new Int32Array(tokens),
    lengths: new Int32Array(rows),
    adapters: new Int32Array(rows),
  })
  const readingProgram = (rows: number): ReadingProgram => {
    const pagesPerRow = Math.ceil(maxLength / pageSize)
    const feeds = { ...feedsOf(rows, rows * pageSize), pages: new Int32Array(rows * pagesPerRow) }
    const entries = new Float32Array(rows * pageSize)
    const program: ReadingProgram = {
      rows,
      pagesPerRow,
      feeds,
      run: Effect.suspend(() =>
        Effect.map(onStep(program), () => {
          for (let row = 0; row < rows; row++) {
            let sum = 0
            for (let at = 0; at < feeds.lengths[row]; at++) {
              const page = feeds.pages[row * pagesPerRow + Math.floor(at / pageSize)]
              sum = (sum + cache[page * pageSize + (at % pageSize)]) % 65_521
            }
            for (let index = row * pageSize; index < (row + 1) * pageSize; index++) {
              entries[index] = entryOf(sum, feeds.tokens[index], weightsOf(feeds.adapters[row]))
              sum = (sum + entries[index]) % 65_521
            }
          }
        }),
      ),
      store: (row, count, page, offset) => {
        for (let index = 0; index < count; index++)
          cache[page * pageSize + offset + index] = entries[row * pageSize + index]
      },
    }
    return program
  }
  const generatingProgram = ({ rows, longRows }: { rows: number; longRows: number }): GeneratingProgram => {
    const feeds = feedsOf(rows, rows)
    const logits = new Float32Array(rows * vocabSize)
    const entries = new Float32Array(rows)
    const program: GeneratingProgram = {
      rows,
      room: maxLength,
      longRows,
      shortRoom,
      feeds,
      logits,
      run: Effect.suspend(() =>
        Effect.map(onStep(program), () => {
          for (let row = 0; row < rows; row++) {
            const weights = weightsOf(feeds.adapters[row])
            let sum = 0
            const length = Math.min(feeds.lengths[row], row < longRows ? maxLength : shortRoom)
            for (let at = 0; at < length; at++) sum = (sum + rowCache[row * maxLength + at]) % 65_521
            entries[row] = entryOf(sum, feeds.tokens[row], weights)
            sum = (sum + entries[row]) % 65_521
            for (let id = 0; id < vocabSize; id++)
              logits[row * vocabSize + id] = Number.isNaN(weights) ? NaN : logitOf(sum, id)
          }
        }),
      ),
      store: (row, at) => void (rowCache[row * maxLength + at] = entries[row]),
    }
    return program
  }
  return {
    vocabSize,
    embedding: [],
    hiddenSize: 1,
    maxLength,
    pageSize,
    pages,
    generating: generating
      .flatMap((rows) => [...new Set([0, Math.floor(rows / 2), rows])].map((longRows) => ({ rows, longRows })))
      .map(generatingProgram),
    reading: reading.map(readingProgram),
    fillRow: (row, indices, tokens) => {
      for (let at = 0; at < tokens; at++)
        rowCache[row * maxLength + at] = cache[indices[Math.floor(at / pageSize)] * pageSize + (at % pageSize)]
    },
    swapRows: (one, other) => {
      const numbers = rowCache.slice(one * maxLength, (one + 1) * maxLength)
      rowCache.copyWithin(one * maxLength, other * maxLength, (other + 1) * maxLength)
      rowCache.set(numbers, other * maxLength)
    },
    clear: (page) => void cache.fill(0, page * pageSize, (page + 1) * pageSize),
    copy: (from, to, tokens) => void cache.copyWithin(to * pageSize, from * pageSize, from * pageSize + tokens),
    adapterSlots,
    adapterProblem: ({ tensors }) => (tensors["value"] === undefined ? "value: the tensor is missing" : undefined),
    writeAdapter: (slot, { tensors }) => Effect.sync(() => void (adapters[slot] = tensors["value"].data[0])),
    weightsProblem: (tensors) => (tensors["value"] === undefined ? "value: the tensor is missing" : undefined),
    writeWeights: (tensors) => Effect.sync(() => void (base = tensors["value"].data[0])),
  }
}

/** Decodes the tokens 0, 1, 2 … to the letters a, b, c …; ids from 26 on are pieces of two letters. */
export const letters = {
  decoder: () => ({
    push: (id: number) => (id < 26 ? String.fromCharCode(97 + id) : String.fromCharCode(97 + id - 26, 98 + id - 26)),
    end: () => "",
  }),
}
