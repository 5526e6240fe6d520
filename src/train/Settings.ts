import { Effect, Schema } from "effect"
import type { Algorithm, ConfiguredAlgorithm } from "../algorithm/Algorithm.ts"
import { byName as algorithmByName } from "../algorithm/registry.ts"
import { RetentionStrategy } from "../checkpoint/Checkpoint.ts"
import { applyOverrides, ConfigError, decode, isPlain, type Plain } from "../config/Config.ts"
import type { AnyEnv } from "../env/Env.ts"
import { byId as envById } from "../env/registry.ts"
import { RunOptions } from "./RunOptions.ts"

const count = (minimum: number) => Schema.Int.check(Schema.isGreaterThanOrEqualTo(minimum))

const withDefault = <S extends Schema.Top>(schema: S, value: S["Encoded"]) =>
  schema.pipe(Schema.withDecodingDefaultKey(Effect.succeed(value)))

export const ValidationSettings = Schema.Struct({
  /** Validate whenever this many more env steps were taken; 0 never validates. */
  everySteps: withDefault(count(0), 0),
  episodes: withDefault(count(1), 20),
  /** An episode is cut off after so many steps, whatever the env says. */
  maxSteps: withDefault(count(1), 10_000),
})

export const CheckpointSettings = Schema.Struct({
  /** Save whenever this many more env steps were taken; 0 saves at the end only. */
  everySteps: withDefault(count(0), 0),
  strategy: withDefault(RetentionStrategy, { _tag: "LastN" as const, keep: 3 }),
})

export const NormalizeSettings = Schema.Struct({
  /** Observations to mean 0 and deviation 1, by running statistics. */
  observations: withDefault(Schema.Boolean, false),
  /** Rewards divided by the deviation of the discounted return. */
  rewards: withDefault(Schema.Boolean, false),
})

/** Everything about a training but the env and the algorithm themselves. */
export const Settings = Schema.Struct({
  env: Schema.String,
  numEnvs: withDefault(count(1), 8),
  totalSteps: count(1),
  seed: withDefault(Schema.Int, 1),
  name: withDefault(Schema.NonEmptyString, "run"),
  /** The algorithm's name and its own config. */
  algorithm: Schema.Record(Schema.String, Schema.Unknown),
  validation: withDefault(ValidationSettings, {}),
  checkpoint: withDefault(CheckpointSettings, {}),
  normalize: withDefault(NormalizeSettings, {}),
  /** Ends the training when a validation's mean return reaches this. */
  stopAtReturn: withDefault(Schema.NullOr(Schema.Finite), null),
})
export type Settings = typeof Settings.Type

/** What `Train.run` takes: the settings, with an env and an algorithm as values or by name. */
export type TrainInput = Omit<typeof Settings.Encoded, "env" | "algorithm"> & {
  readonly env: AnyEnv | string
  readonly algorithm: Algorithm | string
}

/** A training that can start: everything decoded, every name found. */
export interface Plan {
  readonly settings: Settings
  readonly env: AnyEnv
  readonly algorithm: ConfiguredAlgorithm
  /** The effective config, as `config.yaml` holds it. */
  readonly effective: Plain
}

const orConfigError = <A, E extends { readonly message: string }>(
  effect: Effect.Effect<A, E>,
  source: string,
  key: string,
): Effect.Effect<A, ConfigError> =>
  Effect.mapError(effect, (error) => new ConfigError({ source, key, message: `${source}: ${key}: ${error.message}` }))

/** Lays the launcher's overrides over the input, checks everything, finds the env and the algorithm. */
export const plan = Effect.fnUntraced(function* (input: TrainInput): Effect.fn.Return<Plan, ConfigError> {
  const options = yield* RunOptions
  const given = { name: options.name, ...input, ...namesOf(input) }
  const { value, sources } = applyOverrides(given, options.overrides)
  const from = { source: options.source, sources }
  const settings = yield* decode(Settings, withAlgorithmTree(value), from)

  const env =
    typeof input.env !== "string" && input.env.id === settings.env
      ? input.env
      : yield* orConfigError(envById(settings.env), sources.get("env") ?? options.source, "env")

  const { name, ...algorithmInput } = settings.algorithm
  const named =
    typeof input.algorithm !== "string" && input.algorithm.name === name
      ? input.algorithm
      : yield* orConfigError(algorithmByName(String(name)), sources.get("algorithm.name") ?? options.source, "algorithm")
  const algorithm = yield* named.configure(algorithmInput, from)
  return { settings, env, algorithm, effective: { ...settings, algorithm: { name: algorithm.name, ...algorithm.config } } }
})

const namesOf = (input: TrainInput): Plain => ({
  env: typeof input.env === "string" ? input.env : input.env.id,
  algorithm: typeof input.algorithm === "string" ? { name: input.algorithm } : { name: input.algorithm.name, ...input.algorithm.input },
})

/** `--set algorithm=a2c` means the algorithm of that name with its own defaults. */
const withAlgorithmTree = (value: Plain): Plain =>
  isPlain(value.algorithm) ? value : { ...value, algorithm: { name: value.algorithm } }
