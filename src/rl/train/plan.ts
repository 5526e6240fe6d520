/**
 * Turns the config of a training into a `Plan`: applies overrides, checks every setting, and finds the env and the
 * algorithm. It compiles and writes nothing. `Train.ts` calls it.
 */
import { Effect, Equal, Option, Predicate, Struct } from "effect"
import * as Schema from "effect/Schema"
import type { Algorithm, ConfiguredAlgorithm } from "../learner/Algorithm.ts"
import { byName as algorithmByName, find, findToPlay } from "../algorithms/registry.ts"
import {
  applyOverrides,
  checkAll,
  ConfigError,
  decode,
  isPlain,
  type Override,
  overLines,
  type Plain,
  sourceOf,
  display,
} from "../../base/config/Config.ts"
import { tidyFolder } from "../../base/files/files.ts"
import { type Env, rowSpaceOf } from "../env/Env.ts"
import { builtIn, envConfigOf } from "../env/Envs.ts"
import { fromConfig, expandedConfig } from "../env/fromConfig.ts"
import { isUnstarted } from "../env/foreign/unstarted.ts"
import type { EnvConfig } from "../env/recipe.ts"
import { shapeOf } from "../env/Space.ts"
import { Serving } from "../../run/spread/Serving.ts"
import { ValidationRequest } from "../../run/ValidationRequest.ts"
import { type Callback, callbacksProblemOf } from "./Callback.ts"
import { RunOptions } from "../../run/RunOptions.ts"
import { type NamedConfig, Settings, type TrainInput } from "./Settings.ts"
import { expand } from "./TrainerConfig.ts"

/** The settings of a training after `checkpoint.everySteps`, whose default depends on `totalSteps`, was filled in. */
export type Decided = Omit<Settings, "checkpoint"> & {
  readonly checkpoint: Omit<Settings["checkpoint"], "everySteps"> & { readonly everySteps: number }
}

/** A training whose settings are all checked and decoded, with its env and algorithm. */
export interface Plan {
  readonly settings: Decided
  readonly env: Env
  /** The envs for validation: those that the config names, otherwise the training's env. */
  readonly validationEnvs: ReadonlyArray<Env>
  readonly algorithm: ConfiguredAlgorithm
  /** The callbacks that the config names. */
  readonly callbacks: ReadonlyArray<Callback>
  /** The effective config, as `config.yaml` holds it. */
  readonly effective: Plain
  /** Remarks that are recorded when the run starts. */
  readonly notes: ReadonlyArray<string>
  /** Warnings about settings that cannot be applied. */
  readonly warnings: ReadonlyArray<string>
  /** Where each setting was written, for error messages. */
  readonly from: { readonly source: string; readonly sources: ReadonlyMap<string, string> }
}

/**
 * Tells whether a policy for one env can act in the other: observations have equal shapes, and action spaces are equal.
 */
export const hasSameSpaces = (one: Env, other: Env): boolean =>
  JSON.stringify(shapeOf(rowSpaceOf(one))) === JSON.stringify(shapeOf(rowSpaceOf(other))) &&
  JSON.stringify(one.actionSpace) === JSON.stringify(other.actionSpace)

/**
 * The envs and the algorithm that code passed as values. The config, which is checked, has only their names and
 * options.
 */
interface Values {
  readonly env?: Env | undefined
  /** The validation envs, each at its index in `validation.envs`; undefined for one that was passed by name. */
  readonly validationEnvs?: ReadonlyArray<Env | undefined>
  readonly algorithm?: Algorithm | undefined
  readonly callbacks?: ReadonlyArray<Callback> | undefined
}

/**
 * Makes the plan of a training from its config. Fails with a `ConfigError` for a setting that is wrong. `lines` maps
 * each key to the place where it was written.
 */
