/** Chooses the sizes of a model's programs and caches for the engine, within the memory limit. */
import { type AdapterShape, type DecoderConfig, parametersOf, statesOf } from "../networks/Decoder.ts"
import { expertsOfToken } from "./ExpertCache.ts"

/** The sizes of an engine's programs and of its cache. */
export interface EngineSizes {
  /**
   * The numbers of sequences for which a program that generates is compiled. A step runs the smallest one that is large
   * enough; the largest number limits the requests that run at the same time. By default these are 1, 8 and 32, or fewer if
   * 32 sequences of `maxLength` would have more than 32,768 tokens.
   */
  readonly generating?: ReadonlyArray<number> | undefined
  /** The numbers of prompts for which a program that reads a page of each is compiled, [1, 8] by default. */
  readonly reading?: ReadonlyArray<number> | undefined
  /** Whether programs for embeddings are compiled, too, with the rows of `reading`; false by default. */
  readonly embeddings?: boolean | undefined
  /**
   * Whether answers have the experts that the model chose for each token (`Generated.routedExperts`), false by default. Only
   * models with experts can have them.
   */
  readonly routedExperts?: boolean | undefined
  /** The largest number of tokens of a prompt and its answer together; by default the model's, up to 2048. */
  readonly maxLength?: number | undefined
  /** The number of tokens in a page of the cache of prompts, 16 by default. */
  readonly pageSize?: number | undefined
  /**
   * The number of tokens for which the cache of prompts has room. By default it has room for all requests that run at the
   * same time, up to 16,384 tokens.
   */
  readonly cacheTokens?: number | undefined
  /**
   * The number of tokens in the first segment of the cache's rows, in which requests generate, 64 by default; each further
   * segment doubles the room. A step computes as many whole segments as its longest sequence needs. In a step with many rows,
   * half of them have only the first segment, if at most half of the sequences are longer.
   */
  readonly firstSegment?: number | undefined
  /** The number of adapters that can be loaded at the same time, with at most the rank of `shape`; none by default. */
  readonly adapters?: { readonly slots: number; readonly shape: AdapterShape } | undefined
  /**
   * The largest number of bytes of both caches and the adapters together, 64 GiB by default. If they need more, an error is
   * returned before they are allocated.
   */
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

const bytesOfNumber = 4
/** The most bytes of the number of an expert. */
const bytesOfExpert = 2

/** The size of a program that generates: its rows, its segments, and the number of rows that have all segments. */
export interface GeneratingSize {
  readonly rows: number
  readonly count: number
  readonly longRows: number
}

/** The sizes of a model's programs and caches. */
interface ModelSizes {
  readonly config: DecoderConfig
  /** The largest number of tokens of a prompt and its answer together. */
  readonly maxLength: number
  readonly pageSize: number
  /** The number of pages for a prompt of `maxLength` tokens. */
  readonly pagesPerRow: number
  /** The number of pages in the cache of prompts. */
  readonly pages: number
  /** The lengths of the segments of a row. */
  readonly segments: ReadonlyArray<number>
  readonly generating: ReadonlyArray<GeneratingSize>
  /** The numbers of prompts for which a program that reads is compiled. */
  readonly reading: ReadonlyArray<number>
  /** The numbers of texts for which a program that reads for embeddings is compiled; empty without embeddings. */
  readonly embedding: ReadonlyArray<number>
  /** Whether the experts of all tokens are kept. */
  readonly recordsExperts: boolean
  /** The number of adapters that can be loaded at the same time. */
  readonly slots: number
  readonly shape: AdapterShape
}

/** The sizes of a model that fits in memory, with its parameters. */
export interface ModelLayout extends ModelSizes {
  /** The parameters of the model without adapters. */
  readonly declarations: ReturnType<typeof parametersOf>
  readonly weights: ReturnType<typeof statesOf>
}

/** Chooses the sizes that the options leave open. */
export const sizesOf = (config: DecoderConfig, sizes: EngineSizes): ModelSizes => {
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
  return {
    config,
    maxLength,
    pageSize,
    pagesPerRow,
    pages,
    segments,
    generating: generating.flatMap((rows) =>
      segments.flatMap((_, last) => longRowsOf(rows, last).map((longRows) => ({ rows, count: last + 1, longRows }))),
    ),
    reading,
    embedding: sizes.embeddings === true ? reading : [],
    recordsExperts: sizes.routedExperts === true,
    slots,
    shape,
  }
}

/** Adds the parameters to sizes that fit in memory. */
export const layoutOf = (sizes: ModelSizes): ModelLayout => {
  const declarations = parametersOf(sizes.config)
  return { ...sizes, declarations, weights: statesOf(declarations) }
}

/** Returns why the caches and the adapters of a model need too much memory; undefined if they fit. */
export const memoryProblemOf = (layout: ModelSizes, mostBytes = defaults.mostBytes): string | undefined => {
  const { maxLength, pages, pageSize, slots, shape, recordsExperts, config } = layout
  const rows = layout.generating.at(-1)?.rows ?? NaN
  const promptTokens = pages * pageSize
  const { layers, keyValueHeads, headDim, hiddenSize, intermediateSize } = config
  const experts = recordsExperts ? expertsOfToken(config) * bytesOfExpert : 0
  const ofToken = 2 * layers * keyValueHeads * headDim * bytesOfNumber + experts
  const caches = (rows * maxLength + promptTokens) * ofToken
  // Each matrix of an adapter has the rank on one side, and at most this size on the other.
  const widest = 2 * Math.max(hiddenSize, intermediateSize)
  const adapters = slots * shape.rank * shape.targets.length * layers * widest * bytesOfNumber
  if (caches + adapters <= mostBytes) return undefined
  const shown = (bytes: number): string => `${(bytes / 2 ** 30).toFixed(1)} GiB`
  const ofCaches = `the caches of keys and values ${shown(caches)} (${rows} answers in one step and ${maxLength} tokens of each, and ${promptTokens} tokens of prompts; ${layers} layers with ${keyValueHeads} heads of ${headDim} numbers)`
  const ofAdapters = slots === 0 ? "" : `, and ${slots} adapters of rank ${shape.rank} ${shown(adapters)}`
  const remedy = `lower the answers in one step, their length${slots === 0 ? "" : ", the adapters or their rank"}`
  return `it has room for ${shown(mostBytes)}, but would need for ${ofCaches}${ofAdapters}; ${remedy}`
}

/** The smallest number of rows for which there is a program that reads only the first segment of half of them. */
const fewestHalved = 16

/** Lists the possible numbers of long rows for programs with `rows` rows and `more` segments after the first. */
const longRowsOf = (rows: number, more: number): ReadonlyArray<number> =>
  more > 0 && rows >= fewestHalved ? [Math.ceil(rows / 2), rows] : [rows]

/** Divides a row into segments. Each segment is as long as all segments before it together; the last one may be shorter. */
const segmentsFor = (maxLength: number, first: number): ReadonlyArray<number> => {
  const lengths = [Math.min(first, maxLength)]
  for (let room = lengths[0]; room < maxLength; room *= 2) lengths.push(Math.min(room, maxLength - room))
  return lengths
}

const ascending = (numbers: ReadonlyArray<number>): ReadonlyArray<number> => [...new Set(numbers)].sort((a, b) => a - b)
