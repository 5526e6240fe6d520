/** Makes a model for the engine from a decoder transformer: programs of several sizes that share weights and cache. */
import { Effect, Record, type Scope } from "effect"
import { attempt } from "../../base/config/attempt.ts"
import { messageOf } from "../../base/text/text.ts"
import { Backend, type BackendError, type BackendUnavailable, type Program } from "../../tensor/backend/Backend.ts"
import { GraphError, programError } from "../../tensor/graph/GraphError.ts"
import type { NamedArray } from "../../tensor/graph/Parameters.ts"
import type { ProgramSpec } from "../../tensor/graph/Program.ts"
import { sizeOf, type TensorData } from "../../tensor/graph/Tensor.ts"
import {
  cachedStep,
  cacheInput,
  type Adapt,
  type DecoderConfig,
  fillSlot,
  MultiLoRA,
  pageLength,
  rowStep,
  selectedAdapters,
  storeEntries,
} from "../networks/Decoder.ts"
import {
  type EngineSizes,
  type GeneratingSize,
  layoutOf,
  sizesOf,
  memoryProblemOf,
  type ModelLayout,
} from "./modelLayout.ts"
import { ExpertCache } from "./ExpertCache.ts"
import { RowCache } from "./RowCache.ts"
import type { EmbeddingProgram, GeneratingProgram, ReadingProgram, StepModel } from "./StepModel.ts"

const readName = (rows: number): string => `read-${rows}`

const embedName = (rows: number): string => `embed-${rows}`

const generateName = ({ rows, count, longRows }: GeneratingSize): string => `generate-${rows}-${count}-${longRows}`

/** Describes a program. It includes adapters if the model has slots for them. */
const specOf = (
  layout: ModelLayout,
  name: string,
  rows: number,
  build: (adapt?: Adapt) => Pick<ProgramSpec, "inputs" | "outputs">,
): ProgramSpec => {
  const states = Record.map(layout.weights, (tensor) => ({ tensor }))
  if (layout.slots === 0) return { name, state: states, ...build() }
  const selected = selectedAdapters(layout.config, { shape: layout.shape, slots: layout.slots, rows })
  const { inputs, outputs } = build(selected.adapt)
  const state = { ...states, ...Record.map(selected.states, (tensor) => ({ tensor })) }
  return { name, inputs: { ...inputs, ...selected.inputs }, state, outputs }
}

/** Describes a program that reads pages. Only programs for embeddings compute the hidden states. */
const readSpec = (layout: ModelLayout, rows: number, { hidden }: { readonly hidden: boolean }): ProgramSpec =>
  specOf(layout, hidden ? embedName(rows) : readName(rows), rows, (adapt) => {
    // The last page is never written; unused elements of `pages` refer to it.
    const sizes = {
      sequences: rows,
      chunk: layout.pageSize,
      pages: layout.pagesPerRow,
      pageSize: layout.pageSize,
      cachePages: layout.pages + 1,
      recordsExperts: layout.recordsExperts,
    }
    const { inputs, outputs } = cachedStep(layout.config, layout.weights, sizes, adapt)
    // No logits are needed here: only the last token of a prompt needs them, and a program that generates computes it.
    const { logits: _, hidden: states, ...others } = outputs
    return { inputs, outputs: hidden ? { hidden: states, ...others } : others }
  })

const generateSpec = (layout: ModelLayout, size: GeneratingSize): ProgramSpec =>
  specOf(layout, generateName(size), size.rows, (adapt) => {
    const { segments, recordsExperts } = layout
    const shape = { ...size, segments: segments.slice(0, size.count), recordsExperts }
    const { inputs, outputs } = rowStep(layout.config, layout.weights, shape, adapt)
    return { inputs, outputs: { ...outputs } }
  })

/** Describes all programs of a model by their names. */
const specsOf = (layout: ModelLayout): Readonly<Record<string, ProgramSpec>> =>
  Object.fromEntries([
    ...layout.generating.map((size) => [generateName(size), generateSpec(layout, size)] as const),
    ...layout.reading.map((rows) => [readName(rows), readSpec(layout, rows, { hidden: false })] as const),
    ...layout.embedding.map((rows) => [embedName(rows), readSpec(layout, rows, { hidden: true })] as const),
  ])

/** The programs of a model, and the caches that they share. */
interface CompiledModel {
  readonly layout: ModelLayout
  readonly programs: Readonly<Record<string, Program>>
  /** The cache of prompts. */
  readonly cache: Float32Array
  /** The cache of the rows in which requests generate. */
  readonly rowCache: RowCache
  /** The experts of the tokens in both caches; undefined if they are not kept. */
  readonly experts: ExpertCache | undefined
}