export const plan = Effect.fnUntraced(function* (
  config: Plain,
  values: Values,
  lines: ReadonlyMap<string, string> = new Map(),
): Effect.fn.Return<Plan, ConfigError> {
  const options = yield* RunOptions
  yield* checkValues(values, options.source)
  const written = yield* overridden({ name: options.name, ...config }, options.overrides, values)
  const origin = { source: options.source, sources: overLines(lines, written.sources) }
  const algorithmName = isPlain(written.value.algorithm) ? written.value.algorithm.name : written.value.algorithm
  const onlyPlays = (yield* ValidationRequest) !== undefined || (yield* Serving) !== undefined
  const findAlgorithm = onlyPlays ? findToPlay : find
  const algorithmValue =
    values.algorithm?.name === algorithmName ? values.algorithm : findAlgorithm(String(algorithmName))
  const { value, sources } = yield* expand(written.value, origin, algorithmValue)
  const from = { ...origin, sources }
  const nameProblem = algorithmNameProblemOf(value.algorithm)
  const algorithmSettings = Struct.omit(isPlain(value.algorithm) ? value.algorithm : {}, ["name"])
  const fromInWhole = { ...from, whole: wholeOf(algorithmValue) }
  const decodeSettings = decode(Settings, value, fromInWhole)
  yield* checkAll([
    decodeSettings,
    ...(algorithmValue === undefined ? [] : [algorithmValue.configure(algorithmSettings, fromInWhole)]),
    refuse(sourceOf(from, "algorithm"), "algorithm", nameProblem),
  ])
  const decoded = yield* decodeSettings
  const { checkpoint } = decoded
  const everySteps = checkpoint.everySteps ?? Math.ceil(decoded.totalSteps / 10)
  const settings = {
    ...decoded,
    checkpoint: { ...checkpoint, everySteps, dir: tidyFolder(checkpoint.dir) },
    logDir: tidyFolder(decoded.logDir),
  }

  const { env, others } = yield* envsOf(settings, values, from)
  const conflict = conflictIn(settings)
  if (conflict !== undefined) return yield* ConfigError.at(from, conflict.key, conflict.problem)

  const callbacks = yield* callbacksOf(settings, values.callbacks ?? [], from)
  const { name, ...algorithmConfig } = settings.algorithm
  const named = algorithmValue ?? (yield* algorithmByName(String(name), sourceOf(from, "algorithm.name")))
  const algorithm = yield* named.configure(algorithmConfig, from)
  const renderedEnv = others[0] ?? env
  // Only when an env that runs elsewhere is opened, it tells whether it can render.
  const isRendering = settings.render.everySteps + settings.render.everyEpisodes > 0
  const lacksRenderer = isRendering && renderedEnv.renderSvg === undefined && renderedEnv.open === undefined
  return {
    settings,
    env,
    validationEnvs: others.length === 0 ? [env] : others,
    algorithm,
    callbacks,
    notes: [
      ...switchNotes(config, settings, written.sources),
      ...(values.callbacks ?? []).flatMap(({ name }) =>
        settings.callbacks.includes(name)
          ? []
          : [`the callback ${name} is off: ${sourceOf(from, "callbacks")} does not name it`],
      ),
    ],
    warnings: [
      ...(lacksRenderer
        ? [`${renderedEnv.id} cannot be drawn (it has no renderSvg), so only trajectories of its episodes are saved`]
        : []),
      ...(settings.render.video !== null && !isRendering
        ? ["render.video makes no videos in a training without render.every_steps or render.every_episodes"]
        : []),
    ],
    effective: { ...settings, algorithm: { name: algorithm.name, ...algorithm.written } },
    from,
  }
})

/** Fails if code passed something else than an env, an algorithm or a list of callbacks. */
const checkValues = (
  { env, validationEnvs = [], algorithm, callbacks }: Values,
  source: string,
): Effect.Effect<void, ConfigError> => {
  const envProblem = [env, ...validationEnvs].map(envProblemOf).find((problem) => problem !== undefined)
  return checkAll([
    refuse(source, "env", envProblem),
    refuse(source, "algorithm", algorithm === undefined ? undefined : algorithmProblemOf(algorithm)),
    refuse(source, "callbacks", callbacks === undefined ? undefined : callbacksProblemOf(callbacks)),
  ])
}

