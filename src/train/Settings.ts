import { Effect, Equal, Schema } from "effect"
import type { Algorithm, ConfiguredAlgorithm } from "../algorithm/Algorithm.ts"
import { byName as algorithmByName } from "../algorithm/registry.ts"
import { RetentionStrategy } from "../checkpoint/Checkpoint.ts"
import { applyOverrides, ConfigError, decode, isPlain, type Override, type Plain } from "../config/Config.ts"
import { naturalInt, positiveInt, withDefault } from "../config/fields.ts"
import type { Env } from "../env/Env.ts"
import { saidOf } from "../env/Envs.ts"
import { fromConfig, spelledOut } from "../env/fromConfig.ts"
import type { Said } from "../env/recipe.ts"
import { RunOptions } from "./RunOptions.ts"
import { expand, type TrainerConfig } from "./TrainerConfig.ts"

/** An env by its id, or by its name with options. */
const EnvSetting = Schema.Union([Schema.String, Schema.Record(Schema.String, Schema.Unknown)])

export const ValidationSettings = Schema.Struct({
  /** Validate whenever this many more env steps were taken; 0 never validates. */
  everySteps: withDefault(naturalInt, 0),
  episodes: withDefault(positiveInt, 20),
  /** An episode is cut off after so many steps, whatever the env says. */
  maxSteps: withDefault(positiveInt, 10_000),
  /** Threads that step the validation envs, for heavy ones; 0 steps them where everything else is done. */
  workers: withDefault(naturalInt, 0),
  /** Draws actions as in training instead of taking the best: for policies that must be unsure to get anywhere. */
  sampled: withDefault(Schema.Boolean, false),
  /** Other envs than that of the training: each plays its share of the episodes, at the same time as the others. */
  envs: withDefault(Schema.Array(EnvSetting), []),
})

export const CheckpointSettings = Schema.Struct({
  /** Save whenever this many more env steps were taken; 0 saves at the end only. */
  everySteps: withDefault(naturalInt, 0),
  /** Save whenever this many more episodes have ended, too. */
  everyEpisodes: withDefault(naturalInt, 0),
  /** Save before the first step. */
  onStart: withDefault(Schema.Boolean, false),
  strategy: withDefault(RetentionStrategy, { _tag: "LastN" as const, keep: 3 }),
})

export const RenderSettings = Schema.Struct({
  /** Keep an episode to look at whenever this many more env steps were taken: a multiple of the validations'; 0 never does. */
  everySteps: withDefault(naturalInt, 0),
  /** Steps a second that the picture plays. */
  speed: withDefault(positiveInt, 30),
})

export const NormalizeSettings = Schema.Struct({
  /** Observations to mean 0 and deviation 1, by running statistics. */
  observations: withDefault(Schema.Boolean, false),
  /** Rewards divided by the deviation of the discounted return. */
  rewards: withDefault(Schema.Boolean, false),
})

/** Everything about a training but the env and the algorithm themselves. */
export const Settings = Schema.Struct({
  env: EnvSetting,
  numEnvs: withDefault(positiveInt, 8),
  /** Threads that step the envs, for heavy ones; 0 steps them where everything else is done. The result is the same. */
  workers: withDefault(naturalInt, 0),
  totalSteps: positiveInt,
  seed: withDefault(Schema.Int, 1),
  name: withDefault(Schema.NonEmptyString, "run"),
  /** The algorithm's name and its own config. */
  algorithm: Schema.Record(Schema.String, Schema.Unknown),
  validation: withDefault(ValidationSettings, {}),
  checkpoint: withDefault(CheckpointSettings, {}),
  render: withDefault(RenderSettings, {}),
  normalize: withDefault(NormalizeSettings, {}),
  /** Whether TensorBoard gets anything. */
  logScalars: withDefault(Schema.Boolean, true),
  /** Env steps between two records of how the learning goes; an iteration that takes more is recorded by itself. */
  recordEvery: withDefault(positiveInt, 256),
  /** Ends the training when a validation's mean return reaches this. */
  stopAtReturn: withDefault(Schema.NullOr(Schema.Finite), null),
})
export type Settings = typeof Settings.Type

