/**
 * A kind of data set: what a config can say of it, and how it is opened. Kinds of one's own are given beside the built-in
 * ones:
 *
 * @example
 * ```ts
 * const riddles = DatasetKind.make({
 *   schema: Schema.Struct({ type: Schema.Literal("riddles"), count: Schema.Int }),
 *   type: "riddles",
 *   open: ({ count }) => Effect.succeed(TaskSet.of("riddles", riddlesOf(count))),
 * })
 * const riddle = Datasets.open({ type: "riddles", count: 3 }, { baseDir: "." }).pipe(
 *   Effect.provideService(Datasets.Kinds, [...Datasets.builtIn, riddles]),
 * )
 * ```
 */
import { Effect, type FileSystem, type Path, Schema } from "effect"
import {
  type ConfigError,
  decode,
  type DecodeOptions,
  isPlain,
  type Plain,
  snakeCase,
  sourceOf,
} from "../config/Config.ts"
import { naturalInt, withDefault } from "../config/fields.ts"
import type { LmService } from "../lm/Lm.ts"
import type { LmConfig } from "../lm/LmConfig.ts"
import type { Order, DatasetError, TaskSet } from "./TaskSet.ts"

export interface OpenContext {
  /** What files are named from. */
  readonly baseDir: string
  /** Who said it, for messages. */
  readonly from: DecodeOptions
  /** How data sets whose feedback is written by a language model get one; without it, they can't be opened. */
  readonly openLm?: (config: LmConfig) => Effect.Effect<LmService, ConfigError>
}

export type Opening<A> = Effect.Effect<A, DatasetError | ConfigError, FileSystem.FileSystem | Path.Path>

export interface DatasetKind {
  readonly type: string
  readonly schema: Schema.Codec<unknown, unknown>
  /** What the config comes to as plain data, with every default in it. */
  readonly decode: (said: unknown, from: DecodeOptions) => Effect.Effect<Plain, ConfigError>
  readonly open: (said: unknown, context: OpenContext) => Opening<TaskSet>
}

/** A kind over its Schema, which is read strictly. */
export const make = <S extends Schema.Codec<unknown, unknown>>(kind: {
  readonly type: string
  /** It has a key `type`, with the kind's. */
  readonly schema: S
  readonly open: (config: S["Type"], context: OpenContext) => Opening<TaskSet>
}): DatasetKind => ({
  type: kind.type,
  schema: kind.schema,
  decode: (said, from) =>
    decode(kind.schema, said, from).pipe(
      // What was just decoded can be encoded.
      Effect.flatMap((config) => Effect.orDie(Schema.encodeUnknownEffect(kind.schema)(config))),
      Effect.map((plain) => (isPlain(plain) ? plain : {})),
    ),
  open: (said, context) =>
    Effect.flatMap(decode(kind.schema, said, context.from), (config) => kind.open(config, context)),
})

const fullKey = (from: DecodeOptions, key: string): string => [...(from.prefix ?? []), key].map(snakeCase).join(".")

/** Who set a key, and the key, for messages: `conf.yaml: train_dataset.items`. */
export const placeOf = (from: DecodeOptions, key: string): string => {
  const full = fullKey(from, key)
  return `${sourceOf(from, full)}: ${full}`
}

/** What is said of every data set, whatever is in it. */
export const orderFields = {
  /** The number of tasks that are used, from the first on in the order of play; null uses all. */
  maxSamples: withDefault(Schema.NullOr(naturalInt), null),
  /** Shuffles the tasks, in an order drawn by `seed`. */
  shuffle: withDefault(Schema.Boolean, false),
  /** The seed of that order; for games, also the seed of the tasks themselves. */
  seed: withDefault(Schema.Int, 42),
  /** Has no effect: a data set prints nothing. The key is accepted so that files that have it stay valid. */
  verbose: withDefault(Schema.Boolean, true),
}

export const orderOf = ({ shuffle, seed, maxSamples }: Order): Order => ({ shuffle, seed, maxSamples })
