/**
 * Declares the interface of all tokenizers, which convert text to token ids and back. `HuggingFaceTokenizer.ts` makes
 * one from the files of a model, `scratch.ts` writes such files for a model that is trained from scratch, and
 * `words.ts` has the tokenizers of the small models that run in this process.
 *
 * @example
 * ```ts
 * const ids = WordTokenizers.bytes.encode("héllo")
 * WordTokenizers.bytes.decode(ids) // "héllo"
 * const stream = WordTokenizers.bytes.decoder()
 * const parts = ids.map((id) => stream.push(id)) // "é" comes with its second byte; the first one adds ""
 * const rest = stream.end()
 * ```
 */
import { ConfigError } from "../config/Config.ts"

export interface EncodeOptions {
  /**
   * Adds the special tokens that the tokenizer puts around a text, such as the token that begins a text. Set it for a
   * plain prompt; leave it out for a rendered chat template, which already has these tokens. Default: false.
   */
  readonly addSpecial?: boolean | undefined
}

interface TokenDecodeOptions {
  /** Keeps the special tokens, as their names. By default, they add nothing to the text. */
  readonly keepSpecial?: boolean | undefined
}

/** Special tokens: tokens that mark a place in a text and are no part of what people read. */
export interface SpecialTokens {
  /** The ids of all special tokens by their names, e.g. `<|im_end|>`. */
  readonly ids: ReadonlyMap<string, number>
  /** The token that begins a text; null if the tokenizer has none. */
  readonly bos: number | null
  /** The token that ends a text or a message; null if the tokenizer has none. A model may have more of them. */
  readonly eos: number | null
  /** The token that fills up a row; null if the tokenizer has none. */
  readonly pad: number | null
}

/**
 * Decodes tokens as they arrive. The texts of all calls, joined, are what `decode` returns for all ids. A text never
 * ends within a character: the bytes of an incomplete character wait for the next token.
 */
export interface StreamDecoder {
  /** Adds a token, and returns the text that is complete now; it may be empty. */
  readonly push: (id: number) => string
  /** Returns the rest. Bytes that are no character become `�`. */
  readonly end: () => string
}

export interface Tokenizer {
  /** The number of rows that an embedding needs: the largest id plus 1. Some ids below it may have no token. */
  readonly vocabSize: number
  readonly special: SpecialTokens
  /** The largest number of characters (UTF-16 units) that one token can stand for. */
  readonly longestToken: number
  /** Encodes a text. A special token's name in the text becomes that token, if the tokenizer can be loaded from files. */
  readonly encode: (text: string, options?: EncodeOptions) => ReadonlyArray<number>
  /**
   * Inverts `encode`, except for changes that the tokenizer makes when it normalises a text. An id without a token adds
   * nothing.
   */
  readonly decode: (ids: Iterable<number>, options?: TokenDecodeOptions) => string
  /** Begins to decode tokens one by one. */
  readonly decoder: (options?: TokenDecodeOptions) => StreamDecoder
  /** Returns the bytes of one token, which may be a part of a character; none for an id without a token. */
  readonly bytesOf: (id: number) => Uint8Array
  /** Returns the id of a token by its name in the vocabulary; undefined if there is none. */
  readonly idOf: (name: string) => number | undefined
}

/** The facts about a model that a tokenizer must fit. */
interface FitOptions {
  /** The number of rows of the model's embedding. */
  readonly vocabSize: number
  /** The ids that end a generation, which must have a token. */
  readonly eosIds?: ReadonlyArray<number> | undefined
  /** The file of the tokenizer, for messages. */
  readonly path: string
  /** The file of the model's config, for messages. */
  readonly configPath: string
  /** The file that names the ids that end a generation, for messages. Default: `configPath`. */
  readonly eosPath?: string | undefined
}

/** Returns why a model cannot use a tokenizer, as a `ConfigError`; undefined if it can. */
export const misfit = (
  tokenizer: Tokenizer,
  { vocabSize, eosIds = [], path, configPath, eosPath = configPath }: FitOptions,
): ConfigError | undefined => {
  if (tokenizer.vocabSize > vocabSize) {
    const problem = `expected token ids below ${vocabSize}, the vocab_size of ${configPath}, found the id ${tokenizer.vocabSize - 1}`
    return ConfigError.at({ source: path }, "", problem)
  }
  const wrong = eosIds.find((id) => id >= vocabSize)
  if (wrong === undefined) return undefined
  return ConfigError.at({ source: eosPath }, "eos_token_id", `expected an id below ${vocabSize}, found ${wrong}`)
}
