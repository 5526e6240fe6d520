/**
 * Finds settings in somebody else's `tokenizer.json` that would take much time or memory for a short text: steps that
 * never end or make a text much longer, and vocabularies in which very many tokens can begin at the same place of a
 * text. `slowPatterns.ts` does the same for regular expressions. The limits are far above what published tokenizers
 * have.
 */
import { isPlain, type Plain } from "../config/plain.ts"

/**
 * The largest number of steps of each kind, and (`mostGrowth`) how many times longer all steps together may make a
 * text.
 */
const mostSteps = 64
const mostGrowth = 128
/** The largest number of characters of a token, and (`mostOfAdded`) of all added tokens together. */
const longestToken = 4096
const mostOfAdded = 2 ** 22
const mostOfPattern = 4096
/** The longest word for WordPiece, whose time grows with the cube of a word's length. Published tokenizers have 100. */
const longestWord = 256
const longestPrefix = 64
/** The largest number of tokens of which each is the beginning of the next. SentencePiece makes 16 by default. */
const mostNested = 64

/** Returns all steps of a kind, including those inside of sequences. */
const stepsIn = (value: unknown): ReadonlyArray<Plain> => {
  if (Array.isArray(value)) return value.flatMap(stepsIn)
  if (!isPlain(value)) return []
  const inside = Object.values(value).flatMap(stepsIn)
  return typeof value.type === "string" ? [value, ...inside] : inside
}

const lengthOf = (value: unknown): number => (typeof value === "string" ? value.length : 1)

/** Returns how many times longer a step can make a text. */
const growthOf = ({ type, content, pattern, prepend, str_rep, suffix, single }: Plain): number => {
  if (type === "Replace") {
    const text = isPlain(pattern) ? pattern.String : undefined
    const isKnown = typeof text === "string" && text !== ""
    // An expression can match between all characters as well.
    return isKnown ? Math.max(1, lengthOf(content) / text.length) : 1 + lengthOf(content)
  }
  if (type === "Prepend") return 1 + lengthOf(prepend)
  if (type === "Metaspace") return 1 + lengthOf(str_rep)
  if (type === "TemplateProcessing") return Array.isArray(single) ? Math.max(1, single.length) : 1
  if (type === "BPEDecoder") return suffix === "" || suffix === undefined ? 2 : 1
  return type === "ByteLevel" || type === "BertNormalizer" ? 3 : 1
}

const problemOfSteps = (value: unknown): string | undefined => {
  const steps = stepsIn(value)
  if (steps.length > mostSteps) return `expected at most ${mostSteps} steps, found ${steps.length}`
  const fixed = steps.find(({ type, length }) => type === "FixedLength" && !isPositiveInt(length))
  if (fixed !== undefined) return `FixedLength: length: expected a positive integer, found ${String(fixed.length)}`
  return growthBy(value) ?? longPatternIn(value)
}

const growthBy = (value: unknown): string | undefined =>
  stepsIn(value).reduce((product, step) => product * growthOf(step), 1) > mostGrowth
    ? `its steps can make a text more than ${mostGrowth} times longer`
    : undefined

/**
 * Finds an expression that is too long: the time in which the library reads one grows with the square of its length.
 */
const longPatternIn = (value: unknown): string | undefined => {
  if (Array.isArray(value)) return value.map(longPatternIn).find((problem) => problem !== undefined)
  if (!isPlain(value)) return undefined
  const { Regex: pattern } = value
  return typeof pattern === "string" && pattern.length > mostOfPattern
    ? `expected regular expressions of at most ${mostOfPattern} characters, found ${pattern.length}`
    : longPatternIn(Object.values(value))
}

const isPositiveInt = (value: unknown): boolean => Number.isSafeInteger(value) && Number(value) > 0

const problemOfWords = ({ max_input_chars_per_word: word, continuing_subword_prefix: prefix }: Plain) => {
  if (word !== undefined && word !== null && !(typeof word === "number" && word <= longestWord)) {
    return { key: "model.max_input_chars_per_word", problem: `expected at most ${longestWord}, found ${String(word)}` }
  }
  if (lengthOf(prefix) <= longestPrefix) return undefined
  return { key: "model.continuing_subword_prefix", problem: `expected at most ${longestPrefix} characters` }
}

/** Returns the largest number of names of which each is the beginning of the next. */
const nested = (names: ReadonlyArray<string>): number => {
  const open: Array<string> = []
  let most = 0
  for (const name of names.toSorted()) {
    while (open.length > 0 && !name.startsWith(open[open.length - 1])) open.pop()
    if (open[open.length - 1] !== name) open.push(name)
    most = Math.max(most, open.length)
  }
  return most
}

/** Describes the first setting of a tokenizer that is refused, with its key; undefined if there is none. */
export const slowPartIn = (
  settings: Plain,
  { vocab, added }: { readonly vocab: ReadonlyArray<string>; readonly added: ReadonlyArray<string> },
): { readonly key: string; readonly problem: string } | undefined => {
  for (const key of ["normalizer", "pre_tokenizer", "post_processor", "decoder"]) {
    const problem = problemOfSteps(settings[key])
    if (problem !== undefined) return { key, problem }
  }
  const growth = growthBy([settings.normalizer, settings.pre_tokenizer])
  if (growth !== undefined) return { key: "pre_tokenizer", problem: `with the normalizer, ${growth}` }
  const long = [...vocab, ...added].find(({ length }) => length > longestToken)
  if (long !== undefined) {
    return {
      key: "model.vocab",
      problem: `expected tokens of at most ${longestToken} characters, found ${long.length}`,
    }
  }
  if (added.reduce((total, { length }) => total + length, 0) > mostOfAdded) {
    return { key: "added_tokens", problem: `expected at most ${mostOfAdded} characters in all, found more` }
  }
  const model = isPlain(settings.model) ? settings.model : {}
  if (model.type === "WordPiece") return problemOfWords(model)
  return model.type === "Unigram" && nested(vocab) > mostNested
    ? { key: "model.vocab", problem: `more than ${mostNested} of its tokens each begin with the one before` }
    : undefined
}
