/**
 * Makes tokenizers for models that are trained from scratch: one whose tokens are bytes, which can encode every text,
 * and one whose tokens are the characters of an alphabet, which gives short sequences and a small embedding. The result
 * is a `tokenizer.json` file that Hugging Face's libraries can load, so that a saved model needs nothing else.
 *
 * Both have the special tokens of ChatML: `<|im_start|>` begins a message, and `<|im_end|>` ends it and is the token
 * that ends a generation. `<|pad|>` has the id 0.
 *
 * @example
 * ```ts
 * const { tokenizer, files } = yield* characters("abcdefghijklmnopqrstuvwxyz ")
 * tokenizer.decode(tokenizer.encode("hello")) // "hello"
 * Object.keys(files) // ["tokenizer.json", "tokenizer_config.json"], to be saved with the model
 * ```
 */
import { Effect } from "effect"
import type { FormatError } from "../formats/FormatError.ts"
import { ConfigError } from "../config/Config.ts"
import { prettyJson } from "../text/text.ts"
import { utf8 } from "../text/utf8.ts"
import { byteCharacters } from "./byteAlphabet.ts"
import { chatMl } from "./ChatTemplate.ts"
import { modelFiles } from "../formats/modelFiles.ts"
import { fromFiles, type TokenizerFolder } from "./TokenizerFolder.ts"

export interface ScratchOptions {
  /** The source of the chat template, in Jinja. Default: ChatML. */
  readonly template?: string
  /** The names of further special tokens, which get the ids after the usual ones. */
  readonly specialTokens?: ReadonlyArray<string>
}

/** The names of the special tokens, whose ids are 0, 1, 2. */
export const specialNames = ["<|pad|>", "<|im_start|>", "<|im_end|>"] as const
const [padName, , endName] = specialNames
/** The name of the token that replaces characters outside of the alphabet. */
export const unknownName = "<|unknown|>"

/** Makes a tokenizer whose tokens are the 256 bytes, after the special tokens. */
export const byteLevel = (options: ScratchOptions = {}): Effect.Effect<TokenizerFolder, ConfigError | FormatError> => {
  const byteParts = { type: "ByteLevel", add_prefix_space: false, trim_offsets: true, use_regex: false }
  return build({ tokens: byteCharacters, unknown: null, preTokenizer: byteParts, decoder: byteParts }, options)
}

/**
 * Makes a tokenizer whose tokens are the characters of `alphabet`, after the special tokens. Another character in a
 * text becomes the special token `<|unknown|>`, which decodes to nothing. Fails if a character occurs twice.
 */
export const characters = (
  alphabet: string,
  options: ScratchOptions = {},
): Effect.Effect<TokenizerFolder, ConfigError | FormatError> => {
  const tokens = Array.from(alphabet)
  const twice = tokens.find((character, index) => tokens.indexOf(character) !== index)
  if (tokens.length === 0 || twice !== undefined) {
    const found = twice === undefined ? "none" : `${JSON.stringify(twice)} twice`
    return Effect.fail(ConfigError.at({ source: "characters" }, "", `expected different characters, found ${found}`))
  }
  return build({ tokens, unknown: unknownName, preTokenizer: null, decoder: { type: "Fuse" } }, options)
}

const build = (
  {
    tokens,
    unknown,
    preTokenizer,
    decoder,
  }: {
    readonly tokens: ReadonlyArray<string>
    readonly unknown: string | null
    readonly preTokenizer: object | null
    readonly decoder: object
  },
  { template, specialTokens = [] }: ScratchOptions,
) => {
  const special = [...specialNames, ...(unknown === null ? [] : [unknown]), ...specialTokens]
  const flags = { single_word: false, lstrip: false, rstrip: false, normalized: false, special: true }
  const tokenizer = {
    version: "1.0",
    truncation: null,
    padding: null,
    added_tokens: special.map((content, id) => ({ id, content, ...flags })),
    normalizer: null,
    pre_tokenizer: preTokenizer,
    post_processor: null,
    decoder,
    model: {
      type: "BPE",
      dropout: null,
      unk_token: unknown,
      continuing_subword_prefix: null,
      end_of_word_suffix: null,
      fuse_unk: false,
      byte_fallback: false,
      ignore_merges: false,
      vocab: Object.fromEntries([...special, ...tokens].map((name, id) => [name, id])),
      merges: [],
    },
  }
  const config = {
    tokenizer_class: "PreTrainedTokenizerFast",
    eos_token: endName,
    pad_token: padName,
    ...(unknown === null ? {} : { unk_token: unknown }),
    clean_up_tokenization_spaces: false,
    model_max_length: 1e30,
    chat_template: template ?? chatMl,
  }
  return fromFiles({
    [modelFiles.tokenizer]: utf8.encode(prettyJson(tokenizer)),
    [modelFiles.tokenizerConfig]: utf8.encode(prettyJson(config)),
  })
}
