/**
 * Reads configs from files, with the line of each key for error messages. The commands use it. Configs are written in YAML;
 * prime-rl's `orch.toml` is read as the config of a trainer with one run.
 */
import { Effect, type FileSystem } from "effect"
import { display, isPlain, type Override } from "../../../base/config/Config.ts"
import { mostBytes, readText, shownPath } from "../../../base/files/files.ts"
import { keyPlaces, readYamlText } from "../../../base/config/yaml.ts"
import { usageError } from "../output/output.ts"
import { type CommandError } from "../../CommandError.ts"

/** Tells whether a path ends like the name of a config: a file in YAML, or in TOML. */
export const isConfig = (file: string): boolean => /\.ya?ml$/.test(file) || isToml(file)

const isToml = (file: string): boolean => file.endsWith(".toml")

/** A config as plain data, with a map from each key to its line: `agent.historyK` is at `conf.yaml:7`. */
interface LocatedConfig {
  readonly value: unknown
  readonly lines: ReadonlyMap<string, string>
  /** A line for each key that is left out. */
  readonly notes: ReadonlyArray<string>
}

/** Reads a config as plain data. */
export const readYaml = (file: string) => Effect.map(readLocatedYaml(file), ({ value }) => value)

/** Reads a config as plain data, with the lines of its keys. */
export const readLocatedYaml = Effect.fnUntraced(function* (
  file: string,
): Effect.fn.Return<LocatedConfig, CommandError, FileSystem.FileSystem> {
  if (isToml(file)) return yield* readPrimeRl(file)
  const document = yield* parseFile(file)
  return { value: document.value, lines: keyPlaces(document, file), notes: [] }
})

/** Reads prime-rl's `orch.toml` as the config of a trainer with one run. */
const readPrimeRl = Effect.fnUntraced(function* (file: string) {
  const { trainerOfOne } = yield* Effect.promise(() => import("../../../trainer/config/orchToml.ts"))
  const read = trainerOfOne(yield* textOf(file), file)
  const { value, places, notes } = yield* Effect.mapError(read, ({ message }) => usageError(message))
  return { value, lines: places, notes }
})

/** Reads the values of a YAML file as overrides, each with its line as the source. */
export const yamlOverrides = Effect.fnUntraced(function* (file: string) {
  const { value, lineOf } = yield* parseFile(file)
  if (!isPlain(value)) return yield* notKeys(file, value)
  const overrides: Array<Override> = []
  const walk = (tree: unknown, path: ReadonlyArray<string>): void => {
    // A section becomes one override per key; an object with a `_tag`, such as `checkpoint.strategy`, stays whole.
    if (isPlain(tree) && !("_tag" in tree) && Object.keys(tree).length > 0) {
      // Setting a name drops the settings of the earlier env or algorithm, so the name comes before the other settings.
      const keys = Object.keys(tree).sort((a, b) => Number(b === "name") - Number(a === "name"))
      for (const key of keys) walk(tree[key], [...path, key])
      return
    }
    overrides.push({ path: path.join("."), value: tree, source: `${file}:${lineOf(path)}` })
  }
  walk(value, [])
  return overrides
})

/** Makes the error for a config that is a list or a single value. */
export const notKeys = (file: string, value: unknown): CommandError => {
  const what = value === null ? "nothing: the file is empty" : Array.isArray(value) ? "a list" : display(value)
  return usageError(`${file}: expected keys and values ("key: value"), found ${what}`)
}

const textOf = (file: string) =>
  Effect.mapError(readText(file, mostBytes.config), ({ message }) => usageError(`${shownPath(file)}: ${message}`))

const parseFile = Effect.fnUntraced(function* (file: string) {
  return yield* Effect.mapError(readYamlText(yield* textOf(file), file), ({ message }) => usageError(message))
})