/** Compiles the programs of a model. All of them share the cache of keys and values. */
const compileModel = Effect.fnUntraced(function* (layout: ModelLayout, specs: Readonly<Record<string, ProgramSpec>>) {
  const { config, segments, generating, reading } = layout
  const rowInputs = segments.flatMap((_, segment) => layersOf(config, segment, (name) => name))
  const sharedFeeds = ["cache", ...rowInputs.flatMap(({ keys, values }) => [keys, values])]
  const backend = yield* Backend
  const programs: Readonly<Record<string, Program>> = yield* backend.compileAll(specs, { sharedFeeds })
  const largest = programs[generateName(generating[generating.length - 1])]
  const rowCache = new RowCache(
    config,
    segments.map((length, segment) => ({
      length,
      layers: layersOf(config, segment, (name) => floats(largest.feeds[name])),
    })),
  )
  const compiled: CompiledModel = {
    layout,
    programs,
    cache: floats(programs[readName(reading[0])].feeds["cache"]),
    rowCache,
    experts: layout.recordsExperts ? new ExpertCache(layout, generating[generating.length - 1].rows) : undefined,
  }
  return compiled
})

const feedsOf = ({ slots }: ModelLayout, { feeds }: Program, rows: number) => ({
  tokens: integers(feeds["tokens"]),
  lengths: integers(feeds["lengths"]),
  adapters: slots === 0 ? new Int32Array(rows) : integers(feeds["slots"]),
})

const readingProgram = ({ layout, cache, experts }: CompiledModel, rows: number, program: Program): ReadingProgram => {
  const { config, pageSize, pagesPerRow } = layout
  const entries = floats(program.results["entries"])
  const page = Int32Array.of(0)
  const stored = { cache, entries, sequence: 0, pages: page, length: 0, count: 0 }
  return {
    rows,
    pagesPerRow,
    feeds: { ...feedsOf(layout, program, rows), pages: integers(program.feeds["pages"]) },
    run: program.run,
    store: (row, count, index, offset) => {
      page[0] = index
      stored.sequence = row
      stored.count = count
      stored.length = offset
      storeEntries(config, { chunk: pageSize, pageSize }, stored)
      experts?.writePage(index, offset, integers(program.results["experts"]), row * pageSize, count)
    },
  }
}

const embeddingProgram = (compiled: CompiledModel, rows: number): EmbeddingProgram => {
  const program = compiled.programs[embedName(rows)]
  return { ...readingProgram(compiled, rows, program), hidden: floats(program.results["hidden"]) }
}

const generatingProgram = (
  { layout, programs, rowCache, experts }: CompiledModel,
  size: GeneratingSize,
): GeneratingProgram => {
  const { segments } = layout
  const { rows, count, longRows } = size
  const program = programs[generateName(size)]
  const entries = floats(program.results["entries"])
  return {
    rows,
    room: segments.slice(0, count).reduce((sum, length) => sum + length, 0),
    longRows,
    shortRoom: segments[0],
    feeds: feedsOf(layout, program, rows),
    logits: floats(program.results["logits"]),
    run: program.run,
    store: (row, at) => {
      rowCache.write(row, at, entries, row * (entries.length / rows))
      experts?.writeRow(row, at, integers(program.results["experts"]))
    },
  }
}

/** Returns the functions of a model that change its adapters. */
const adapterFunctions = (
  { config, slots, shape, declarations }: ModelLayout,
  program: Program,
  spec: ProgramSpec,
): Pick<StepModel, "adapterProblem" | "writeAdapter"> => {
  if (slots === 0) return { adapterProblem: () => undefined, writeAdapter: () => Effect.void }
  /** A table for a single adapter, to check whether an adapter fits, and to extend it to the rank of the slots. */
  const room = new MultiLoRA(config, shape, 1)
  const values = Record.map(
    Record.filter(spec.state, (_, name) => !(name in declarations)),
    ({ tensor }) => new Float32Array(sizeOf(tensor.shape)),
  )
  return {
    adapterProblem: ({ rank, alpha, tensors }) => {
      try {
        room.load(0, { rank, alpha }, tensors)
        return undefined
      } catch (error) {
        return messageOf(error)
      }
    },
    writeAdapter: (slot, { rank, alpha, tensors }) =>
      Effect.suspend(() => {
        room.load(0, { rank, alpha }, tensors)
        const contents = { slot, parameters: room.namedParametersOf(0), scaling: room.scalings[0] }
        fillSlot(config, { shape, slots }, values, contents)
        return Effect.forEach(Object.entries(values), ([name, data]) => program.write(name, data), { discard: true })
      }),
  }
}

