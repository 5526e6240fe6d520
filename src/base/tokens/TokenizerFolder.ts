/**
 * Loads the tokenizer and the chat template of a model's folder: `tokenizer.json`, `tokenizer_config.json` and
 * `chat_template.jinja`; only the first is required. A model without a template gets ChatML.
 *
 * @example
 * ```ts
 * const { tokenizer, template } = yield* load(files, "pretrained")
 * const messages = [{ role: "user", content: "Hello!" }]
 * const ids = tokenizer.encode(yield* template.render({ messages, addGenerationPrompt: true }))
 * ```
 */
import { Effect } from "effect"
import type { FormatError } from "../formats/FormatError.ts"
import { ConfigError } from "../config/Config.ts"
import { textOf } from "../files/files.ts"
import { inFolder, modelFiles } from "../formats/modelFiles.ts"
import type { Readable } from "../formats/Weights.ts"
import { chatMl, type ChatTemplate, make } from "./ChatTemplate.ts"
import { decode, nameOf, type TokenizerConfig } from "./HuggingFaceTokenizer.ts"
import type { Tokenizer } from "./Tokenizer.ts"

/** The names of the files that belong to a tokenizer. */
const ownFiles = [
  modelFiles.tokenizer,
  modelFiles.tokenizerConfig,
  modelFiles.chatTemplate,
  modelFiles.specialTokens,
] as const

export interface TokenizerFolder {
  readonly tokenizer: Tokenizer
  readonly template: ChatTemplate
  /** The files that were read, by name, so that they can be saved with a model. */
  readonly files: Readonly<Record<string, Uint8Array>>
}

/** A folder from which the files of a model are read: a `FileTree`, or files in memory (`Weights.inRecord`). */
export type ReadableFolder = Required<Readable>

/** Loads a tokenizer and its template from a folder. An error names the file and the key. */
export const load = Effect.fnUntraced(function* (
  files: ReadableFolder,
  folder: string,
): Effect.fn.Return<TokenizerFolder, ConfigError | FormatError> {
  const at = (name: string): string => inFolder(folder, name)
  const failed = (path: string) => (error: { readonly message: string }) =>
    ConfigError.at({ source: path }, "", error.message)
  const present = yield* Effect.mapError(files.list(folder === "" ? "." : folder), failed(folder))
  const loaded: Record<string, Uint8Array> = {}
  for (const name of ownFiles) {
    if (!present.includes(name)) continue
    loaded[name] = yield* Effect.mapError(files.read(at(name)), failed(at(name)))
  }
  const json = loaded[modelFiles.tokenizer]
  if (json === undefined)
    return yield* ConfigError.at({ source: at(modelFiles.tokenizer) }, "", "there is no such file")
  return yield* fromFiles(loaded, at)
})

/**
 * Makes a tokenizer and its template from the contents of their files, by name. `at` returns a file's path for
 * messages.
 */
export const fromFiles = Effect.fnUntraced(function* (
  files: Readonly<Record<string, Uint8Array>>,
  at: (name: string) => string = (name) => name,
): Effect.fn.Return<TokenizerFolder, ConfigError | FormatError> {
  const config = Object.hasOwn(files, modelFiles.tokenizerConfig)
    ? { bytes: files[modelFiles.tokenizerConfig], path: at(modelFiles.tokenizerConfig) }
    : null
  const decoded = yield* decode({ json: files[modelFiles.tokenizer], path: at(modelFiles.tokenizer), config })
  const tokens = Object.fromEntries(
    (["bos_token", "eos_token", "pad_token", "unk_token"] as const).flatMap((key) => {
      const name = nameOf(decoded.config[key])
      return name === null ? [] : [[key, name]]
    }),
  )
  const { path, sources } = yield* templatesIn(files, decoded.config, at)
  return { tokenizer: decoded.tokenizer, template: yield* make(sources, { path, tokens }), files }
})

/** Returns the sources of the template: from its own file, else from the tokenizer's config, else ChatML. */
const templatesIn = Effect.fnUntraced(function* (
  files: Readonly<Record<string, Uint8Array>>,
  { chat_template }: TokenizerConfig,
  at: (name: string) => string,
) {
  if (Object.hasOwn(files, modelFiles.chatTemplate)) {
    const path = at(modelFiles.chatTemplate)
    const text = textOf(files[modelFiles.chatTemplate])
    if ("problem" in text) return yield* ConfigError.at({ source: path }, "", text.problem)
    return { path, sources: { default: text.text } }
  }
  if (chat_template === undefined || chat_template === null) return { path: "ChatML", sources: { default: chatMl } }
  const sources: Readonly<Record<string, string>> =
    typeof chat_template === "string"
      ? { default: chat_template }
      : Object.fromEntries(chat_template.map(({ name, template }) => [name, template]))
  return { path: at(modelFiles.tokenizerConfig), sources }
})
