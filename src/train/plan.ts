import { Effect, Equal, Option, Schema, Struct } from "effect"
import type { Algorithm, ConfiguredAlgorithm } from "../learner/Algorithm.ts"
import { byName as algorithmByName, find } from "../algorithms/registry.ts"
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
} from "../config/Config.ts"
import { tidyFolder } from "../config/files.ts"
import type { Env } from "../env/Env.ts"
import { builtIn, envConfigOf } from "../env/Envs.ts"
import { fromConfig, expandedConfig } from "../env/fromConfig.ts"
import { describe } from "../config/text.ts"
import type { EnvConfig } from "../env/recipe.ts"
import { RunOptions } from "./RunOptions.ts"
import { Settings, type TrainInput } from "./Settings.ts"
import { expand } from "./TrainerConfig.ts"

/** Settings in which nothing is left open. */
export type Decided = Omit<Settings, "checkpoint"> & {
  readonly checkpoint: Omit<Settings["checkpoint"], "everySteps"> & { readonly everySteps: number }
}

/** A training that can start: everything decoded, every name found. */
export interface Plan {
  readonly settings: Decided
  readonly env: Env
  /** Those that validations are played in; that of the training unless others were given. */
  readonly validationEnvs: ReadonlyArray<Env>
  readonly algorithm: ConfiguredAlgorithm
  /** The effective config, as `config.yaml` holds it. */
  readonly effective: Plain
  /** What people should know before it starts. */
  readonly notes: ReadonlyArray<string>
  /** The same, of what they asked for and will not get. */
  readonly warnings: ReadonlyArray<string>
  /** Where each setting was written, for errors. */
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
  const problem = `expected at least one episode for each of the ${envs.length} validation envs, found ${episodes}`
  return Effect.fail(ConfigError.at({ source }, "validation.episodes", problem))
}

/** The values behind the names in a config, where code gave values. */
export interface Values {
  readonly env?: Env
  /** In the places that they have in `validation.envs`. */
  readonly validationEnvs?: ReadonlyArray<Env | undefined>
  readonly algorithm?: Algorithm
}

/** Lays the launcher's overrides over a config, checks everything, finds the env and the algorithm. */
export const plan = Effect.fnUntraced(function* (
  config: Plain,
  values: Values,
  lines: ReadonlyMap<string, string> = new Map(),
): Effect.fn.Return<Plan, ConfigError> {
  const options = yield* RunOptions
  const unfit = [values.env, ...(values.validationEnvs ?? [])].map(problemOf).find((problem) => problem !== undefined)
  const unknown = values.algorithm === undefined ? undefined : noAlgorithm(values.algorithm)
  const { source } = options
  yield* checkAll([
    unfit === undefined ? Effect.void : wrongValue(source, "env", unfit),
    unknown === undefined ? Effect.void : wrongValue(source, "algorithm", unknown),
  ])
  const written = yield* overridden({ name: options.name, ...config }, options.overrides, values)
  const laid = { source: options.source, sources: overLines(lines, written.sources) }
  const algorithmName = isPlain(written.value.algorithm) ? written.value.algorithm.name : written.value.algorithm
  const known = values.algorithm?.name === algorithmName ? values.algorithm : find(String(algorithmName))
  const { value, sources } = yield* expand(written.value, laid, known)
  const from = { ...laid, sources }
  const nameless = namelessAlgorithm(value.algorithm)
  const algorithmSettings = Struct.omit(isPlain(value.algorithm) ? value.algorithm : {}, ["name"])
  const within = { ...from, whole: wholeOf(known) }
  const reading = decode(Settings, value, within)
  yield* checkAll([
    reading,
    ...(known === undefined ? [] : [known.configure(algorithmSettings, within)]),
    ...(nameless === undefined ? [] : [wrongValue(sourceOf(from, "algorithm"), "algorithm", nameless)]),
  ])
  const decoded = yield* reading
  const { checkpoint } = decoded
  const everySteps = checkpoint.everySteps ?? Math.ceil(decoded.totalSteps / 10)
  const settings = {
    ...decoded,
    checkpoint: { ...checkpoint, everySteps, dir: tidyFolder(checkpoint.dir) },
    logDir: tidyFolder(decoded.logDir),
  }

  const { env: givenEnv, validationEnvs: givenOthers = [] } = values
  /** The values that code gave, wherever the config still says them; the one in the same place before others. */
  const envOf = (
    written: EnvConfig,
    given: ReadonlyArray<Env | undefined>,
    key: string,
  ): Effect.Effect<Env, ConfigError> => {
    const value = given.find((candidate) => candidate !== undefined && Equal.equals(inConfig(candidate), written))
    return value === undefined ? fromConfig(written, { ...from, prefix: key.split(".") }) : Effect.succeed(value)
  }
  const env = yield* envOf(settings.env, [givenEnv, ...givenOthers], "env")
  const others = yield* Effect.forEach(settings.validation.envs, (written, index) =>
    envOf(written, [givenOthers[index], ...givenOthers, givenEnv], "validation.envs"),
  )
  const other = others.find((candidate) => !looksLike(candidate, env))
  if (other !== undefined) {
    const problem = `${other.id} has other observations or actions than ${env.id}, which is trained on`
    return yield* ConfigError.at(from, "validation.envs", problem)
  }
  yield* checkShares(settings, sourceOf(from, "validation.episodes"))
  yield* checkRendering(settings, sourceOf(from, "render.every_steps"))
  yield* checkGoal(settings, sourceOf(from, "stop_at_return"))

  const { name, ...algorithmConfig } = settings.algorithm
  const named =
    values.algorithm !== undefined && values.algorithm.name === name
      ? values.algorithm
      : yield* algorithmByName(String(name), sourceOf(from, "algorithm.name"))
  const algorithm = yield* named.configure(algorithmConfig, from)
  return {
    settings,
    env,
    validationEnvs: others.length === 0 ? [env] : others,
    algorithm,
    notes: switched(config, settings, written.sources),
    warnings: undrawn(settings, others[0] ?? env),
    effective: { ...settings, algorithm: { name: algorithm.name, ...algorithm.config } },
    from,
  }
})