type Validation = NonNullable<(typeof Settings.Encoded)["validation"]>

/** What `Train.run` takes: the settings, with envs and an algorithm as values or by name. */
export type TrainInput = Omit<typeof Settings.Encoded, "env" | "algorithm" | "validation" | "totalSteps"> & {
  /** May be left to `trainer`. */
  readonly totalSteps?: number
  /** Settings by their names in a flat block: see `TrainerConfig`. */
  readonly trainer?: typeof TrainerConfig.Encoded
  readonly env: Env | string
  readonly algorithm: Algorithm | string
  readonly validation?: Omit<Validation, "envs"> & { readonly envs?: ReadonlyArray<Env | string> }
}

/** A training that can start: everything decoded, every name found. */
export interface Plan {
  readonly settings: Settings
  readonly env: Env
  /** Those that validations are played in; that of the training unless others were given. */
  readonly validationEnvs: ReadonlyArray<Env>
  readonly algorithm: ConfiguredAlgorithm
  /** The effective config, as `config.yaml` holds it. */
  readonly effective: Plain
  /** Who said what, for errors. */
  readonly from: { readonly source: string; readonly sources: ReadonlyMap<string, string> }
}

/** Can a policy for one act in the other? */
const looksLike = (one: Env, other: Env): boolean =>
  one.observationSpace.shape.join() === other.observationSpace.shape.join() &&
  JSON.stringify(one.actionSpace) === JSON.stringify(other.actionSpace)

/** Every validation env must have an episode to play. */
const checkShares = ({ validation }: Settings, source: string): Effect.Effect<void, ConfigError> => {
  const { everySteps, episodes, envs } = validation
  if (everySteps === 0 || episodes >= envs.length) return Effect.void
  const key = "validation.episodes"
  const message = `${source}: ${key}: ${episodes} episodes are too few for ${envs.length} validation envs, of which each plays at least one`
  return Effect.fail(new ConfigError({ source, key, message }))
}

/** The values behind the names in a config, where code gave values. */
export interface Values {
  readonly env?: Env
  /** In the places that they have in `validation.envs`. */
  readonly validationEnvs?: ReadonlyArray<Env | undefined>
  readonly algorithm?: Algorithm
}

/** Lays the launcher's overrides over a config, checks everything, finds the env and the algorithm. */
export const plan = Effect.fnUntraced(function* (config: Plain, values: Values): Effect.fn.Return<Plan, ConfigError> {
  const options = yield* RunOptions
  const said = overridden({ name: options.name, ...config }, options.overrides)
  const { value, sources } = yield* expand(said.value, { source: options.source, sources: said.sources })
  const from = { source: options.source, sources }
  const settings = yield* decode(Settings, value, from)

  const { env: givenEnv, validationEnvs: givenOthers = [] } = values
  /** The values that code gave, wherever the config still says them; the one in the same place before others. */
  const envSaid = (said: Said, given: ReadonlyArray<Env | undefined>, key: string): Effect.Effect<Env, ConfigError> => {
    const value = given.find((candidate) => candidate !== undefined && Equal.equals(inConfig(candidate), said))
    return value === undefined ? fromConfig(said, { ...from, prefix: key.split(".") }) : Effect.succeed(value)
  }
  const env = yield* envSaid(settings.env, [givenEnv, ...givenOthers], "env")
  const others = yield* Effect.forEach(settings.validation.envs, (said, index) =>
    envSaid(said, [givenOthers[index], ...givenOthers, givenEnv], "validation.envs"),
  )
  const other = others.find((candidate) => !looksLike(candidate, env))
  if (other !== undefined) {
    const message = `${options.source}: validation.envs: ${other.id} has other observations or actions than ${env.id}, which is trained on`
    return yield* new ConfigError({ source: options.source, key: "validation.envs", message })
  }
  yield* checkShares(settings, options.source)
  yield* checkRendering(settings, options.source)
  yield* checkGoal(settings, options.source)

  const { name, ...algorithmConfig } = settings.algorithm
  const named =
    values.algorithm !== undefined && values.algorithm.name === name
      ? values.algorithm
      : yield* algorithmByName(String(name), sources.get("algorithm") ?? options.source)
  const algorithm = yield* named.configure(algorithmConfig, from)
  return {
    settings,
    env,
    validationEnvs: others.length === 0 ? [env] : others,
    algorithm,
    effective: { ...settings, algorithm: { name: algorithm.name, ...algorithm.config } },
    from,
  }
})