/** Returns the training env and the validation envs. Fails unless all have the same spaces. */
const envsOf = Effect.fnUntraced(function* (
  settings: Settings,
  { env: envValue, validationEnvs: validationEnvValues = [] }: Values,
  from: Plan["from"],
) {
  /**
   * Returns the env for an env setting. If the setting, after the overrides, still describes one of `candidates`, which
   * code passed as values, returns that env; otherwise makes a new one.
   */
  const envOf = (
    written: EnvConfig,
    candidates: ReadonlyArray<Env | undefined>,
    key: string,
  ): Effect.Effect<Env, ConfigError> => {
    const value = candidates.find((candidate) => candidate !== undefined && Equal.equals(inConfig(candidate), written))
    if (value !== undefined) return Effect.succeed(value)
    const ids = new Set(candidates.flatMap((candidate) => candidate?.id ?? []))
    return Effect.mapError(fromConfig(written, { ...from, prefix: key.split(".") }), (error) =>
      error.unknown === "env" && ids.size > 0
        ? error.reworded((message) => `${message}; the env of this program is ${[...ids].join(" or ")}`)
        : error,
    )
  }
  const env = yield* envOf(settings.env, [envValue, ...validationEnvValues], "env")
  const others = yield* Effect.forEach(settings.validation.envs, (written, index) =>
    envOf(written, [validationEnvValues[index], ...validationEnvValues, envValue], "validation.envs"),
  )
  const other = others.find((candidate) => ![candidate, env].some(isUnstarted) && !hasSameSpaces(candidate, env))
  if (other === undefined) return { env, others }
  const problem = `${other.id} has other observations or actions than the training env ${env.id}; choose envs of the same spaces`
  return yield* ConfigError.at(from, "validation.envs", problem)
})

/** Returns the callbacks that a config names, in its order. Fails for a name that no callback from code has. */
const callbacksOf = (
  settings: Settings,
  made: ReadonlyArray<Callback>,
  from: Plan["from"],
): Effect.Effect<ReadonlyArray<Callback>, ConfigError> =>
  Effect.forEach(settings.callbacks, (name) => {
    const callback = made.find((one) => one.name === name)
    const problem = `the callback "${name}" is made in code, by the program of the run; leave it out with --set callbacks=[]`
    return callback === undefined
      ? Effect.fail(ConfigError.at(from, "callbacks", problem, { unknown: "callback" }))
      : Effect.succeed(callback)
  })

/** Returns the Schema of a whole config with this algorithm. Error messages use it to say where a misplaced key belongs. */
const wholeOf = (algorithm: Algorithm | undefined): Schema.Top =>
  algorithm === undefined ? Settings : Schema.Struct({ ...Settings.fields, algorithm: algorithm.schema })

/** Describes why a value that code passed is not a usable env; undefined if it is usable. */
const envProblemOf = (env: Env | undefined): string | undefined => {
  if (env === undefined) return undefined
  // A JavaScript program without types may pass anything.
  const value: unknown = env
  if (
    Predicate.hasProperty(value, "reset") &&
    Predicate.hasProperty(value, "observe") &&
    Predicate.hasProperty(value, "step")
  ) {
    // The id of a changed copy would name the original env in a config.
    return envConfigOf(env) === undefined && builtIn.some(({ id }) => id === env.id)
      ? `${env.id} is the id of a built-in env, and this is a changed copy of it; give the copy its own id`
      : undefined
  }
  const isModule = Predicate.hasProperty(value, "env")
  const hint = isModule ? "; did you mean its .env?" : ""
  return `expected an env, as Env.make gives, or the id of one, found ${isModule ? "a module" : display(value)}${hint}`
}

