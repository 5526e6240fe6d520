import { Effect, type FileSystem, type Path } from "effect"
import { mostBytes, readText, shownPath } from "../../config/files.ts"
import { ConfigError, type DecodeOptions, type Plain } from "../../config/Config.ts"
import { locate } from "../../config/places.ts"

/** Who said it, and the folder that files are named from. */
export interface From extends DecodeOptions {
  /** The folder of the config's file, where files are looked for before the current one; the current one unless given. */
  readonly baseDir?: string
}

/** `{file:path}` and `${file:path}`; `{{file:` is the text `{file:`. */
const reference = /\{\{file:|\$?\{file:([^{}\n]*)\}/g

/** What `injected` gives back as it is, so that a config that holds texts already can be read again. */
const escaped = (text: string): string => text.replaceAll("{file:", "{{file:")

/** A text that can only be meant as a file. */
const isFileName = (text: string): boolean => /^\S+\.(txt|md|json|jsonl|yaml|yml)$/.test(text)

export interface Injected {
  /** The prompts themselves. */
  readonly texts: Readonly<Record<string, string>>
  /** The config with the files' texts in it: it needs none of them any more. */
  readonly config: Plain
}

/**
 * Puts files where a config's prompts name them. `bare` are the keys whose whole text may be a file's name. A file that
 * isn't there is an error, never a prompt that says so.
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

  const textOf = Effect.fnUntraced(function* (key: string, said: string) {
    const name = said.trim()
    if (bare.includes(key) && isFileName(name)) return yield* read(key, name)
    let text = ""
    let end = 0
    for (const match of said.matchAll(reference)) {
      text += said.slice(end, match.index)
      end = match.index + match[0].length
      text += match[1] === undefined ? "{file:" : yield* read(key, match[1].trim())
    }
    return text + said.slice(end)
  })

  const texts: Record<string, string> = {}
  const effective: Record<string, unknown> = { ...config }
  for (const key of keys) {
    const said = config[key]
    if (typeof said !== "string") continue
    texts[key] = yield* textOf(key, said)
    effective[key] = escaped(texts[key])
  }
  return { texts, config: effective }
})
