/**
 * Joins the unknown tokens of a text in time that grows with its length. The library copies all that it has joined for each
 * further token, and passes the tokens of a word as arguments of one call, of which there can only be some 100,000.
 */

/** The part of the library's models that is used here: its own declarations resolve in bundlers only. */
interface Model {
  readonly fuse_unk: boolean
  readonly unk_token_id: number | undefined
  readonly tokens_to_ids: ReadonlyMap<string, number>
  readonly encode: (words: Array<string>) => Array<string>
  /** A model of the type Unigram has it, which encodes a single word. */
  readonly tokenize?: (word: string) => Array<string>
  _call: (words: Array<string>) => Array<string>
}

const isModel = (value: unknown): value is Model =>
  typeof value === "function" && "_call" in value && "encode" in value && "fuse_unk" in value

/** Gives the model of a tokenizer of the library this way to join unknown tokens, if it joins them at all. */
export const joinUnknownFast = (model: unknown): void => {
  if (!isModel(model) || !model.fuse_unk) return
  const tokensOf = (words: Array<string>): Array<string> => {
    const { tokenize } = model
    return tokenize === undefined ? model.encode(words) : words.flatMap((word) => tokenize.call(model, word))
  }
  model._call = (words) => joinUnknown(tokensOf(words), model)
}

/** Joins each series of unknown tokens to one token, which is unknown, too. The unknown token itself takes no other in. */
const joinUnknown = (tokens: ReadonlyArray<string>, { tokens_to_ids: ids, unk_token_id: unknown }: Model) => {
  const joined: Array<string> = []
  let from = 0
  while (from < tokens.length) {
    let to = from
    while (to < tokens.length && (ids.get(tokens[to]) ?? unknown) === unknown) to++
    const isOne = to - from <= 1 || ids.get(tokens[from]) === unknown
    joined.push(isOne ? tokens[from] : tokens.slice(from, to).join(""))
    from = Math.max(to, from + 1)
  }
  return joined
}
