/**
 * Makes a `Tokenizer` from the contents of `tokenizer.json` and `tokenizer_config.json`, the files of Hugging Face's
 * models. `@huggingface/tokenizers` encodes. If the tokens are bytes, as in almost all models today, our own code
 * decodes, so that each token of a stream costs the same however long the text is.
 *
 * Two differences to Hugging Face's `transformers`: `decode` never removes spaces before punctuation
 * (`clean_up_tokenization_spaces`), because text and tokens must stay the same, and an id without a token adds nothing.
 *
 * @example
 * ```ts
 * const json = yield* files.read("pretrained/tokenizer.json")
 * const { tokenizer } = yield* decode({ json, path: "pretrained/tokenizer.json", config: null })
 * tokenizer.decode(tokenizer.encode("hello world")) // "hello world"
 * ```
 */
import { Tokenizer as LibraryTokenizer } from "@huggingface/tokenizers"
import { Effect, Schema } from "effect"
import { ConfigError } from "../config/Config.ts"
import { naturalInt } from "../config/fields.ts"
import { checkJson, parseJson } from "../config/jsonFile.ts"
import { isPlain } from "../config/plain.ts"
import { messageOf } from "../text/text.ts"
import { utf8 } from "../text/utf8.ts"
import { bytesOfName } from "./byteAlphabet.ts"
import { slowPartIn } from "./slowParts.ts"
import { slowPatternIn } from "./slowPatterns.ts"
import { byteStream, decodeAll, windowStream } from "./streams.ts"
import type { Tokenizer } from "./Tokenizer.ts"
import { joinUnknownFast } from "./unknownTokens.ts"

/** The Schema of a token's id. The limit keeps a damaged file from filling the memory. */
const TokenId = naturalInt.check(Schema.isLessThan(2 ** 24))

const Part = Schema.Struct({ type: Schema.String })

/** The keys of `tokenizer.json` that must be right before the library reads it. */
const TokenizerJson = Schema.Struct({
  added_tokens: Schema.Array(Schema.Struct({ id: TokenId, content: Schema.String, special: Schema.Boolean })),
  normalizer: Schema.NullOr(Part),
  pre_tokenizer: Schema.NullOr(Part),
  post_processor: Schema.NullOr(Part),
  decoder: Schema.NullOr(Schema.Struct({ type: Schema.String, decoders: Schema.optionalKey(Schema.Array(Part)) })),
  model: Schema.Union([
    Schema.Struct({
      type: Schema.Literal("BPE"),
      vocab: Schema.Record(Schema.String, TokenId),
      merges: Schema.Array(Schema.Union([Schema.String, Schema.Array(Schema.String)])),
    }),
    Schema.Struct({ type: Schema.Literal("WordPiece"), vocab: Schema.Record(Schema.String, TokenId) }),
    Schema.Struct({
      type: Schema.Literal("Unigram"),
      vocab: Schema.Array(Schema.Tuple([Schema.String, Schema.Finite])),
    }),
  ]),
})
type TokenizerJson = typeof TokenizerJson.Type

/** A special token in `tokenizer_config.json`: its name, or an object with its name and how it is matched. */
const TokenName = Schema.NullOr(Schema.Union([Schema.String, Schema.Struct({ content: Schema.String })]))

const NamedTemplate = Schema.Struct({ name: Schema.String, template: Schema.String })

export const TokenizerConfig = Schema.Struct({
  bos_token: Schema.optionalKey(TokenName),
  eos_token: Schema.optionalKey(TokenName),
  pad_token: Schema.optionalKey(TokenName),
  unk_token: Schema.optionalKey(TokenName),
  /** The chat template, or several by name: `default`, and `tool_use` for requests with tools. */
  chat_template: Schema.optionalKey(Schema.NullOr(Schema.Union([Schema.String, Schema.Array(NamedTemplate)]))),
})
export type TokenizerConfig = typeof TokenizerConfig.Type

/** Returns the name of a special token; null if the config has none. */
export const nameOf = (token: typeof TokenName.Type | undefined): string | null =>
  typeof token === "string" ? token : (token?.content ?? null)

/**
 * Declares the part of the library's tokenizer that is used here, because the library's own declarations resolve only
 * in bundlers.
 */
interface TokenizerLibrary {
  readonly model: unknown
  readonly encode: (text: string, options: { readonly add_special_tokens: boolean }) => { readonly ids: Array<number> }
  readonly decode: (
    ids: Array<number>,
    options: { readonly skip_special_tokens: boolean; readonly clean_up_tokenization_spaces: boolean },
  ) => string
}

