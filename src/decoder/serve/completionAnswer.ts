/** Encodes answers of `POST /v1/completions`: whole ones, and the chunks of streamed ones. These are pure functions. */
import type { Generated, GeneratedToken, WeightsUsed } from "../inference/Engine.ts"
import { usageOf } from "./chatAnswer.ts"
import type { ChoiceEvent } from "./choices.ts"
import type { TokenTexts } from "./tokenTexts.ts"
import { fingerprint, weightsBody } from "./weightsUsed.ts"

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
  /** The number of choices of each prompt. */
  readonly n: number
  readonly logprobs: boolean
  readonly tokenIds: boolean
  /** Whether a stream ends with a chunk that has the numbers of tokens. */
  readonly usage: boolean
  readonly texts: TokenTexts
}

const promptOf = ({ prompts, n }: CompletionQuestion, index: number) => prompts[Math.floor(index / n)]

const promptTokens = ({ prompts }: CompletionQuestion): number => prompts.reduce((sum, { ids }) => sum + ids.length, 0)

const withIds = (question: CompletionQuestion, tokens: ReadonlyArray<GeneratedToken>, offset: number) => ({
  logprobs: question.logprobs ? question.texts.completion(tokens, offset) : null,
  ...(question.tokenIds ? { token_ids: tokens.map(({ id }) => id) } : {}),
})

const ending = ({ finishReason, stopReason, weights }: Generated) => ({
  finish_reason: finishReason,
  stop_reason: stopReason,
  weights: weightsBody(weights),
})

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
      ...withIds(question, one.tokens, echo.length),
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
      if (text === "" && !this.question.logprobs && !this.question.tokenIds) return []
      return [this.chunk(index, text, { ...withIds(this.question, [event.token], at), ...first })]
    }
    this.finished.push(event.generated)
    return [this.chunk(index, before + event.text, { logprobs: null, ...first, ...ending(event.generated) })]
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
