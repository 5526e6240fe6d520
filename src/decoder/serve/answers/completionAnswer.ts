/** Encodes answers of `POST /v1/completions`: whole ones, and the chunks of streamed ones. These are pure functions. */
import type { Generated, GeneratedToken, PromptLogprobs, WeightsUsed } from "../../inference/Engine.ts"
import { usageOf } from "./chatAnswer.ts"
import type { ChoiceEvent } from "./choices.ts"
import { joined, type TokenTexts } from "./tokenTexts.ts"
import { ending, fingerprint } from "../weightsUsed.ts"

/** The parts of a request on which its answer depends. */
export interface CompletionQuestion {
  readonly id: string
  /** The time of the answer, in seconds since 1970. */
  readonly created: number
  readonly model: string
  readonly prompts: ReadonlyArray<{
    readonly ids: ReadonlyArray<number>
    /** The text before each answer; empty without `echo`. */
    readonly echo: string
  }>
  readonly echo: boolean
  /** The number of choices of each prompt. */
  readonly n: number
  /** The number of likeliest tokens that are listed for each token; null if tokens get no log-probabilities. */
  readonly logprobs: number | null
  /** The same for the tokens of the prompt, in vLLM's form. */
  readonly promptLogprobs: number | null
  readonly tokenIds: boolean
  /** Whether a stream ends with a chunk that has the numbers of tokens. */
  readonly usage: boolean
  readonly texts: TokenTexts
}

const promptOf = ({ prompts, n }: CompletionQuestion, index: number) => prompts[Math.floor(index / n)]

const promptTokens = ({ prompts }: CompletionQuestion): number => prompts.reduce((sum, { ids }) => sum + ids.length, 0)

/** Tokens of a choice. */
interface ChoiceTokens {
  readonly index: number
  readonly tokens: ReadonlyArray<GeneratedToken>
  /** The length of the text before them. */
  readonly offset: number
  /** The log-probabilities of the prompt, for the first tokens. */
  readonly prompt: PromptLogprobs | undefined
}

/** Returns the log-probabilities and the ids of tokens. */
const tokensBody = (question: CompletionQuestion, choice: ChoiceTokens): object => ({
  logprobs: logprobsOf(question, choice),
  ...(question.tokenIds ? { token_ids: choice.tokens.map(({ id }) => id) } : {}),
})

/** Returns the log-probabilities of tokens: with `echo`, those of the prompt come first. */
const logprobsOf = (question: CompletionQuestion, { index, tokens, offset, prompt }: ChoiceTokens): object | null => {
  const { logprobs, echo: hasEcho, texts } = question
  if (logprobs === null) return null
  const { ids, echo } = promptOf(question, index)
  const after = texts.completion(tokens, offset)
  if (!hasEcho || prompt === undefined) return after
  return joined(texts.echo(ids, prompt, { length: echo.length, topCount: logprobs }), after)
}

const promptIds = (question: CompletionQuestion, index: number) =>
  question.tokenIds ? { prompt_token_ids: promptOf(question, index).ids } : {}

/** Encodes a whole answer. */
export const completionAnswer = (question: CompletionQuestion, generated: ReadonlyArray<Generated>) => ({
  id: question.id,
  object: "text_completion",
  created: question.created,
  model: question.model,
  system_fingerprint: fingerprint(generated.map(({ weights }) => weights)),
  choices: generated.map((one, index) => {
    const { echo } = promptOf(question, index)
    return {
      index,
      text: echo + one.text,
      ...tokensBody(question, { index, tokens: one.tokens, offset: echo.length, prompt: one.promptLogprobs }),
      ...(question.promptLogprobs === null || one.promptLogprobs === undefined
        ? {}
        : { prompt_logprobs: question.texts.prompt(one.promptLogprobs, question.promptLogprobs) }),
      ...promptIds(question, index),
      ...ending(one),
    }
  }),
  usage: usageOf(promptTokens(question), generated),
})

/** Encodes a stream of events as chunks. Each chunk is the data of one server-sent event. */
export class CompletionChunks {
  private readonly question: CompletionQuestion
  /** The length of the text so far, for each choice that has begun. */
  private readonly offsets = new Map<number, number>()
  private readonly finished: Array<Generated> = []
  private readonly weights = new Map<number, WeightsUsed>()

  constructor(question: CompletionQuestion) {
    this.question = question
  }

  /** Returns the chunks of an event. */
  push({ index, event }: ChoiceEvent): ReadonlyArray<object> {
    this.weights.set(index, event._tag === "Token" ? event.weights : event.generated.weights)
    const { echo } = promptOf(this.question, index)
    const offset = this.offsets.get(index)
    const first = offset === undefined ? promptIds(this.question, index) : {}
    const before = offset === undefined ? echo : ""
    const at = offset ?? echo.length
    if (event._tag === "Token") {
      this.offsets.set(index, at + this.question.texts.of(event.token.id).token.length)
      const text = before + event.text
      if (text === "" && this.question.logprobs === null && !this.question.tokenIds) return []
      const choice = { index, tokens: [event.token], offset: at, prompt: event.promptLogprobs }
      return [this.chunk(index, text, { ...tokensBody(this.question, choice), ...first })]
    }
    const { generated } = event
    this.finished.push(generated)
    // A request for no tokens has only this event.
    const choice = { index, tokens: [], offset: at, prompt: generated.promptLogprobs }
    const logprobs = offset === undefined && this.question.echo ? logprobsOf(this.question, choice) : null
    return [this.chunk(index, before + event.text, { logprobs, ...first, ...ending(generated) })]
  }

  /** Returns the chunks after the last event. */
  end(): ReadonlyArray<object> {
    if (!this.question.usage) return []
    return [{ ...this.frame(), choices: [], usage: usageOf(promptTokens(this.question), this.finished) }]
  }

  private frame() {
    const { id, created, model } = this.question
    return { id, object: "text_completion", created, model, system_fingerprint: fingerprint(this.weights.values()) }
  }

  private chunk(index: number, text: string, choice: object): object {
    return {
      ...this.frame(),
      choices: [{ index, text, finish_reason: null, ...choice }],
      ...(this.question.usage ? { usage: null } : {}),
    }
  }
}
