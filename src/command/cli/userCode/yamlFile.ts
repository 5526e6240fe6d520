/** Reads configs from YAML files, with the line of each key for error messages. The commands use it. */
import { Effect } from "effect"
import { display, isPlain, type Override } from "../../../base/config/Config.ts"
import { mostBytes, readText, shownPath } from "../../../base/config/files.ts"
import { keyPlaces, readYamlText } from "../../../base/config/yaml.ts"
import { usageError } from "../output/output.ts"
import { type CommandError } from "../../CommandError.ts"

/** Tells whether a path ends like the name of a YAML file. */
export const isYaml = (file: string): boolean => /\.ya?ml$/.test(file)

/** Reads a YAML file as plain data. */
export const readYaml = (file: string) => Effect.map(parseFile(file), ({ value }) => value)

/** Reads a YAML file as plain data, with a map from each key to its line: `agent.historyK` is at `conf.yaml:7`. */
export const readLocatedYaml = Effect.fnUntraced(function* (file: string) {
  const document = yield* parseFile(file)
  return { value: document.value, lines: keyPlaces(document, file) }
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

const parseFile = Effect.fnUntraced(function* (file: string) {
  const text = yield* Effect.mapError(readText(file, mostBytes.config), ({ message }) =>
    usageError(`${shownPath(file)}: ${message}`),
  )
  return yield* Effect.mapError(readYamlText(text, file), ({ message }) => usageError(message))
})
