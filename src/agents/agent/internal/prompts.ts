/** Reads the prompts of a config, and inserts the text of the files that they name. Agents and scorers use it. */
import { Effect, type FileSystem, type Path } from "effect"
import { mostBytes, readText, shownPath } from "../../../base/files/files.ts"
import { ConfigError, type DecodeOptions, type Plain } from "../../../base/config/Config.ts"
import { locate } from "../../../base/config/places.ts"

/** The origin of a config: the name of its source for error messages, and the folder of the files that it names. */
export interface From extends DecodeOptions {
  /** The folder of the config's file, in which files are looked up before the current folder. */
  readonly baseDir?: string
}

/** Matches `{file:path}`, `${file:path}`, and `{{file:`, which is the escaped form of the text `{file:`. */
const reference = /\{\{file:|\$?\{file:([^{}\n]*)\}/g

/** Escapes a text, so that `inject` returns it unchanged when the config is read again. */
const escaped = (text: string): string => text.replaceAll("{file:", "{{file:")

/** Tells whether a text is the name of a file. */
const isFileName = (text: string): boolean => /^\S+\.(txt|md|json|jsonl|yaml|yml)$/.test(text)

interface Injected {
  /** The prompts by their keys, with the texts of the files inserted. */
  readonly texts: Readonly<Record<string, string>>
  /** The config with the texts of the files inserted, so that it no longer depends on these files. */
  readonly config: Plain
}

/**
 * Inserts the texts of files into the settings `keys` of a config, in which `{file:path}` names a file. The settings `bare`
 * (a part of `keys`) may also be only the name of a file. Fails if a file is missing.
 */
export const inject = Effect.fnUntraced(function* (
  config: Plain,
  keys: ReadonlyArray<string>,
  bare: ReadonlyArray<string>,
  from: From,
): Effect.fn.Return<Injected, ConfigError, FileSystem.FileSystem | Path.Path> {
  const read = Effect.fnUntraced(function* (key: string, file: string) {
    const { path, isThere, tried } = yield* locate(file, from.baseDir ?? ".")
    return yield* Effect.mapError(readText(path, mostBytes.prompt), (error) => {
      const places = (isThere ? [path] : tried).map(shownPath).join(" or ")
      return ConfigError.at(from, key, `expected a file to read at ${places}: ${error.message}`)
    })
  })

  const textOf = Effect.fnUntraced(function* (key: string, template: string) {
    const name = template.trim()
    if (bare.includes(key) && isFileName(name)) return yield* read(key, name)
    let text = ""
    let end = 0
    for (const match of template.matchAll(reference)) {
      text += template.slice(end, match.index)
      end = match.index + match[0].length
      text += match[1] === undefined ? "{file:" : yield* read(key, match[1].trim())
    }
    return text + template.slice(end)
  })

  const texts: Record<string, string> = {}
  const effective: Record<string, unknown> = { ...config }
  for (const key of keys) {
    const template = config[key]
    if (typeof template !== "string") continue
    texts[key] = yield* textOf(key, template)
    effective[key] = escaped(texts[key])
  }
  return { texts, config: effective }
})
