/** Formats tokens and their log-probabilities for OpenAI's protocol. These are pure functions. */
import type { TokenCandidate, GeneratedToken } from "../inference/Engine.ts"
import type { ModelTokens } from "../engine/ChatModel.ts"

/** The log-probability of a token that cannot occur, because JSON has no −Infinity. Other servers send the same number. */
const least = -9999

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
    return { ...this.of(id), logprob: Math.max(logprob, least) }
  }

  /** Returns the log-probability of a token and of the likeliest tokens, in the form of a chat answer. */
  chat(token: GeneratedToken) {
    return { ...this.candidate(token), top_logprobs: token.top.map((candidate) => this.candidate(candidate)) }
  }

  /** Returns the log-probabilities of a completion, as lists. `offset` is the length of the text before the first token. */
  completion(tokens: ReadonlyArray<GeneratedToken>, offset: number) {
    const offsets: Array<number> = []
    let at = offset
    for (const { id } of tokens) {
      offsets.push(at)
      at += this.of(id).token.length
    }
    return {
      tokens: tokens.map(({ id }) => this.of(id).token),
      token_logprobs: tokens.map(({ logprob }) => Math.max(logprob, least)),
      top_logprobs: tokens.map(({ top }) =>
        Object.fromEntries(top.map((one) => [this.of(one.id).token, Math.max(one.logprob, least)])),
      ),
      text_offset: offsets,
    }
  }
}
