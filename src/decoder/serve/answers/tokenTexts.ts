/** Formats tokens and their log-probabilities for OpenAI's protocol. These are pure functions. */
import type { TokenCandidate, GeneratedToken, PromptLogprobs } from "../../inference/Engine.ts"
import type { ModelTokens } from "../../engine/ChatModel.ts"

/** The log-probability of a token that cannot occur, because JSON has no −Infinity. Other servers send the same number. */
export const leastLogprob = -9999

/** The log-probabilities of a completion's tokens, as lists. */
interface CompletionLogprobs {
  readonly tokens: ReadonlyArray<string>
  readonly token_logprobs: ReadonlyArray<number | null>
  readonly top_logprobs: ReadonlyArray<Readonly<Record<string, number>> | null>
  readonly text_offset: ReadonlyArray<number>
}

/** Joins the log-probabilities of a prompt and its completion. */
export const joined = (before: CompletionLogprobs, after: CompletionLogprobs): CompletionLogprobs => ({
  tokens: [...before.tokens, ...after.tokens],
  token_logprobs: [...before.token_logprobs, ...after.token_logprobs],
  top_logprobs: [...before.top_logprobs, ...after.top_logprobs],
  text_offset: [...before.text_offset, ...after.text_offset],
})

/** Makes the texts of tokens, and caches them, because an answer has few different tokens. */
export class TokenTexts {
  private readonly known = new Map<number, { readonly token: string; readonly bytes: ReadonlyArray<number> }>()
  private readonly tokens: ModelTokens

  constructor(tokens: ModelTokens) {
    this.tokens = tokens
  }

  /** Returns a token's bytes and its text. In the text, bytes that are not a character become `�`. */
  of(id: number): { readonly token: string; readonly bytes: ReadonlyArray<number> } {
    const known = this.known.get(id)
    if (known !== undefined) return known
    const bytes = this.tokens.bytesOf(id)
    const text = { token: new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes), bytes: [...bytes] }
    this.known.set(id, text)
    return text
  }

  private candidate({ id, logprob }: TokenCandidate) {
    return { ...this.of(id), logprob: Math.max(logprob, leastLogprob) }
  }

  /** Returns the log-probability of a token and of the likeliest tokens, in the form of a chat answer. */
  chat(token: GeneratedToken) {
    return { ...this.candidate(token), top_logprobs: token.top.map((candidate) => this.candidate(candidate)) }
  }

  /** Returns the log-probabilities of a completion, as lists. `offset` is the length of the text before the first token. */
  completion(tokens: ReadonlyArray<GeneratedToken>, offset: number): CompletionLogprobs {
    const offsets: Array<number> = []
    let at = offset
    for (const { id } of tokens) {
      offsets.push(at)
      at += this.of(id).token.length
    }
    return {
      tokens: tokens.map(({ id }) => this.of(id).token),
      token_logprobs: tokens.map(({ logprob }) => Math.max(logprob, leastLogprob)),
      top_logprobs: tokens.map(({ top }) => this.likeliest(top)),
      text_offset: offsets,
    }
  }

  /**
   * Returns the log-probabilities of a prompt that a completion repeats, as lists. The first token has none. `length` is the
   * length of the prompt's text, and `topCount` the number of likeliest tokens to list.
   */
  echo(
    ids: ReadonlyArray<number>,
    prompt: PromptLogprobs,
    { length, topCount }: { readonly length: number; readonly topCount: number },
  ): CompletionLogprobs {
    const { tokens, text_offset: offsets } = this.completion(
      ids.map((id) => ({ id, logprob: 0, top: [] })),
      0,
    )
    return {
      tokens,
      token_logprobs: prompt.map((token) => (token === null ? null : Math.max(token.logprob, leastLogprob))),
      top_logprobs: prompt.map((token) => (token === null ? null : this.likeliest(token.top.slice(0, topCount)))),
      // Special tokens have a name, but the text of the prompt does not contain it.
      text_offset: offsets.map((offset) => Math.min(offset, length)),
    }
  }

  private likeliest(top: ReadonlyArray<TokenCandidate>): Readonly<Record<string, number>> {
    return Object.fromEntries(top.map((one) => [this.of(one.id).token, Math.max(one.logprob, leastLogprob)]))
  }

  /** Returns the log-probabilities of a prompt in vLLM's form: for each token, an object whose keys are token ids. */
  prompt(prompt: PromptLogprobs, topCount: number) {
    return prompt.map((token) => {
      if (token === null) return null
      const entry = ({ id, logprob }: TokenCandidate, rank: number) =>
        [id, { logprob: Math.max(logprob, leastLogprob), rank, decoded_token: this.of(id).token }] as const
      const likeliest = token.top.slice(0, topCount).map((one, index) => entry(one, index + 1))
      return Object.fromEntries([entry(token, token.rank), ...likeliest])
    })
  }
}
