/**
 * Holds tuned settings of trainings by algorithm and env, with figures of RL Baselines3 Zoo, CleanRL and others. Begin with
 * one to get the returns that others report. Each is a file in `examples/presets`, and `effect presets` lists them.
 *
 * @example
 * ```ts
 * import { Presets, Train } from "effect-rl"
 *
 * export default Train.run({ ...Presets.of("ppo", "CartPole-v1"), seed: 3 })
 * ```
 */
import { Schema } from "effect"
import { closest } from "../../base/text/closest.ts"
import { ConfigError, isPlain, toCamelCase } from "../../base/config/Config.ts"
import { shortened } from "../../base/text/text.ts"
import { parseYaml } from "../../base/config/yaml.ts"
import { bodies } from "../env/Envs.ts"
import { texts } from "./texts.ts"

const named = Schema.StructWithRest(Schema.Struct({ name: Schema.String }), [
  Schema.Record(Schema.String, Schema.Unknown),
])

/** The settings of a preset, by their names in code. `Train.run` takes them. */
export const PresetSettings = Schema.Struct({
  /** The name of its runs, such as `ppo-CartPole-v1`. */
  name: Schema.String,
  /** The project that published the figures, and the env for which it did. */
  description: Schema.String,
  /** The id of an env, or its name with options. */
  env: Schema.Union([Schema.String, named]),
  numEnvs: Schema.Int,
  /** The number of env steps after which the source reports its returns. */
  totalSteps: Schema.Int,
  normalize: Schema.optionalKey(Schema.Struct({ observations: Schema.Boolean, rewards: Schema.Boolean })),
  /** The name of the algorithm with its settings. */
  algorithm: named,
  validation: Schema.Struct({ everySteps: Schema.Int, episodes: Schema.Int }),
})
export type PresetSettings = typeof PresetSettings.Type

/** Packages that an env needs besides this library. */
interface Needed {
  readonly packages: string
  /** The command that installs them. */
  readonly install: string
}

/** A preset: its settings, and what people need to know to choose it. */
export interface Preset {
  /** The name of the preset: the algorithm and the env, such as `ppo/HalfCheetah-v5`. */
  readonly id: string
  readonly algorithm: string
  readonly env: string
  /** The project that published the figures, and the env for which it did. */
  readonly source: string
  /** The packages that the env needs besides this library; undefined if none. */
  readonly needs: Needed | undefined
  readonly settings: PresetSettings
  /** The preset as a commented config in YAML. */
  readonly yaml: string
}

/** The names of all presets. */
export const ids: ReadonlyArray<string> = Object.keys(texts)

const decode = Schema.decodeUnknownSync(PresetSettings)

/** Reads a preset that exists. A test reads all of them, so that no user meets a broken one. */
const read = (id: string): Preset => {
  const yaml = texts[id]
  const parsed = parseYaml(yaml)
  const settings = decode("value" in parsed ? toCamelCase(parsed.value) : parsed)
  const cut = id.indexOf("/")
  return {
    id,
    algorithm: id.slice(0, cut),
    env: id.slice(cut + 1),
    source: settings.description,
    needs: needsOf(settings.env),
    settings,
    yaml,
  }
}

const needsOf = (env: PresetSettings["env"]): Needed | undefined => {
  if (isPlain(env)) {
    const packages = "gymnasium[box2d]"
    return env.name === "Gymnasium" ? { packages, install: `python3 -m pip install "${packages}"` } : undefined
  }
  if (!bodies.some(({ id }) => id === env)) return undefined
  return { packages: "@mujoco/mujoco", install: "npm install @mujoco/mujoco@3.14.0" }
}

/** Returns all presets, in the order of their names. */
export const all = (): ReadonlyArray<Preset> => ids.map(read)

/**
 * Returns the preset of this name. An unknown name throws a `ConfigError` that suggests the nearest one.
 *
 * @example
 * ```ts
 * Presets.byId("ppo/HalfCheetah-v5").source // "RL Baselines3 Zoo, HalfCheetah-v4"
 * ```
 */
export const byId = (id: string): Preset => {
  if (Object.hasOwn(texts, id)) return read(id)
  throw ConfigError.at({ source: "" }, "", `unknown preset "${shortened(id)}"; ${hintOf(id)}`)
}

/**
 * Returns the end of a message about an unknown name: the presets of the env, or a similar name, or the envs of the
 * algorithm, or the algorithms.
 */
const hintOf = (id: string): string => {
  const ofEnv = ids.filter((one) => one.slice(one.indexOf("/") + 1).toLowerCase() === id.toLowerCase())
  if (ofEnv.length > 0) return `expected one of ${ofEnv.join(", ")}`
  const near = closest(id, ids)
  if (near !== undefined) return `did you mean "${near}"?`
  const [algorithm] = id.split("/")
  const ofAlgorithm = ids.filter((one) => one.startsWith(`${algorithm}/`))
  if (ofAlgorithm.length > 0) {
    return `${algorithm} has presets for ${ofAlgorithm.map((one) => one.slice(algorithm.length + 1)).join(", ")}`
  }
  const algorithms = [...new Set(ids.map((one) => one.split("/")[0]))]
  return `expected ALGORITHM/ENV with one of these algorithms: ${algorithms.join(", ")}`
}

/**
 * Returns the tuned settings of an algorithm for an env, which `Train.run` takes, alone or with changes. If there are none,
 * throws a `ConfigError` that suggests the nearest preset.
 *
 * @example
 * ```ts
 * const { algorithm, ...settings } = Presets.of("ppo", "CartPole-v1")
 * Train.run({ ...settings, algorithm: { ...algorithm, gamma: 0.99 } })
 * ```
 */
export const of = (algorithm: string, env: string): PresetSettings => byId(`${algorithm}/${env}`).settings