/** The contents of a tokenizer's two files, and their paths for messages. */
interface TokenizerFiles {
  readonly json: Uint8Array
  readonly path: string
  /** The second file; null if it is missing. */
  readonly config: { readonly bytes: Uint8Array; readonly path: string } | null
}

/** A tokenizer, with other facts from its config. */
interface DecodedTokenizer {
  readonly tokenizer: Tokenizer
  readonly config: TokenizerConfig
}

/** Makes a tokenizer from the contents of its files. Fails with an error that names the file and the key. */
export const decode = Effect.fnUntraced(function* (
  files: TokenizerFiles,
): Effect.fn.Return<DecodedTokenizer, ConfigError> {
  const parsed = yield* parseJson(files.json, files.path)
  const json = yield* checkJson(TokenizerJson, parsed, files.path)
  const parsedConfig = files.config === null ? {} : yield* parseJson(files.config.bytes, files.config.path)
  const config = yield* checkJson(TokenizerConfig, parsedConfig, files.config?.path ?? files.path)
  const settings = isPlain(parsed) ? parsed : {}
  const vocab = entriesOf(json.model).map(([name]) => name)
  const added = json.added_tokens.map(({ content }) => content)
  const slow = slowPartIn(settings, { vocab, added })
  if (slow !== undefined) return yield* ConfigError.at({ source: files.path }, slow.key, slow.problem)
  yield* checkPatterns(settings, files.path)
  const names = yield* namesOf(json, files.path)
  const ids = new Map(Array.from(names, ([id, name]) => [name, id]))
  const special = yield* specialTokens(json, ids, config, files)
  const library = yield* Effect.try({
    try: (): TokenizerLibrary =>
      new LibraryTokenizer(isPlain(parsed) ? parsed : {}, isPlain(parsedConfig) ? parsedConfig : {}),
    catch: (error) => ConfigError.at({ source: files.path }, "", messageOf(error)),
  })
  joinUnknownFast(library.model)
  return { tokenizer: makeTokenizer({ json, names, ids, special, library }), config }
})

/**
 * Fails if a regular expression in a tokenizer's settings may take minutes. The library already runs some of them when
 * it loads the tokens.
 */
const checkPatterns = Effect.fnUntraced(function* (settings: Readonly<Record<string, unknown>>, path: string) {
  const withoutTokens = { ...settings, added_tokens: [], model: { type: "BPE", vocab: {}, merges: [] } }
  const parts = yield* Effect.try({
    try: (): Readonly<Record<string, unknown>> =>
      Object.fromEntries(Object.entries(new LibraryTokenizer(withoutTokens, {}))),
    catch: (error) => ConfigError.at({ source: path }, "", messageOf(error)),
  })
  for (const key of ["normalizer", "pre_tokenizer", "post_processor", "decoder"]) {
    const slow = slowPatternIn(parts[key])
    if (slow !== undefined) return yield* ConfigError.at({ source: path }, key, slow)
  }
})

const isUnigram = (model: TokenizerJson["model"]): model is Extract<TokenizerJson["model"], { type: "Unigram" }> =>
  model.type === "Unigram"

const entriesOf = (model: TokenizerJson["model"]): ReadonlyArray<readonly [name: string, id: number]> =>
  isUnigram(model) ? model.vocab.map(([name], id) => [name, id] as const) : Object.entries(model.vocab)

/** Returns the names of all tokens by id. Two tokens with one id are an error. */
const namesOf = Effect.fnUntraced(function* ({ model, added_tokens }: TokenizerJson, path: string) {
  const names = new Map<number, string>()
  for (const [name, id] of entriesOf(model)) {
    if (names.has(id)) {
      const problem = `expected one token with the id ${id}, found "${names.get(id)}" and "${name}"`
      return yield* ConfigError.at({ source: path }, "model.vocab", problem)
    }
    names.set(id, name)
  }
  for (const { id, content } of added_tokens) {
    const other = names.get(id)
    if (other !== undefined && other !== content) {
      const problem = `expected "${other}", the token of model.vocab with the id ${id}, found "${content}"`
      return yield* ConfigError.at({ source: path }, "added_tokens", problem)
    }
    names.set(id, content)
  }
  if (names.size === 0) return yield* ConfigError.at({ source: path }, "model.vocab", "expected at least one token")
  return names
})

