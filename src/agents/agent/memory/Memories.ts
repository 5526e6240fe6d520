/**
 * Makes memories from their configs, and defines the built-in kinds of memory.
 *
 * @example
 * ```ts
 * const { make } = yield* Memories.decode({ _type: HistoryList.type, maxLength: 50 }, { source: "train.yaml" })
 * const memory = yield* make
 * ```
 */
import { Context, Effect, Schema } from "effect"
import { choiceHint } from "../../../base/text/closest.ts"
import { ConfigError, type DecodeOptions, display, type Plain } from "../../../base/config/Config.ts"
import { bounded, withDefault } from "../../../base/config/fields.ts"
import * as Bm25Memory from "./Bm25Memory.ts"
import * as EmbeddingMemory from "./EmbeddingMemory.ts"
import { Embeddings } from "./Embeddings.ts"
import * as HistoryList from "./HistoryList.ts"
import * as KeyValueMemory from "./KeyValueMemory.ts"
import type { AgentMemory } from "./Memory.ts"
import { type DecodedMemory, make as makeKind, type MemoryKind } from "./MemoryKind.ts"
import * as Reflections from "./Reflections.ts"

/** Makes a setting that limits a number of entries, with a default; null sets no limit. */
const bound = (value: number) => withDefault(Schema.NullOr(bounded("entries")), value)

/** Recalls the last entries. */
export const HistoryListConfig = Schema.Struct({
  _type: Schema.Literal(HistoryList.type),
  /** The number of entries to keep; if there are more, the oldest is forgotten. null sets no limit. */
  maxLength: bound(100),
})

/** Recalls the last entries, and has a separate limit for the number of reflections. */
export const ReflectionsConfig = Schema.Struct({
  _type: Schema.Literal(Reflections.type),
  /** The number of entries, without reflections, to keep; null sets no limit. */
  maxLength: bound(200),
  /** The number of reflections to keep; null sets no limit. */
  maxReflections: bound(200),
})

/** Recalls entries that have words in common with the observation. */
export const Bm25Config = Schema.Struct({
  _type: Schema.Literal(Bm25Memory.type),
  /** The number of entries to keep; if there are more, the oldest is forgotten. null sets no limit. */
  maxLength: bound(1000),
})

/** Recalls entries that are similar to the observation, with the service `Embeddings`. */
export const EmbeddingsConfig = Schema.Struct({
  _type: Schema.Literal(EmbeddingMemory.type),
  /** The number of entries to keep; if there are more, the oldest is forgotten. null sets no limit. */
  maxLength: bound(1000),
})

/** Keeps named notes, which the model writes with tools. */
export const KeyValueConfig = Schema.Struct({
  _type: Schema.Literal(KeyValueMemory.type),
  /** The number of notes to keep; null sets no limit. */
  maxLength: bound(100),
})

/** The Schema of the config below `memory_config`, for the JSON Schemas of config files: only the built-in kinds. */
export const MemoryConfig = Schema.Union([
  HistoryListConfig,
  ReflectionsConfig,
  KeyValueConfig,
  Bm25Config,
  EmbeddingsConfig,
])
export type MemoryConfig = typeof MemoryConfig.Type

const plainKind = <S extends Schema.Codec<unknown, unknown>>(
  type: string,
  schema: S,
  make: (config: S["Type"]) => AgentMemory,
): MemoryKind => makeKind({ type, schema, make: (config) => Effect.sync(() => make(config)) })

/** The built-in kinds of memory. */
export const builtIn: ReadonlyArray<MemoryKind> = [
  plainKind(HistoryList.type, HistoryListConfig, HistoryList.make),
  plainKind(Reflections.type, ReflectionsConfig, Reflections.make),
  plainKind(KeyValueMemory.type, KeyValueConfig, KeyValueMemory.make),
  plainKind(Bm25Memory.type, Bm25Config, Bm25Memory.make),
  makeKind({
    type: EmbeddingMemory.type,
    schema: EmbeddingsConfig,
    make: ({ maxLength }) => Effect.map(Embeddings, (embeddings) => EmbeddingMemory.make({ maxLength, embeddings })),
  }),
]

/** The kinds of memory that configs can name. Provide a longer list to add a kind. */
export const Kinds = Context.Reference<ReadonlyArray<MemoryKind>>("effect-rl/agent/memory/MemoryKinds", {
  defaultValue: () => builtIn,
})

/** Decodes the config of a memory: its `_type`, and the settings of that kind in camelCase. An unknown key is an error. */
export const decode = (config: Plain, from: DecodeOptions): Effect.Effect<DecodedMemory, ConfigError> =>
  Effect.flatMap(Kinds, (kinds) => {
    const { _type: type } = config
    const kind = kinds.find((candidate) => candidate.type === type)
    if (kind !== undefined) return kind.decode(config, from)
    const names = kinds.map(({ type }) => type)
    const problem = `unknown kind of memory ${display(type)}; ${choiceHint(type, names)}`
    return Effect.fail(ConfigError.at(from, "_type", problem))
  })
