/**
 * Decodes JSON files that other programs write, such as the files of a language model. Unknown keys are ignored,
 * because those programs add keys. An error is a `ConfigError`, whose message names the file and the key.
 *
 * @example
 * ```ts
 * const Sizes = Schema.Struct({ hidden_size: Schema.Int })
 * const json = yield* parseJson(yield* files.read("llama/config.json"), "llama/config.json")
 * yield* checkJson(Sizes, json, "llama/config.json")
 * // fails with: llama/config.json: hidden_size: expected an integer, found "64"
 * ```
 */
import { Effect, type Schema } from "effect"
import { ConfigError, decode } from "./Config.ts"
import { textOf } from "../files/files.ts"
import { jsonValue, messageOf } from "../text/text.ts"

/** Decodes a parsed JSON file by a Schema, and ignores unknown keys; `path` names the file in errors. */
export const checkJson = <S extends Schema.Codec<unknown, unknown>>(
  schema: S,
  value: unknown,
  path: string,
): Effect.Effect<S["Type"], ConfigError> => decode(schema, value, { source: path, unknownKeys: "ignore" })

/** Parses the bytes of a JSON file without a check of its content. */
export const parseJson = (bytes: Uint8Array, path: string): Effect.Effect<unknown, ConfigError> => {
  const decoded = textOf(bytes)
  if ("problem" in decoded) return Effect.fail(ConfigError.at({ source: path }, "", decoded.problem))
  return Effect.try({
    try: () => jsonValue(decoded.text),
    catch: (error) => ConfigError.at({ source: path }, "", `expected JSON: ${messageOf(error)}`),
  })
}
