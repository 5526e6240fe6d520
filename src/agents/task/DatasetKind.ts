/**
 * Defines a kind of data set: the schema of its config, and a function that makes the set of tasks from a config. The
 * example adds a kind of your own to the built-in ones.
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
import { type ConfigError, decode, type DecodeOptions, isPlain, type Plain } from "../../base/config/Config.ts"
import { bounded, withDefault } from "../../base/config/fields.ts"
import type { LmService } from "../lm/Lm.ts"
import type { LmConfig } from "../lm/LmConfig.ts"
import type { DatasetError, TaskOrder, TaskSet } from "./TaskSet.ts"

export interface DatasetContext {
  /** The folder at which relative paths of files start. */
  readonly baseDir: string
  /** The source of the config, for error messages. */
  readonly from: DecodeOptions
  /** Opens the language model that writes feedback. If it is left out, data sets that need one cannot be opened. */
  readonly openLm?: (config: LmConfig) => Effect.Effect<LmService, ConfigError>
}

export type DatasetOpening<A> = Effect.Effect<A, DatasetError | ConfigError, FileSystem.FileSystem | Path.Path>

export interface DatasetKind {
  readonly type: string
  readonly schema: Schema.Codec<unknown, unknown>
  /** Decodes a config and returns it as plain data with all defaults. */
  readonly decode: (input: unknown, from: DecodeOptions) => Effect.Effect<Plain, ConfigError>
  readonly open: (input: unknown, context: DatasetContext) => DatasetOpening<TaskSet>
}

/** Makes a kind of data set. Its `open` gets the config as the Schema decodes it, with all defaults. */
export const make = <S extends Schema.Codec<unknown, unknown>>(kind: {
  readonly type: string
  /** A Schema with a key `type` that holds the kind's name. */
  readonly schema: S
  readonly open: (config: S["Type"], context: DatasetContext) => DatasetOpening<TaskSet>
}): DatasetKind => ({
  type: kind.type,
  schema: kind.schema,
  decode: (input, from) =>
    decode(kind.schema, input, from).pipe(
      // The value was just decoded, so it can be encoded.
      Effect.flatMap((config) => Effect.orDie(Schema.encodeUnknownEffect(kind.schema)(config))),
      Effect.map((plain) => (isPlain(plain) ? plain : {})),
    ),
  open: (input, context) =>
    Effect.flatMap(decode(kind.schema, input, context.from), (config) => kind.open(config, context)),
})

/** The keys of every kind of data set. */
export const orderFields = {
  /** The number of tasks that are used, from the beginning of the order (shuffled or not); null uses all. */
  maxSamples: withDefault(Schema.NullOr(bounded("countOrNone")), null),
  /** Whether the tasks are shuffled, in an order that depends on `seed`. */
  shuffle: withDefault(Schema.Boolean, false),
  /** The seed of the shuffled order; for games, also the seed of the tasks themselves. */
  seed: withDefault(bounded("seed"), 42),
  /** This setting has no effect, because a data set prints nothing. It is accepted so that existing files stay valid. */
  verbose: withDefault(Schema.Boolean, true),
}

/** Returns only those keys of a data set's config that `TaskSet.ordered` needs. */
export const orderOf = ({ shuffle, seed, maxSamples }: TaskOrder): TaskOrder => ({ shuffle, seed, maxSamples })