/** With the settings of the algorithm that is named: for where a key belongs that stands in a wrong section. */
const wholeOf = (algorithm: Algorithm | undefined): Schema.Top =>
  algorithm === undefined ? Settings : Schema.Struct({ ...Settings.fields, algorithm: algorithm.schema })

/** What is no env, though code gave it as one. */
const problemOf = (env: Env | undefined): string | undefined => {
  const given: unknown = env
  if (given === undefined) return undefined
  const has = (key: string): boolean => typeof given === "object" && given !== null && key in given
  if (has("reset") && has("observe") && has("step")) return env === undefined ? undefined : impostor(env)
  const hint = has("env") ? "; did you mean its .env?" : ""
  return `expected an env, as Env.make gives, or the id of one, found ${has("env") ? "a module" : describe(given)}${hint}`
}

const wrongValue = (source: string, key: string, problem: string): Effect.Effect<never, ConfigError> =>
  Effect.fail(ConfigError.at({ source }, key, problem))

/** What is no algorithm, though code gave it as one. */
const noAlgorithm = (algorithm: unknown): string | undefined => {
  const has = (key: string): boolean => typeof algorithm === "object" && algorithm !== null && key in algorithm
  if (has("name") && has("configure")) return undefined
  const found = has("make") ? "a module; did you mean its .make()?" : describe(algorithm)
  return `expected an algorithm, as Ppo.make() gives, or the name of one, found ${found}`
}

/** An algorithm in a config that can't be looked up, by what it has for a name. */
const namelessAlgorithm = (algorithm: unknown): string | undefined => {
  const name = isPlain(algorithm) ? algorithm.name : algorithm
  if (algorithm === undefined || typeof name === "string") return undefined
  return `expected an algorithm's name, or its name with settings, found ${describe(name)}`
}

/** A config could only say the env that it is no longer. */
const impostor = (env: Env): string | undefined =>
  envConfigOf(env) === undefined && builtIn.some(({ id }) => id === env.id)
    ? `${env.id} is the id of a built-in env, of which this is a changed copy: give it an id of its own`
    : undefined

/** A file of settings (that of a run which goes on, say) may be about something else than the code that it is laid over. */
const switched = (code: Plain, settings: Settings, sources: ReadonlyMap<string, string>): ReadonlyArray<string> => {
  const nameOf = (written: unknown): string => String(isPlain(written) ? written.name : written)
  return (["env", "algorithm"] as const).flatMap((key) => {
    if (code[key] === undefined) return []
    const [was, is] = [nameOf(expandedConfig(code[key])), nameOf(settings[key])]
    const source = sources.get(key) ?? sources.get(`${key}.name`) ?? ""
    return was === is || source.startsWith("--") ? [] : [`${key} is ${is}, from ${source}; the code says ${was}`]
  })
}

const undrawn = ({ render }: Settings, env: Env): ReadonlyArray<string> =>
  render.everySteps > 0 && env.renderSvg === undefined
    ? [`${env.id} can't be drawn (it has no renderSvg): of its episodes only trajectories are kept`]
    : []

/**
 * One override after another. One that names another algorithm or env leaves that of the code, and its settings, behind;
 * one that only names what is there already changes nothing.
 */