const refuse = (source: string, key: string, problem: string | undefined): Effect.Effect<void, ConfigError> =>
  problem === undefined ? Effect.void : Effect.fail(ConfigError.at({ source }, key, problem))

/** Describes why a value that code passed is not an algorithm; undefined if it is one. */
const algorithmProblemOf = (algorithm: unknown): string | undefined => {
  if (Predicate.hasProperty(algorithm, "name") && Predicate.hasProperty(algorithm, "configure")) return undefined
  const shownValue = Predicate.hasProperty(algorithm, "make")
    ? "a module; did you mean its .make()?"
    : display(algorithm)
  return `expected an algorithm, as Ppo.make() gives, or the name of one, found ${shownValue}`
}

/** Describes why the algorithm in a config has no usable name; undefined if it has one. */
const algorithmNameProblemOf = (algorithm: unknown): string | undefined => {
  const name = isPlain(algorithm) ? algorithm.name : algorithm
  if (algorithm === undefined || typeof name === "string") return undefined
  return `expected an algorithm's name, or its name with settings, found ${display(name)}`
}

/** Returns notes that say if a file, such as a resumed run's config, names another env or algorithm than the code. */
const switchNotes = (code: Plain, settings: Settings, sources: ReadonlyMap<string, string>): ReadonlyArray<string> => {
  const nameOf = (written: unknown): string => String(isPlain(written) ? written.name : written)
  return (["env", "algorithm"] as const).flatMap((key) => {
    if (code[key] === undefined) return []
    const [was, is] = [nameOf(expandedConfig(code[key])), nameOf(settings[key])]
    const source = sources.get(key) ?? sources.get(`${key}.name`) ?? ""
    return was === is || source.startsWith("--") ? [] : [`${key} is ${is}, from ${source}; the code says ${was}`]
  })
}

/**
 * Applies the overrides in order; returns the new config and where each setting comes from. An override that changes
 * the algorithm or the env drops the settings of the previous one; an override that repeats its name keeps them.
 */
const overridden = Effect.fnUntraced(function* (config: Plain, overrides: ReadonlyArray<Override>, values: Values) {
  let value = withTrees(config)
  const applied: Array<Override> = []
  for (const override of overrides) {
    const before = value
    if (yield* repeatsName(override, before, values)) continue
    applied.push(override)
    value = withTrees((yield* applyOverrides(value, [override])).value)
    // If only `algorithm.name` or `env.name` changes, the other settings must be dropped, too.
    for (const key of override.path.includes(".") ? ["algorithm", "env"] : []) {
      const [was, is] = [before[key], value[key]]
      if (isPlain(was) && isPlain(is) && was.name !== is.name) value = { ...value, [key]: { name: is.name } }
    }
  }
  return { value, sources: (yield* applyOverrides(withTrees(config), applied)).sources }
})

/** Tells whether an override sets `env` or `algorithm` to the name or the id that the config already has. */
const repeatsName = Effect.fnUntraced(function* (
  { path, value: name }: Override,
  before: Plain,
  { env: envValue }: Values,
) {
  if (typeof name !== "string" || (path !== "algorithm" && path !== "env")) return false
  const was = before[path]
  if (isPlain(was) && was.name === name) return true
  if (path === "algorithm" || was === undefined) return false
  if (envValue !== undefined && Equal.equals(expandedConfig(inConfig(envValue)), was)) return envValue.id === name
  const env = yield* Effect.option(fromConfig(was, { source: "" }))
  return Option.isSome(env) && env.value.id === name
})

/** Expands the short forms of a config: `algorithm: a2c` to `{ name: a2c }`, and an env's id to its options. */
const withTrees = (config: Plain): Plain => ({
  ...config,
  ...(config.env === undefined ? {} : { env: expandedConfig(config.env) }),
  ...(config.algorithm === undefined || isPlain(config.algorithm) ? {} : { algorithm: { name: config.algorithm } }),
})

