/**
 * Defines algorithms. An `Algorithm` is a name with settings. `configure` checks them and returns a `ConfiguredAlgorithm`,
 * whose `setup` describes or compiles a `Learner` for a `Task`.
 */
import { Effect, Record, type Schema, type Scope } from "effect"
import { ConfigError, decode, isPlain, type ConfigOrigin, type Plain } from "../../base/config/Config.ts"
import type { Backend } from "../../tensor/backend/Backend.ts"
import type { Learner, SetupError, Task } from "./Learner.ts"
import type { DescribedLearner } from "./rollout/DescribedLearner.ts"

export type { NamedArrays, NamedTensors } from "../../tensor/graph/Parameters.ts"
export * from "./Learner.ts"

/** An algorithm as a value: its name, and a config that has not been checked yet. */
export interface Algorithm {
  readonly name: string
  readonly input: Plain
  /** The Schema of the algorithm's config. */
  readonly schema: Schema.Codec<Plain, Plain>
  /**
   * Checks a config and fills in its defaults. An error says where the setting was written: its entry in `sources`, or
   * else `source`. `prefix` is the path of the config, `["algorithm"]` by default.
   */
  readonly configure: (input: Plain, options: ConfigOrigin) => Effect.Effect<ConfiguredAlgorithm, ConfigError>
}

/** Makes an algorithm from its settings; settings that are left out have their defaults. */
export type Make<Options> = (options?: Options) => Algorithm

/** An algorithm whose config was checked. */
export interface ConfiguredAlgorithm {
  readonly name: string
  /** The config with every default filled in. */
  readonly config: Plain
  /** The config as files hold it, with names instead of functions and layers. */
  readonly written: Plain
  /** Describes or compiles the learner for a task; `learnerOf` returns it. Fails if the algorithm cannot learn in the task's spaces. */
  readonly setup: (task: Task) => Effect.Effect<Learner | DescribedLearner, SetupError, Backend | Scope.Scope>
}

/**
 * Defines an algorithm by its name, the Schema of its config with the defaults, and a function that makes the learner.
 *
 * @example
 * ```ts
 * const config = Schema.Struct({ learningRate: Schema.Finite.pipe(Schema.withDecodingDefaultKey(Effect.succeed(1e-3))) })
 * const { make } = Algorithm.define({ name: "mine", config, setup: (config, task) => myLearner(config, task) })
 * const algorithm = make({ learningRate: 1e-4 })
 * ```
 */
export const define = <S extends Schema.Codec<Plain, Plain>>(definition: {
  readonly name: string
  readonly config: S
  readonly setup: (
    config: S["Type"],
    task: Task,
  ) => Effect.Effect<Learner | DescribedLearner, SetupError, Backend | Scope.Scope>
}): { readonly name: string; readonly make: (input?: S["Encoded"]) => Algorithm } => ({
  name: definition.name,
  make: (input = {}) => ({
    name: definition.name,
    input,
    schema: definition.config,
    configure: Effect.fnUntraced(function* (value, options) {
      const from = { prefix: ["algorithm"], ...options }
      const config = yield* decode(definition.config, yield* withCode(value, input, from), from)
      return {
        name: definition.name,
        config,
        written: withoutCode(config),
        setup: (task: Task) => definition.setup(config, task),
      }
    }),
  }),
})

// --- Code in settings: a config has only the names of functions and of the user's own layers, which `define` puts back ---

/** Applies `change` to each layer of the user's own, at any depth of the settings. */
const mapOwnLayers = (tree: unknown, change: (layer: Plain) => unknown): unknown => {
  if (Array.isArray(tree)) return tree.map((one) => mapOwnLayers(one, change))
  if (!isPlain(tree)) return tree
  return tree.type === "custom" ? change(tree) : Record.map(tree, (one) => mapOwnLayers(one, change))
}

const nameOf = (code: { readonly name: string }): string => (code.name === "" ? "anonymous" : code.name)

/**
 * Returns settings as a config holds them: `{ code: NAME }` instead of a function, and only the names of the user's own
 * layers.
 */
const withoutCode = (settings: Plain): Plain =>
  Record.map(settings, (value) =>
    typeof value === "function" ? { code: nameOf(value) } : mapOwnLayers(value, ({ type, name }) => ({ type, name })),
  )

/**
 * Puts functions and layers back into settings from a config, which has only their names. `fromCode` are the settings
 * from code, which have them. Fails for a name that `fromCode` does not have.
 */
const withCode = (settings: Plain, fromCode: Plain, from: ConfigOrigin): Effect.Effect<Plain, ConfigError> =>
  Effect.gen(function* () {
    const layers = new Map<unknown, unknown>()
    const problems: Array<{ readonly key: string; readonly problem: string; readonly unknown?: "code" }> = []
    for (const [key, value] of Object.entries(fromCode)) {
      mapOwnLayers(value, ({ name, layer }) => {
        if (layers.has(name) && layers.get(name) !== layer)
          problems.push({ key, problem: `two layers are called "${String(name)}"; give each a name of its own` })
        layers.set(name, layer)
      })
    }
    const absent = (name: unknown): string => `"${String(name)}" is made in code, by the program of the run`
    const restored = Record.map(settings, (value, key) => {
      if (isPlain(value) && typeof value.code === "string") {
        const code = fromCode[key]
        if (typeof code === "function" && nameOf(code) === value.code) return code
        problems.push({ key, problem: absent(value.code), unknown: "code" })
      }
      return mapOwnLayers(value, ({ type, name, layer = layers.get(name), ...rest }) => {
        if (layer === undefined) problems.push({ key, problem: `the layer ${absent(name)}`, unknown: "code" })
        return { type, name, layer, ...rest }
      })
    })
    const [first] = problems
    if (first === undefined) return restored
    const { key, problem, ...more } = first
    return yield* ConfigError.at(from, key, problem, more)
  })
