/** Makes a model for the engine from a decoder transformer: programs of several sizes that share weights and cache. */
import { Effect, Record, type Scope } from "effect"
import { attempt } from "../config/attempt.ts"
import { messageOf } from "../config/text.ts"
import { Backend, type BackendError, type BackendUnavailable, type Program } from "../backend/Backend.ts"
import { GraphError } from "../graph/GraphError.ts"
import type { NamedArray } from "../graph/Parameters.ts"
import type { ProgramSpec } from "../graph/Program.ts"
import { sizeOf, type TensorData } from "../graph/Tensor.ts"
import {
  type AdapterShape,
  cachedStep,
  type DecoderConfig,
  MultiLoRA,
  pageLength,
  parametersOf,
  routedAdapters,
  statesOf,
  storeEntries,
} from "../model/decoder/Decoder.ts"
import type { Adapter, StepModel, StepProgram } from "./StepModel.ts"

/** The sizes of an engine's programs and of its cache. */
export interface EngineSizes {
  /**
   * The numbers of sequences for which there is a program that generates, [1, 8, 32] by default. A step runs the smallest
   * that is large enough; the largest number is the most requests that run at the same time.
   */
  readonly generating?: ReadonlyArray<number> | undefined
  /** The numbers of prompts for which there is a program that reads a page of each, [1, 8] by default. */
  readonly reading?: ReadonlyArray<number> | undefined
  /** The most tokens of a prompt and its answer together; by default the model's, up to 2048. */
  readonly maxLength?: number | undefined
  /** The number of tokens in a page of the cache, 16 by default. */
  readonly pageSize?: number | undefined
  /**
   * The number of tokens that the cache has room for. By default it has room for all requests that run at the same time,
   * up to 32,768 tokens.
   */
  readonly cacheTokens?: number | undefined
  /** The adapters that can be loaded at the same time, all of the rank of `shape` or a lower one; none by default. */
  readonly adapters?: { readonly slots: number; readonly shape: AdapterShape } | undefined
}

const defaults = { generating: [1, 8, 32], reading: [1, 8], maxLength: 2048, pageSize: 16, cacheTokens: 32_768 }

