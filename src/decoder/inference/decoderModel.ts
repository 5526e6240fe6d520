/** Makes a model for the engine from a decoder transformer: programs of several sizes that share weights and cache. */
import { Effect, Record, type Scope } from "effect"
import { attempt } from "../../base/config/attempt.ts"
import { messageOf } from "../../base/config/text.ts"
import { Backend, type BackendError, type BackendUnavailable, type Program } from "../../tensor/backend/Backend.ts"
import { GraphError, programError } from "../../tensor/graph/GraphError.ts"
import type { NamedArray } from "../../tensor/graph/Parameters.ts"
import type { ProgramSpec } from "../../tensor/graph/Program.ts"
import { sizeOf, type TensorData } from "../../tensor/graph/Tensor.ts"
import {
  type AdapterShape,
  cachedStep,
  cacheInput,
  type Adapt,
  type DecoderConfig,
  fillSlot,
  MultiLoRA,
  pageLength,
  parametersOf,
  rowStep,
  selectedAdapters,
  statesOf,
  storeEntries,
} from "../networks/Decoder.ts"
import { RowCache } from "./RowCache.ts"
import type { Adapter, GeneratingProgram, ReadingProgram, StepModel } from "./StepModel.ts"

/** The sizes of an engine's programs and of its cache. */
export interface EngineSizes {
  /**
   * The numbers of sequences for which there is a program that generates. A step runs the smallest that is large enough; the
   * largest number is the most requests that run at the same time. By default these are 1, 8 and 32, or fewer if 32
   * sequences of `maxLength` would have more than 32,768 tokens.
   */
  readonly generating?: ReadonlyArray<number> | undefined
  /** The numbers of prompts for which there is a program that reads a page of each, [1, 8] by default. */
  readonly reading?: ReadonlyArray<number> | undefined
  /** The most tokens of a prompt and its answer together; by default the model's, up to 2048. */
  readonly maxLength?: number | undefined
  /** The number of tokens in a page of the cache of prompts, 16 by default. */
  readonly pageSize?: number | undefined
  /**
   * The number of tokens that the cache of prompts has room for. By default it has room for those of all requests that run
   * at the same time, up to 16,384 tokens.
   */
  readonly cacheTokens?: number | undefined
  /**
   * The number of tokens of the first segment of the rows in which requests generate, 64 by default; each further segment
   * doubles the room. A step computes whole segments, as many as its longest sequence needs. A step of many rows computes
   * only the first segment of half of them, if no more sequences are longer than that.
   */
  readonly firstSegment?: number | undefined
  /** The adapters that can be loaded at the same time, all of the rank of `shape` or a lower one; none by default. */
  readonly adapters?: { readonly slots: number; readonly shape: AdapterShape } | undefined
  /** The most bytes of both caches and of the adapters together, 64 GiB by default. Larger ones are refused before they are made. */
  readonly mostBytes?: number | undefined
}

const defaults = {
  generating: [1, 8, 32],
  generatingTokens: 32_768,
  reading: [1, 8],
  maxLength: 2048,
  pageSize: 16,
  cacheTokens: 16_384,
  firstSegment: 64,
  mostBytes: 64 * 2 ** 30,
}

interface Reserved {
  readonly rows: number
  readonly maxLength: number
  /** The tokens that the cache of prompts has room for. */
  readonly promptTokens: number
  readonly adapters: { readonly slots: number; readonly shape: AdapterShape }
}

const bytesOfNumber = 4

/** Returns why the caches and the adapters would take too much memory; undefined if they have room. */
const memoryProblem = (
  config: DecoderConfig,
  { rows, maxLength, promptTokens, adapters: { slots, shape } }: Reserved,
  mostBytes: number,
): string | undefined => {
  const { layers, keyValueHeads, headDim, hiddenSize, intermediateSize } = config
  const ofToken = 2 * layers * keyValueHeads * headDim * bytesOfNumber
  const caches = (rows * maxLength + promptTokens) * ofToken
  // Both matrices of an adapter have the rank on one side, and at most this on the other.
  const widest = 2 * Math.max(hiddenSize, intermediateSize)
  const adapters = slots * shape.rank * shape.targets.length * layers * widest * bytesOfNumber
  if (caches + adapters <= mostBytes) return undefined
  const shown = (bytes: number): string => `${(bytes / 2 ** 30).toFixed(1)} GiB`
  const ofCaches = `the caches of keys and values ${shown(caches)} (${rows} answers in one step and ${maxLength} tokens of each, and ${promptTokens} tokens of prompts; ${layers} layers with ${keyValueHeads} heads of ${headDim} numbers)`
  const ofAdapters = slots === 0 ? "" : `, and ${slots} adapters of rank ${shape.rank} ${shown(adapters)}`
  const remedy = `lower the answers in one step, their length${slots === 0 ? "" : ", the adapters or their rank"}`
  return `it has room for ${shown(mostBytes)}, but would need for ${ofCaches}${ofAdapters}; ${remedy}`
}

