/**
 * Code in the settings of an algorithm: functions, and layers of the user's own. A config has only their names, so a run
 * with such parts is resumed by its program. `define` in `Algorithm.ts` uses this file.
 */
import { Effect, Record } from "effect"
import { ConfigError, isPlain, type ConfigOrigin, type Plain } from "../../base/config/Config.ts"

/** Changes each layer of the user's own, wherever it stands in a tree of settings. */
const mapOwnLayers = (tree: unknown, change: (layer: Plain) => unknown): unknown => {
  if (Array.isArray(tree)) return tree.map((one) => mapOwnLayers(one, change))
  if (!isPlain(tree)) return tree
  return tree.type === "custom" ? change(tree) : Record.map(tree, (one) => mapOwnLayers(one, change))
}

const nameOf = (code: { readonly name: string }): string => (code.name === "" ? "anonymous" : code.name)

/** Returns settings as a config holds them: `{ code: NAME }` in place of a function, and own layers by name alone. */
export const withoutCode = (settings: Plain): Plain =>
  Record.map(settings, (value) =>
    typeof value === "function" ? { code: nameOf(value) } : mapOwnLayers(value, ({ type, name }) => ({ type, name })),
  )

/**
 * Puts the code of `made`, the settings from code, into settings that may come from a config and then have only its name.
 * Fails for a name that `made` does not have.
 */
export const withCode = (settings: Plain, made: Plain, from: ConfigOrigin): Effect.Effect<Plain, ConfigError> =>
  Effect.gen(function* () {
    const layers = new Map<unknown, unknown>()
    const problems: Array<{ readonly key: string; readonly problem: string; readonly unknown?: "code" }> = []
    for (const [key, value] of Object.entries(made)) {
      mapOwnLayers(value, ({ name, layer }) => {
        if (layers.has(name) && layers.get(name) !== layer)
          problems.push({ key, problem: `two layers are called "${String(name)}"; give each a name of its own` })
        layers.set(name, layer)
      })
    }
    const absent = (name: unknown): string => `"${String(name)}" is made in code, by the program of the run`
    const restored = Record.map(settings, (value, key) => {
      if (isPlain(value) && typeof value.code === "string") {
        const code = made[key]
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