export const decoderModel = Effect.fnUntraced(function* (
  config: DecoderConfig,
  sizes: EngineSizes = {},
): Effect.fn.Return<StepModel, GraphError | BackendUnavailable | BackendError, Backend | Scope.Scope> {
  const backend = yield* Backend
  const pageSize = sizes.pageSize ?? defaults.pageSize
  const maxLength = Math.min(config.maxPositions, sizes.maxLength ?? defaults.maxLength)
  const generating = ascending(sizes.generating ?? defaults.generating)
  const reading = ascending(sizes.reading ?? defaults.reading)
  const pagesPerRow = Math.ceil(maxLength / pageSize)
  const cacheTokens = sizes.cacheTokens ?? Math.min(defaults.cacheTokens, maxLength * generating[generating.length - 1])
  const pages = Math.max(pagesPerRow, Math.ceil(cacheTokens / pageSize))
  const { slots, shape } = sizes.adapters ?? { slots: 0, shape: { rank: 1, targets: [] } }
  const declarations = parametersOf(config)
  const weights = statesOf(declarations)

  const shapeOf = (rows: number, chunk: number) => ({
    sequences: rows,
    chunk,
    pages: pagesPerRow,
    pageSize,
    // The last page is never written. Places without a page name it.
    cachePages: pages + 1,
  })
  const specOf = (rows: number, chunk: number): ProgramSpec => {
    const routed =
      slots === 0 ? undefined : routedAdapters(config, { shape, adapters: slots, blocks: rows, mayBeBase: true })
    const { inputs, outputs } = cachedStep(config, weights, shapeOf(rows, chunk), routed?.adapt)
    const states = Record.map(weights, (tensor) => ({ tensor }))
    const name = `${chunk === 1 ? "generate" : "read"}-${rows}`
    const { logits, entries } = outputs
    // Only the last token of a prompt needs logits, and a program that generates computes it.
    const needed: ProgramSpec["outputs"] = chunk === 1 ? { logits, entries } : { entries }
    if (routed === undefined) return { name, inputs, state: states, outputs: needed }
    const { table, blockAdapters, scalings } = routed
    const state = { ...states, adapters: { tensor: table } }
    return { name, inputs: { ...inputs, blockAdapters, scalings }, state, outputs: needed }
  }
  const specs = yield* attempt(
    () =>
      Object.fromEntries([
        ...generating.map((rows) => [`generate-${rows}`, specOf(rows, 1)] as const),
        ...reading.map((rows) => [`read-${rows}`, specOf(rows, pageSize)] as const),
      ]),
    GraphError,
  )
  // All programs share the cache of keys and values, and the scales of the adapters.
  const sharedFeeds = slots === 0 ? ["cache"] : ["cache", "scalings"]
  const group: Readonly<Record<string, Program>> = yield* backend.compileAll(specs, { sharedFeeds })

  const first = group[`generate-${generating[0]}`]
  const cache = floats(first.feeds["cache"])
  const programOf = (rows: number, chunk: number): StepProgram => {
    const { feeds, results, run } = group[`${chunk === 1 ? "generate" : "read"}-${rows}`]
    const entries = floats(results["entries"])
    const page = Int32Array.of(0)
    const stored = { cache, entries, sequence: 0, pages: page, length: 0, count: 0 }
    return {
      rows,
      chunk,
      pagesPerRow,
      feeds: {
        tokens: integers(feeds["tokens"]),
        lengths: integers(feeds["lengths"]),
        pages: integers(feeds["pages"]),
        adapters: slots === 0 ? new Int32Array(rows) : integers(feeds["blockAdapters"]),
      },
      logits: chunk === 1 ? floats(results["logits"]) : new Float32Array(0),
      run,
      store: (row, count, index, offset) => {
        page[0] = index
        stored.sequence = row
        stored.count = count
        stored.length = offset
        storeEntries(config, { chunk, pageSize }, stored)
      },
    }
  }

  const pageNumbers = pageLength(config, pageSize)
  const lineNumbers = pageSize * config.headDim
  const adapters = slots === 0 ? undefined : new MultiLoRA(config, shape, slots)
  /** Has room for one adapter, to see whether it fits. */
  const trial = slots === 0 ? undefined : new MultiLoRA(config, shape, 1)

  const weightsProblem = (values: Readonly<Record<string, NamedArray>>): string | undefined => {
    for (const [name, { shape }] of Object.entries(declarations)) {
      const value = values[name]
      if (value === undefined) return `parameter "${name}": it is missing`
      if (value.shape.join() !== shape.join() || value.data.length !== sizeOf(shape))
        return `parameter "${name}": expected shape [${shape.join(", ")}], found [${value.shape.join(", ")}]`
    }
    const unknown = Object.keys(values).find((name) => !(name in declarations))
    return unknown === undefined ? undefined : `parameter "${unknown}": the model has no such parameter`
  }

  return {
    vocabSize: config.vocabSize,
    maxLength,
    pageSize,
    pages,
    decoding: generating.map((rows) => programOf(rows, 1)),
    reading: reading.map((rows) => programOf(rows, pageSize)),
    clear: (page) => void cache.fill(0, page * pageNumbers, (page + 1) * pageNumbers),
    copy: (from, to, tokens) => {
      for (let line = 0; line < pageNumbers; line += lineNumbers) {
        const start = from * pageNumbers + line
        cache.copyWithin(to * pageNumbers + line, start, start + tokens * config.headDim)
      }
    },
    adapterSlots: slots,
    adapterProblem: ({ rank, alpha, tensors }: Adapter) => {
      if (trial === undefined) return undefined
      try {
        trial.load(0, { rank, alpha }, tensors)
        return undefined
      } catch (error) {
        return messageOf(error)
      }
    },
    writeAdapter: (slot, { rank, alpha, tensors }) =>
      Effect.suspend(() => {
        if (adapters === undefined) return Effect.void
        adapters.load(slot, { rank, alpha }, tensors)
        floats(first.feeds["scalings"]).set(adapters.scalings)
        return first.write("adapters", adapters.table)
      }),
    weightsProblem,
    writeWeights: (values) =>
      Effect.forEach(Object.keys(declarations), (name) => first.write(name, values[name].data), { discard: true }),
  }
})

const ascending = (numbers: ReadonlyArray<number>): ReadonlyArray<number> => [...new Set(numbers)].sort((a, b) => a - b)

const floats = (data: TensorData): Float32Array => {
  if (data instanceof Float32Array) return data
  throw new TypeError("expected an array of float32")
}

const integers = (data: TensorData): Int32Array => {
  if (data instanceof Int32Array) return data
  throw new TypeError("expected an array of int32")
}