/** One override after another; one that names another algorithm or env leaves that of the code, and its settings, behind. */
const overridden = (config: Plain, overrides: ReadonlyArray<Override>): ReturnType<typeof applyOverrides> => {
  let value = withTrees(config)
  for (const override of overrides) {
    const before = value
    value = withTrees(applyOverrides(value, [override]).value)
    for (const key of ["algorithm", "env"]) {
      const [was, is] = [before[key], value[key]]
      if (isPlain(was) && isPlain(is) && was.name !== is.name) value = { ...value, [key]: { name: is.name } }
    }
  }
  return { value, sources: applyOverrides(config, overrides).sources }
}

/** `algorithm: a2c` means the algorithm of that name with its own defaults; an env with options is spelled out as well. */
const withTrees = (config: Plain): Plain => ({
  ...config,
  ...(config.env === undefined ? {} : { env: spelledOut(config.env) }),
  ...(config.algorithm === undefined || isPlain(config.algorithm) ? {} : { algorithm: { name: config.algorithm } }),
})

/** Episodes are kept of validations, so there must be one where one is to be kept. */
const checkRendering = ({ render, validation }: Settings, source: string): Effect.Effect<void, ConfigError> => {
  const { everySteps } = render
  if (everySteps === 0 || (validation.everySteps > 0 && everySteps % validation.everySteps === 0)) return Effect.void
  const key = "render.every_steps"
  const message = `${source}: ${key}: expected a multiple of validation.every_steps, ${validation.everySteps}, found ${everySteps}`
  return Effect.fail(new ConfigError({ source, key, message }))
}

/** A goal that nobody measures would never be reached. */
const checkGoal = ({ stopAtReturn, validation }: Settings, source: string): Effect.Effect<void, ConfigError> => {
  if (stopAtReturn === null || validation.everySteps > 0) return Effect.void
  const key = "stop_at_return"
  const message = `${source}: ${key}: only validations tell whether ${stopAtReturn} is reached; set validation.every_steps`
  return Effect.fail(new ConfigError({ source, key, message }))
}

/** What a config says of an env in code: all that makes it, or the name that its author gave it. */
const inConfig = (env: Env): Said => saidOf(env) ?? env.id

/** An input in code as config and values. */
export const configOf = (input: TrainInput): { readonly config: Plain; readonly values: Values } => {
  const { env, algorithm, validation, ...rest } = input
  const { envs: others = [], ...validating } = validation ?? {}
  const said = (one: Env | string): Said => (typeof one === "string" ? one : inConfig(one))
  const valueOf = (one: Env | string): Env | undefined => (typeof one === "string" ? undefined : one)
  return {
    config: {
      ...rest,
      env: said(env),
      algorithm: typeof algorithm === "string" ? { name: algorithm } : { name: algorithm.name, ...algorithm.input },
      ...(validation === undefined
        ? {}
        : { validation: { ...validating, ...(others.length === 0 ? {} : { envs: others.map(said) }) } }),
    },
    values: {
      ...(typeof env === "string" ? {} : { env }),
      validationEnvs: others.map(valueOf),
      ...(typeof algorithm === "string" ? {} : { algorithm }),
    },
  }
}
