/** Encodes answers of `POST /v1/chat/completions`: whole ones, and the chunks of streamed ones. These are pure functions. */
import type { Generated, GeneratedToken, WeightsUsed } from "../../inference/Engine.ts"
import { type AnswerEvent, collect, type ToolReader } from "../../../agents/lm/toolFormats/ToolFormat.ts"
import type { ChoiceEvent } from "./choices.ts"
import { expertsBody } from "../expertsBody.ts"
import type { TokenTexts } from "./tokenTexts.ts"
import { fingerprint, weightsBody } from "../weightsUsed.ts"

/** The parts of a request on which its answer depends. */
export interface ChatQuestion {
  readonly id: string
  /** The time of the answer, in seconds since 1970. */
  readonly created: number
  readonly model: string
  readonly promptIds: ReadonlyArray<number>
  /** The number of messages in the conversation. It makes the ids of calls different in each turn. */
  readonly turns: number
  readonly reader: () => ToolReader
  /** Whether only the first call of an answer is returned. */
  readonly onlyOneCall: boolean
  readonly logprobs: boolean
  /** The number of likeliest tokens for each token of the prompt; null if the prompt gets no log-probabilities. */
  readonly promptLogprobs: number | null
  readonly tokenIds: boolean
  /** Whether a stream ends with a chunk that has the numbers of tokens. */
  readonly usage: boolean
  readonly texts: TokenTexts
}

/**
 * Returns the id of a call. It depends only on the conversation and the answer, so that a seed determines the whole answer.
 */
const callId = (turns: number, choice: number, call: number): string =>
  choice === 0 ? `call_${turns}_${call}` : `call_${turns}_${choice}_${call}`

const finishReason = ({ finishReason }: Generated, calls: number): string =>
  finishReason === "stop" && calls > 0 ? "tool_calls" : finishReason

export const usageOf = (promptTokens: number, answers: Iterable<Generated>) => {
  let completionTokens = 0
  for (const { tokens } of answers) completionTokens += tokens.length
  return {
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
    total_tokens: promptTokens + completionTokens,
  }
}

const withIds = (question: ChatQuestion, tokens: ReadonlyArray<GeneratedToken>) => ({
  logprobs: question.logprobs ? { content: tokens.map((token) => question.texts.chat(token)), refusal: null } : null,
  ...(question.tokenIds ? { token_ids: tokens.map(({ id }) => id) } : {}),
})

const wholeChoice = (question: ChatQuestion, generated: Generated, index: number) => {
  const reader = question.reader()
  const { content, calls } = collect([...reader.push(generated.text), ...reader.end()])
  const kept = question.onlyOneCall ? calls.slice(0, 1) : calls
  return {
    index,
    message: {
      role: "assistant",
      content: content === "" && kept.length > 0 ? null : content,
      refusal: null,
      ...(kept.length === 0
        ? {}
        : {
            tool_calls: kept.map((call, at) => ({
              id: callId(question.turns, index, at),
              type: "function",
              function: call,
            })),
          }),
    },
    ...withIds(question, generated.tokens),
    ...(question.tokenIds ? expertsBody(generated) : {}),
    finish_reason: finishReason(generated, kept.length),
    stop_reason: generated.stopReason,
    weights: weightsBody(generated.weights),
  }
}

/** Encodes a whole answer. */
export const chatAnswer = (question: ChatQuestion, generated: ReadonlyArray<Generated>) => ({
  id: question.id,
  object: "chat.completion",
  created: question.created,
  model: question.model,
  system_fingerprint: fingerprint(generated.map(({ weights }) => weights)),
  choices: generated.map((one, index) => wholeChoice(question, one, index)),
  usage: usageOf(question.promptIds.length, generated),
  ...(question.tokenIds ? { prompt_token_ids: question.promptIds } : {}),
  ...promptLogprobs(question, generated),
})

const promptLogprobs = ({ promptLogprobs: topCount, texts }: ChatQuestion, [first]: ReadonlyArray<Generated>) =>
  topCount === null || first?.promptLogprobs === undefined
    ? {}
    : { prompt_logprobs: texts.prompt(first.promptLogprobs, topCount) }