const overridden = Effect.fnUntraced(function* (
  config: Plain,
  overrides: ReadonlyArray<Override>,
  values: Values,
): Effect.fn.Return<ReturnType<typeof applyOverrides>> {
  let value = withTrees(config)
  const laid: Array<Override> = []
  for (const override of overrides) {
    const before = value
    if (yield* namesTheSame(override, before, values)) continue
    laid.push(override)
    value = withTrees(applyOverrides(value, [override]).value)
    // One that says all of it anew leaves nothing behind by itself.
    for (const key of override.path.includes(".") ? ["algorithm", "env"] : []) {
      const [was, is] = [before[key], value[key]]
      if (isPlain(was) && isPlain(is) && was.name !== is.name) value = { ...value, [key]: { name: is.name } }
    }
  }
  return { value, sources: applyOverrides(config, laid).sources }
})

/** An env goes by its id, which that of a wrapped one is too, and by the name that it has in a config. */
const namesTheSame = Effect.fnUntraced(function* (
  { path, value: name }: Override,
  before: Plain,
  { env: given }: Values,
): Effect.fn.Return<boolean> {
  if (typeof name !== "string" || (path !== "algorithm" && path !== "env")) return false
  const was = before[path]
  if (isPlain(was) && was.name === name) return true
  if (path === "algorithm" || was === undefined) return false
  if (given !== undefined && Equal.equals(expandedConfig(inConfig(given)), was)) return given.id === name
  const env = yield* Effect.option(fromConfig(was, { source: "" }))
  return Option.isSome(env) && env.value.id === name
})

/** `algorithm: a2c` means the algorithm of that name with its own defaults; an env with options is spelled out as well. */
const withTrees = (config: Plain): Plain => ({
  ...config,
  ...(config.env === undefined ? {} : { env: expandedConfig(config.env) }),
  ...(config.algorithm === undefined || isPlain(config.algorithm) ? {} : { algorithm: { name: config.algorithm } }),
})

/** Episodes are kept of validations, so there must be one where one is to be kept. */
const checkRendering = ({ render, validation }: Settings, source: string): Effect.Effect<void, ConfigError> => {
  const { everySteps } = render
  if (everySteps === 0 || (validation.everySteps > 0 && everySteps % validation.everySteps === 0)) return Effect.void
  const problem = `expected a multiple of validation.every_steps, ${validation.everySteps}, found ${everySteps}`
  return Effect.fail(ConfigError.at({ source }, "render.every_steps", problem))
}

/** A goal that nobody measures would never be reached. */
const checkGoal = ({ stopAtReturn, validation }: Settings, source: string): Effect.Effect<void, ConfigError> => {
  if (stopAtReturn === null || validation.everySteps > 0) return Effect.void
  const problem = `only validations tell whether ${stopAtReturn} is reached; set validation.every_steps`
  return Effect.fail(ConfigError.at({ source }, "stop_at_return", problem))
}

/** What a config says of an env in code: all that makes it, or the name that its author gave it. */
const inConfig = (env: Env): EnvConfig => envConfigOf(env) ?? env.id

const writtenAlgorithm = (algorithm: Algorithm | string): Plain =>
  typeof algorithm === "string" || noAlgorithm(algorithm) !== undefined
    ? { name: typeof algorithm === "string" ? algorithm : describe(algorithm) }
    : { name: algorithm.name, ...algorithm.input }

/** An input in code as config and values. */
export const configOf = (input: TrainInput): { readonly config: Plain; readonly values: Values } => {
  // A program without types may leave out any of the keys.
  const given: Partial<TrainInput> | null | undefined = input
  const { env, algorithm, validation, ...rest } = given ?? {}
  const { envs: others = [], ...validating } = validation ?? {}
  const written = (one: Env | string): EnvConfig =>
    typeof one === "string" ? one : problemOf(one) !== undefined ? describe(one) : inConfig(one)
  const valueOf = (one: Env | string): Env | undefined => (typeof one === "string" ? undefined : one)
  return {
    config: {
      ...rest,
      ...(env === undefined ? {} : { env: written(env) }),
      ...(algorithm === undefined ? {} : { algorithm: writtenAlgorithm(algorithm) }),
      ...(validation === undefined
        ? {}
        : { validation: { ...validating, ...(others.length === 0 ? {} : { envs: others.map(written) }) } }),
    },
    values: {
      ...(env === undefined || typeof env === "string" ? {} : { env }),
      validationEnvs: others.map(valueOf),
      ...(algorithm === undefined || typeof algorithm === "string" ? {} : { algorithm }),
    },
  }
}