/** Returns the functions of a model that change its cache of prompts. */
const pageFunctions = ({
  layout: { config, pageSize },
  cache,
  rowCache,
  experts,
}: CompiledModel): Pick<StepModel, "fillRow" | "swapRows" | "clear" | "copy" | "routedExperts"> => {
  const pageNumbers = pageLength(config, pageSize)
  const lineNumbers = pageSize * config.headDim
  return {
    fillRow: (row, indices, tokens) => {
      rowCache.fill(row, { cache, pageSize }, indices, tokens)
      experts?.fillRow(row, indices, tokens)
    },
    swapRows: (one, other) => {
      rowCache.swap(one, other)
      experts?.swap(one, other)
    },
    routedExperts: (row, tokens) => experts?.of(row, tokens),
    clear: (page) => void cache.fill(0, page * pageNumbers, (page + 1) * pageNumbers),
    copy: (from, to, tokens) => {
      for (let line = 0; line < pageNumbers; line += lineNumbers) {
        const start = from * pageNumbers + line
        cache.copyWithin(to * pageNumbers + line, start, start + tokens * config.headDim)
      }
      experts?.copyPage(from, to, tokens)
    },
  }
}

/** Returns why arrays cannot be the weights of a model; undefined if they can. */
const weightsProblem = (
  { declarations }: ModelLayout,
  values: Readonly<Record<string, NamedArray>>,
): string | undefined => {
  for (const [name, { shape }] of Object.entries(declarations)) {
    const value = values[name]
    if (value === undefined) return `parameter "${name}": it is missing`
    if (value.shape.join() !== shape.join() || value.data.length !== sizeOf(shape))
      return `parameter "${name}": expected shape [${shape.join(", ")}], found [${value.shape.join(", ")}]`
  }
  const unknown = Object.keys(values).find((name) => !(name in declarations))
  return unknown === undefined ? undefined : `parameter "${unknown}": the model has no such parameter`
}

/** Makes the model: compiles its programs, and makes empty caches. */
export const decoderModel = Effect.fnUntraced(function* (
  config: DecoderConfig,
  sizes: EngineSizes = {},
): Effect.fn.Return<StepModel, GraphError | BackendUnavailable | BackendError, Backend | Scope.Scope> {
  const chosen = sizesOf(config, sizes)
  if (chosen.recordsExperts && config.experts === undefined)
    return yield* programError("the engine", "routedExperts: expected false, because the model has no experts")
  const problem = memoryProblemOf(chosen, sizes.mostBytes)
  if (problem !== undefined) return yield* programError("the engine", problem)
  const layout = layoutOf(chosen)
  const { maxLength, pageSize, pages, generating, reading, embedding, slots, declarations } = layout
  const specs = yield* attempt(() => specsOf(layout), GraphError)
  const compiled = yield* compileModel(layout, specs)
  const firstName = readName(reading[0])
  const first = compiled.programs[firstName]
  return {
    vocabSize: config.vocabSize,
    maxLength,
    pageSize,
    pages,
    generating: generating.map((size) => generatingProgram(compiled, size)),
    reading: reading.map((rows) => readingProgram(compiled, rows, compiled.programs[readName(rows)])),
    embedding: embedding.map((rows) => embeddingProgram(compiled, rows)),
    hiddenSize: config.hiddenSize,
    ...pageFunctions(compiled),
    adapterSlots: slots,
    ...adapterFunctions(layout, first, specs[firstName]),
    weightsProblem: (values) => weightsProblem(layout, values),
    writeWeights: (values) =>
      Effect.forEach(Object.keys(declarations), (name) => first.write(name, values[name].data), { discard: true }),
  }
})

/** Lists the inputs of the rows in a segment by layer. */
const layersOf = <A>({ layers }: DecoderConfig, segment: number, of: (input: string) => A) =>
  Array.from({ length: layers }, (_, layer) => ({
    keys: of(cacheInput("keys", layer, segment)),
    values: of(cacheInput("values", layer, segment)),
  }))

const floats = (data: TensorData): Float32Array => {
  if (data instanceof Float32Array) return data
  throw new TypeError("expected an array of float32")
}

const integers = (data: TensorData): Int32Array => {
  if (data instanceof Int32Array) return data
  throw new TypeError("expected an array of int32")
}
