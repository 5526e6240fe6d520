/**
 * Joins the unknown tokens of a text in linear time. The library itself copies everything that it has joined for each
 * further token, and passes the tokens of a word as arguments of one call, which can have only some 100,000.
 */

/**
 * Declares the part of the library's models that is used here, because the library's own declarations resolve only in
 * bundlers.
 */
interface Model {
  readonly fuse_unk: boolean
  readonly unk_token_id: number | undefined
  readonly tokens_to_ids: ReadonlyMap<string, number>
  readonly encode: (words: Array<string>) => Array<string>
  /** Encodes a single word. Only a model of the type Unigram has this function. */
  readonly tokenize?: (word: string) => Array<string>
  _call: (words: Array<string>) => Array<string>
}

const isModel = (value: unknown): value is Model =>
  typeof value === "function" && "_call" in value && "encode" in value && "fuse_unk" in value

/** Makes the library's model join unknown tokens in this way, if its settings join them at all. */
export const joinUnknownFast = (model: unknown): void => {
  if (!isModel(model) || !model.fuse_unk) return
  const tokensOf = (words: Array<string>): Array<string> => {
    const { tokenize } = model
    return tokenize === undefined ? model.encode(words) : words.flatMap((word) => tokenize.call(model, word))
  }
  model._call = (words) => joinUnknown(tokensOf(words), model)
}

/**
 * Joins each series of unknown tokens to one token, which is unknown, too. A series that begins with the unknown token
 * itself becomes just that token.
 */
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