/** The state of one choice of a stream. */
class StreamedChoice {
  private readonly reader: ToolReader
  private readonly question: ChatQuestion
  private readonly index: number
  calls = 0

  constructor(question: ChatQuestion, index: number) {
    this.question = question
    this.index = index
    this.reader = question.reader()
  }

  /** Returns the delta for a piece of text; empty if the reader holds the text back. */
  push(text: string) {
    return this.delta(this.reader.push(text))
  }

  end(text: string) {
    return this.delta([...this.reader.push(text), ...this.reader.end()])
  }

  private delta(events: ReadonlyArray<AnswerEvent>) {
    let content = ""
    const calls: Array<{ index: number; id?: string; type?: string; function: { name?: string; arguments: string } }> =
      []
    for (const event of events) {
      if (event._tag === "Text") content += event.text
      else if (event._tag === "Call") {
        const id = callId(this.question.turns, this.index, this.calls)
        const called = { name: event.name, arguments: "" }
        if (this.isKept(this.calls)) calls.push({ index: this.calls, id, type: "function", function: called })
        this.calls++
      } else if (this.isKept(this.calls - 1)) {
        const last = calls.at(-1)
        if (last === undefined) calls.push({ index: this.calls - 1, function: { arguments: event.text } })
        else last.function.arguments += event.text
      }
    }
    return { ...(content === "" ? {} : { content }), ...(calls.length === 0 ? {} : { tool_calls: calls }) }
  }

  private isKept(call: number): boolean {
    return call === 0 || !this.question.onlyOneCall
  }
}

/** Encodes a stream of events as chunks. Each chunk is the data of one server-sent event. */
export class ChatChunks {
  private readonly question: ChatQuestion
  private readonly choices: ReadonlyArray<StreamedChoice>
  private readonly begun = new Set<number>()
  private readonly finished: Array<Generated> = []
  /** The weights of each choice that has begun. */
  private readonly weights = new Map<number, WeightsUsed>()

  constructor(question: ChatQuestion, choices: number) {
    this.question = question
    this.choices = Array.from({ length: choices }, (_, index) => new StreamedChoice(question, index))
  }

  /** Returns the chunks of an event. */
  push({ index, event }: ChoiceEvent): ReadonlyArray<object> {
    const choice = this.choices[index]
    this.weights.set(index, event._tag === "Token" ? event.weights : event.generated.weights)
    const chunks: Array<object> = []
    if (!this.begun.has(index)) {
      const isFirst = this.begun.size === 0
      this.begun.add(index)
      const ids = isFirst && this.question.tokenIds ? { prompt_token_ids: this.question.promptIds } : {}
      chunks.push(this.chunk(index, { role: "assistant", content: "" }, { logprobs: null }, ids))
    }
    if (event._tag === "Token") {
      const delta = choice.push(event.text)
      if (Object.keys(delta).length > 0 || this.question.logprobs || this.question.tokenIds) {
        chunks.push(this.chunk(index, delta, withIds(this.question, [event.token])))
      }
      return chunks
    }
    const rest = choice.end(event.text)
    if (Object.keys(rest).length > 0) chunks.push(this.chunk(index, rest, { logprobs: null }))
    this.finished.push(event.generated)
    chunks.push(
      this.chunk(
        index,
        {},
        {
          logprobs: null,
          finish_reason: finishReason(event.generated, choice.calls),
          stop_reason: event.generated.stopReason,
          weights: weightsBody(event.generated.weights),
          ...(this.question.tokenIds ? expertsBody(event.generated) : {}),
        },
      ),
    )
    return chunks
  }

  /** Returns the chunks after the last event. */
  end(): ReadonlyArray<object> {
    if (!this.question.usage) return []
    return [{ ...this.frame(), choices: [], usage: usageOf(this.question.promptIds.length, this.finished) }]
  }

  private frame() {
    const { id, created, model } = this.question
    return {
      id,
      object: "chat.completion.chunk",
      created,
      model,
      system_fingerprint: fingerprint(this.weights.values()),
    }
  }

  private chunk(index: number, delta: object, choice: object, more: object = {}): object {
    return {
      ...this.frame(),
      choices: [{ index, delta, finish_reason: null, ...choice }],
      ...(this.question.usage ? { usage: null } : {}),
      ...more,
    }
  }
}
