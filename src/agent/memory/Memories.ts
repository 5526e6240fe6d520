/**
 * Memories from what a config says of them.
 *
 * @example
 * ```ts
 * const { make } = yield* Memories.decode({ _type: HistoryList.type, maxLength: 50 }, { source: "train.yaml" })
 * const memory = yield* make
 * ```
 */
import { Context, Effect, Schema } from "effect"
import { closest } from "../../config/closest.ts"
import { ConfigError, type DecodeOptions, display, type Plain } from "../../config/Config.ts"
import { positiveInt, withDefault } from "../../config/fields.ts"
import * as Bm25Memory from "./Bm25Memory.ts"
import * as EmbeddingMemory from "./EmbeddingMemory.ts"
import { Embeddings } from "./Embeddings.ts"
import * as HistoryList from "./HistoryList.ts"
import * as KeyValueMemory from "./KeyValueMemory.ts"
import { type DecodedMemory, make as makeKind, type MemoryKind } from "./MemoryKind.ts"
import * as Reflections from "./Reflections.ts"

const bound = (value: number) => withDefault(Schema.NullOr(positiveInt), value)

/** What came last, whatever it is. */
export const HistoryListConfig = Schema.Struct({
  _type: Schema.Literal(HistoryList.type),
  /** The number of entries that are kept; beyond it, the oldest is forgotten. null sets no limit. */
  maxLength: bound(100),
})

/** What came last, with a bound of their own for reflections. */
export const ReflectionsConfig = Schema.Struct({
  _type: Schema.Literal(Reflections.type),
  /** The number of entries other than reflections that are kept; null sets no limit. */
  maxLength: bound(200),
  /** The number of reflections that are kept; null sets no limit. */
  maxReflections: bound(200),
})

/** What shares words with what is seen. */
export const Bm25Config = Schema.Struct({
  _type: Schema.Literal(Bm25Memory.type),
  /** The number of entries that are kept; beyond it, the oldest is forgotten. null sets no limit. */
  maxLength: bound(1000),
})

/** What is like what is seen, by the `Embeddings` that are provided. */
export const EmbeddingsConfig = Schema.Struct({
  _type: Schema.Literal(EmbeddingMemory.type),
  /** The number of entries that are kept; beyond it, the oldest is forgotten. null sets no limit. */
  maxLength: bound(1000),
})

/** Notes with names, which a model writes by tools. */
export const KeyValueConfig = Schema.Struct({
  _type: Schema.Literal(KeyValueMemory.type),
  /** The number of notes that are kept; null sets no limit. */
  maxLength: bound(100),
})

/** What a config can say below `memory_config`, with the built-in kinds: for schemas of whole files. */
export const MemoryConfig = Schema.Union([
  HistoryListConfig,
  ReflectionsConfig,
  KeyValueConfig,
  Bm25Config,
  EmbeddingsConfig,
])
export type MemoryConfig = typeof MemoryConfig.Type

/** The kinds that are known without doing anything. */
export const builtIn: ReadonlyArray<MemoryKind> = [
  makeKind({
    type: HistoryList.type,
    schema: HistoryListConfig,
    make: (config) => Effect.sync(() => HistoryList.make(config)),
  }),
  makeKind({
    type: Reflections.type,
    schema: ReflectionsConfig,
    make: (config) => Effect.sync(() => Reflections.make(config)),
  }),
  makeKind({
    type: KeyValueMemory.type,
    schema: KeyValueConfig,
    make: (config) => Effect.sync(() => KeyValueMemory.make(config)),
  }),
  makeKind({ type: Bm25Memory.type, schema: Bm25Config, make: (config) => Effect.sync(() => Bm25Memory.make(config)) }),
  makeKind({
    type: EmbeddingMemory.type,
    schema: EmbeddingsConfig,
    make: ({ maxLength }) => Effect.map(Embeddings, (embeddings) => EmbeddingMemory.make({ maxLength, embeddings })),
  }),
]

/** The kinds that configs can name; provide a longer list to add one's own. */
export const Kinds = Context.Reference<ReadonlyArray<MemoryKind>>("effect-rl/agent/memory/MemoryKinds", {
  defaultValue: () => builtIn,
})

/** Keys in camelCase, and `_type`. */
export const decode = (said: Plain, from: DecodeOptions): Effect.Effect<DecodedMemory, ConfigError> =>
  Effect.flatMap(Kinds, (kinds) => {
    const { _type: type } = said
    const kind = kinds.find((candidate) => candidate.type === type)
    if (kind !== undefined) return kind.decode(said, from)
    const names = kinds.map(({ type }) => type)
    const near = typeof type === "string" ? closest(type, names) : undefined
    const hint = near === undefined ? `known are ${names.join(", ")}` : `did you mean "${near}"?`
    return Effect.fail(ConfigError.at(from, "_type", `unknown kind of memory ${display(type)}; ${hint}`))
  })