export const decoderModel = Effect.fnUntraced(function* (
  config: DecoderConfig,
  sizes: EngineSizes = {},
): Effect.fn.Return<StepModel, GraphError | BackendUnavailable | BackendError, Backend | Scope.Scope> {
  const backend = yield* Backend
  const pageSize = sizes.pageSize ?? defaults.pageSize
  const maxLength = Math.min(config.maxPositions, sizes.maxLength ?? defaults.maxLength)
  const most = Math.max(1, Math.floor(defaults.generatingTokens / maxLength))
  const generating = ascending(sizes.generating ?? defaults.generating.map((rows) => Math.min(rows, most)))
  const reading = ascending(sizes.reading ?? defaults.reading)
  const pagesPerRow = Math.ceil(maxLength / pageSize)
  const cacheTokens = sizes.cacheTokens ?? Math.min(defaults.cacheTokens, maxLength * generating[generating.length - 1])
  const pages = Math.max(pagesPerRow, Math.ceil(cacheTokens / pageSize))
  const segments = segmentsFor(maxLength, sizes.firstSegment ?? defaults.firstSegment)
  const { slots, shape } = sizes.adapters ?? { slots: 0, shape: { rank: 1, targets: [] } }
  const reserved = {
    rows: generating[generating.length - 1],
    maxLength,
    promptTokens: pages * pageSize,
    adapters: { slots, shape },
  }
  const problem = memoryProblem(config, reserved, sizes.mostBytes ?? defaults.mostBytes)
  if (problem !== undefined) return yield* programError("the engine", problem)
  const declarations = parametersOf(config)
  const weights = statesOf(declarations)

  const specOf = (name: string, rows: number, build: (adapt?: Adapt) => Parts): ProgramSpec => {
    const states = Record.map(weights, (tensor) => ({ tensor }))
    if (slots === 0) return { name, state: states, ...build() }
    const selected = selectedAdapters(config, { shape, slots, rows })
    const { inputs, outputs } = build(selected.adapt)
    const state = { ...states, ...Record.map(selected.states, (tensor) => ({ tensor })) }
    return { name, inputs: { ...inputs, ...selected.inputs }, state, outputs }
  }
  const readSpec = (rows: number): ProgramSpec =>
    specOf(readName(rows), rows, (adapt) => {
      // The last page is never written. Places without a page name it.
      const sizes = { sequences: rows, chunk: pageSize, pages: pagesPerRow, pageSize, cachePages: pages + 1 }
      const { inputs, outputs } = cachedStep(config, weights, sizes, adapt)
      // Only the last token of a prompt needs logits, and a program that generates computes it.
      return { inputs, outputs: { entries: outputs.entries } }
    })
  const generateSpec = (size: GeneratingSize): ProgramSpec =>
    specOf(generateName(size), size.rows, (adapt) => {
      const shape = { ...size, segments: segments.slice(0, size.count) }
      const { inputs, outputs } = rowStep(config, weights, shape, adapt)
      return { inputs, outputs: { ...outputs } }
    })
  const generatingSizes = generating.flatMap((rows) =>
    segments.flatMap((_, last) => longRowsOf(rows, last).map((longRows) => ({ rows, count: last + 1, longRows }))),
  )
  const specs = yield* attempt(
    () =>
      Object.fromEntries([
        ...generatingSizes.map((size) => [generateName(size), generateSpec(size)] as const),
        ...reading.map((rows) => [readName(rows), readSpec(rows)] as const),
      ]),
    GraphError,
  )
  // All programs share the cache of keys and values.
  const rowInputs = segments.flatMap((_, segment) => layersOf(config, segment, (name) => name))
  const sharedFeeds = ["cache", ...rowInputs.flatMap(({ keys, values }) => [keys, values])]
  const group: Readonly<Record<string, Program>> = yield* backend.compileAll(specs, { sharedFeeds })

  const first = group[readName(reading[0])]
  const cache = floats(first.feeds["cache"])
  const largest = group[generateName(generatingSizes[generatingSizes.length - 1])]
  const rowCache = new RowCache(
    config,
    segments.map((length, segment) => ({
      length,
      layers: layersOf(config, segment, (name) => floats(largest.feeds[name])),
    })),
  )

  const feedsOf = ({ feeds }: Program, rows: number) => ({
    tokens: integers(feeds["tokens"]),
    lengths: integers(feeds["lengths"]),
    adapters: slots === 0 ? new Int32Array(rows) : integers(feeds["slots"]),
  })
  const readingProgram = (rows: number): ReadingProgram => {
    const program = group[readName(rows)]
    const entries = floats(program.results["entries"])
    const page = Int32Array.of(0)
    const stored = { cache, entries, sequence: 0, pages: page, length: 0, count: 0 }
    return {
      rows,
      pagesPerRow,
      feeds: { ...feedsOf(program, rows), pages: integers(program.feeds["pages"]) },
      run: program.run,
      store: (row, count, index, offset) => {
        page[0] = index
        stored.sequence = row
        stored.count = count
        stored.length = offset
        storeEntries(config, { chunk: pageSize, pageSize }, stored)
      },
    }
  }
  const generatingProgram = (size: GeneratingSize): GeneratingProgram => {
    const { rows, count, longRows } = size
    const program = group[generateName(size)]
    const entries = floats(program.results["entries"])
    return {
      rows,
      room: segments.slice(0, count).reduce((sum, length) => sum + length, 0),
      longRows,
      shortRoom: segments[0],
      feeds: feedsOf(program, rows),
      logits: floats(program.results["logits"]),
      run: program.run,
      store: (row, at) => rowCache.write(row, at, entries, row * (entries.length / rows)),
    }
  }

  const pageNumbers = pageLength(config, pageSize)
  const lineNumbers = pageSize * config.headDim
  /** Has room for one adapter: to see whether one fits, and to fill it up to the rank of the slots. */
  const adapters = slots === 0 ? undefined : new MultiLoRA(config, shape, 1)
  const isAdapters = (name: string): boolean => !(name in declarations)
  const adapterNumbers = Record.map(
    Record.filter(specs[readName(reading[0])].state, (_, name) => isAdapters(name)),
    ({ tensor }) => new Float32Array(sizeOf(tensor.shape)),
  )

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
    generating: generatingSizes.map(generatingProgram),
    reading: reading.map(readingProgram),
    fillRow: (row, indices, tokens) => rowCache.fill(row, { cache, pageSize }, indices, tokens),
    swapRows: (one, other) => rowCache.swap(one, other),
    clear: (page) => void cache.fill(0, page * pageNumbers, (page + 1) * pageNumbers),
    copy: (from, to, tokens) => {
      for (let line = 0; line < pageNumbers; line += lineNumbers) {
        const start = from * pageNumbers + line
        cache.copyWithin(to * pageNumbers + line, start, start + tokens * config.headDim)
      }
    },
    adapterSlots: slots,
    adapterProblem: ({ rank, alpha, tensors }: Adapter) => {
      if (adapters === undefined) return undefined
      try {
        adapters.load(0, { rank, alpha }, tensors)
        return undefined
      } catch (error) {
        return messageOf(error)
      }
    },
    writeAdapter: (slot, { rank, alpha, tensors }) =>
      Effect.suspend(() => {
        if (adapters === undefined) return Effect.void
        adapters.load(0, { rank, alpha }, tensors)
        const contents = { slot, parameters: adapters.namedParametersOf(0), scaling: adapters.scalings[0] }
        fillSlot(config, { shape, slots }, adapterNumbers, contents)
        return Effect.forEach(Object.entries(adapterNumbers), ([name, data]) => first.write(name, data), {
          discard: true,
        })
      }),
    weightsProblem,
    writeWeights: (values) =>
      Effect.forEach(Object.keys(declarations), (name) => first.write(name, values[name].data), { discard: true }),
  }
})