const specialTokens = Effect.fnUntraced(function* (
  { added_tokens }: TokenizerJson,
  idsByName: ReadonlyMap<string, number>,
  config: TokenizerConfig,
  files: TokenizerFiles,
) {
  const ids = new Map(added_tokens.filter(({ special }) => special).map(({ content, id }) => [content, id]))
  const idOf = (key: "bos_token" | "eos_token" | "pad_token") => {
    const name = nameOf(config[key])
    if (name === null) return Effect.succeed(null)
    const id = idsByName.get(name)
    if (id === undefined) {
      const problem = `expected a token of ${files.path}, found "${name}"`
      return Effect.fail(ConfigError.at({ source: files.config?.path ?? files.path }, key, problem))
    }
    // A token that the config names is special, even if the vocabulary does not mark it.
    ids.set(name, id)
    return Effect.succeed(id)
  }
  return { bos: yield* idOf("bos_token"), eos: yield* idOf("eos_token"), pad: yield* idOf("pad_token"), ids }
})

interface TokenizerParts {
  readonly json: TokenizerJson
  readonly names: ReadonlyMap<number, string>
  readonly ids: ReadonlyMap<string, number>
  readonly special: Tokenizer["special"]
  readonly library: TokenizerLibrary
}

const none = new Uint8Array(0)

const makeTokenizer = ({ json, names, ids, special, library }: TokenizerParts): Tokenizer => {
  const specialIds = new Set(special.ids.values())
  const added = new Set(json.added_tokens.map(({ id }) => id))
  const decodeByLibrary = (list: ReadonlyArray<number>): string =>
    list.length === 0
      ? ""
      : library.decode([...list], { skip_special_tokens: false, clean_up_tokenization_spaces: false })
  const bytesOf = isByteLevel(json)
    ? cached((id) => {
        const name = names.get(id)
        if (name === undefined) return none
        return added.has(id) ? utf8.encode(name) : bytesOfName(name)
      })
    : cached((id) => {
        const name = names.get(id)
        if (name === undefined) return none
        const byte = /^<0x([0-9A-F]{2})>$/.exec(name)?.[1]
        if (byte !== undefined) return Uint8Array.of(Number.parseInt(byte, 16))
        // SentencePiece writes a space as U+2581. The library drops the first space of a text.
        return utf8.encode(added.has(id) ? name : name.replaceAll("\u2581", " "))
      })
  const isLeftOut = (id: number, keepSpecial: boolean): boolean =>
    !names.has(id) || (!keepSpecial && specialIds.has(id))
  const decoder: Tokenizer["decoder"] = ({ keepSpecial = false } = {}) => {
    const stream = isByteLevel(json) ? byteStream(bytesOf) : windowStream(decodeByLibrary)
    return { push: (id) => (isLeftOut(id, keepSpecial) ? "" : stream.push(id)), end: stream.end }
  }
  return {
    vocabSize: Array.from(names.keys()).reduce((most, id) => Math.max(most, id), 0) + 1,
    special,
    // Each byte or character of a token's name stands for at most one character of the text.
    longestToken: Array.from(names.values()).reduce((most, { length }) => Math.max(most, length), 1),
    encode: (text, { addSpecial = false } = {}) => library.encode(text, { add_special_tokens: addSpecial }).ids,
    decode: (list, options) => {
      if (isByteLevel(json)) return decodeAll(decoder(options), list)
      return decodeByLibrary(Array.from(list).filter((id) => !isLeftOut(id, options?.keepSpecial ?? false)))
    },
    decoder,
    bytesOf,
    idOf: (name) => ids.get(name),
  }
}

const cached = (bytesOf: (id: number) => Uint8Array): ((id: number) => Uint8Array) => {
  const bytesById = new Map<number, Uint8Array>()
  return (id) => {
    const bytes = bytesById.get(id) ?? bytesOf(id)
    bytesById.set(id, bytes)
    return bytes
  }
}

/** Says whether the names of the tokens are bytes in GPT-2's alphabet (see `byteAlphabet.ts`). */
const isByteLevel = ({ decoder }: TokenizerJson): boolean => {
  if (decoder === null) return false
  const { type, decoders = [] } = decoder
  return (
    type === "ByteLevel" ||
    (type === "Sequence" && decoders.length > 0 && decoders.every((one) => one.type === "ByteLevel"))
  )
}