/** The largest number of episodes of a rendering that are filmed. */
const mostFilmed = 100

/** Returns the first setting that contradicts another one, with the problem; undefined if there is none. */
const conflictIn = ({ validation, render, stopAtReturn, stopBelow }: Settings) => {
  const { everySteps, episodes, envs } = validation
  if (everySteps > 0 && episodes < envs.length) {
    const problem = `expected at least one episode for each of the ${envs.length} validation envs, found ${episodes}`
    return { key: "validation.episodes", problem }
  }
  // Rendered episodes are validation episodes.
  if (render.everySteps > 0 && (everySteps === 0 || render.everySteps % everySteps !== 0)) {
    const problem = `expected a multiple of validation.every_steps, ${everySteps}, found ${render.everySteps}`
    return { key: "render.every_steps", problem }
  }
  if (render.video !== null && render.episodes > mostFilmed) {
    const problem = `expected at most ${mostFilmed} episodes with a video, because their pictures are kept until it is made, found ${render.episodes}`
    return { key: "render.episodes", problem }
  }
  if (stopAtReturn !== null && everySteps === 0) {
    const problem = `only validations measure whether ${stopAtReturn} is reached; set validation.every_steps`
    return { key: "stop_at_return", problem }
  }
  if (stopBelow.length > 0 && everySteps === 0) {
    const problem = "only validations measure whether a return is below these limits; set validation.every_steps"
    return { key: "stop_below", problem }
  }
  return undefined
}

/** Describes an env for the config: a built-in env by all its options, any other env by its id. */
const inConfig = (env: Env): EnvConfig => envConfigOf(env) ?? env.id

/** Tells whether code passed an env or an algorithm as a config has it: a name with settings. */
const isNamed = (value: Env | Algorithm | string | NamedConfig): value is NamedConfig =>
  isPlain(value) && typeof value.name === "string" && !("configure" in value) && !("reset" in value)

/** Describes an algorithm for the config: its name and the settings from code. An unusable value becomes a text. */
const writtenAlgorithm = (algorithm: Algorithm | string): Plain =>
  typeof algorithm === "string" || algorithmProblemOf(algorithm) !== undefined
    ? { name: typeof algorithm === "string" ? algorithm : display(algorithm) }
    : { name: algorithm.name, ...algorithm.input }

/** Splits the input of `Train.run` into a config and the values that the config names. */
export const configOf = (input: TrainInput): { readonly config: Plain; readonly values: Values } => {
  // A JavaScript program without types may leave out any key.
  const untypedInput: Partial<TrainInput> | null | undefined = input
  const { env, algorithm, validation, callbacks, ...rest } = untypedInput ?? {}
  const { envs: others = [], ...validating } = validation ?? {}
  const written = (one: Env | string): EnvConfig =>
    typeof one === "string" ? one : envProblemOf(one) !== undefined ? display(one) : inConfig(one)
  const valueOf = (one: Env | string | NamedConfig | undefined): Env | undefined =>
    one === undefined || typeof one === "string" || isNamed(one) ? undefined : one
  return {
    config: {
      ...rest,
      ...(env === undefined ? {} : { env: isNamed(env) ? env : written(env) }),
      ...(algorithm === undefined ? {} : { algorithm: isNamed(algorithm) ? algorithm : writtenAlgorithm(algorithm) }),
      ...(callbacks === undefined || callbacksProblemOf(callbacks) !== undefined
        ? {}
        : { callbacks: callbacks.map(({ name }) => name) }),
      ...(validation === undefined
        ? {}
        : { validation: { ...validating, ...(others.length === 0 ? {} : { envs: others.map(written) }) } }),
    },
    values: {
      env: valueOf(env),
      validationEnvs: others.map(valueOf),
      algorithm: algorithm === undefined || typeof algorithm === "string" || isNamed(algorithm) ? undefined : algorithm,
      callbacks,
    },
  }
}