/** The tensors of a step. */
type Parts = Pick<ProgramSpec, "inputs" | "outputs">

const readName = (rows: number): string => `read-${rows}`

/** The size of a program that generates: its rows, its segments, and the rows that have more than the first of these. */
interface GeneratingSize {
  readonly rows: number
  readonly count: number
  readonly longRows: number
}
const generateName = ({ rows, count, longRows }: GeneratingSize): string => `generate-${rows}-${count}-${longRows}`

/** The fewest rows for which there is a program that reads only the first segment of half of them. */
const fewestHalved = 16

/** Lists the numbers of long rows of the programs with so many rows, and so many segments behind the first. */
const longRowsOf = (rows: number, more: number): ReadonlyArray<number> =>
  more > 0 && rows >= fewestHalved ? [Math.ceil(rows / 2), rows] : [rows]

/** Lists the inputs of the rows in a segment by layer. */
const layersOf = <A>({ layers }: DecoderConfig, segment: number, of: (input: string) => A) =>
  Array.from({ length: layers }, (_, layer) => ({
    keys: of(cacheInput("keys", layer, segment)),
    values: of(cacheInput("values", layer, segment)),
  }))

/** Divides a row into segments: each is as long as all before it together, the last one perhaps shorter. */
const segmentsFor = (maxLength: number, first: number): ReadonlyArray<number> => {
  const lengths = [Math.min(first, maxLength)]
  for (let room = lengths[0]; room < maxLength; room *= 2) lengths.push(Math.min(room, maxLength - room))
  return lengths
}

const ascending = (numbers: ReadonlyArray<number>): ReadonlyArray<number> => [...new Set(numbers)].sort((a, b) => a - b)

const floats = (data: TensorData): Float32Array => {
  if (data instanceof Float32Array) return data
  throw new TypeError("expected an array of float32")
}

const integers = (data: TensorData): Int32Array => {
  if (data instanceof Int32Array) return data
  throw new TypeError("expected an array of int32")
}
