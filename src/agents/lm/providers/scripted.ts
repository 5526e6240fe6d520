/**
 * Provides an `Lm` that answers each request with the result of `script`, a function of the request. It needs no server, and
 * is for tests, examples and baselines. A script can also be an Effect that fails or takes time.
 *
 * @example
 * ```ts
 * const model = Scripted.layer((request) => `You said: ${request.messages.at(-1)?.content}`)
 * const slow = Scripted.layer(() => Effect.delay(Effect.succeed("At last"), "200 millis"))
 * ```
 */
import { Effect, Layer } from "effect"
import type * as LanguageModel from "effect/ai/LanguageModel"
import type { Completion, LmRequest, TokenTrace } from "../Chat.ts"
import { completionIds, promptIds } from "../ChatTokens.ts"
import { bytes } from "../../../base/tokens/words.ts"
import { Lm, type LmService } from "../Lm.ts"
import type { LmError } from "../LmError.ts"
import { languageModel } from "./Provider.ts"
import { reader } from "./reader.ts"

/** The answer of a script: the text of a completion, or some fields of a completion. */
export type ScriptedAnswer = string | Partial<Completion>

export type Script = (request: LmRequest) => ScriptedAnswer | Effect.Effect<ScriptedAnswer, LmError>

/** Counts the words of a text, which are reported as its tokens if the request does not ask for token ids. */
const countWords = (text: string): number => {
  let count = 0
  let inside = false
  for (let at = 0; at < text.length; at++) {
    const blank = text.charCodeAt(at) <= 32
    if (!blank && !inside) count++
    inside = !blank
  }
  return count
}

/** Makes a completion from a script's answer; fields that the answer lacks get default values. */
const completed = (request: LmRequest, answer: ScriptedAnswer): Completion => {
  const fields = typeof answer === "string" ? { content: answer } : answer
  const content = fields.content ?? ""
  const toolCalls = fields.toolCalls ?? []
  const finishReason = fields.finishReason ?? (toolCalls.length > 0 ? "tool_calls" : "stop")
  const tokens = fields.tokens ?? (request.traceTokens ? traced(request, content, toolCalls, finishReason) : null)
  return {
    content,
    toolCalls,
    finishReason,
    usage: fields.usage ?? {
      inputTokens:
        tokens?.promptIds.length ?? request.messages.reduce((sum, { content }) => sum + countWords(content), 0),
      outputTokens: tokens?.completionIds.length ?? countWords(content),
      reasoningTokens: 0,
    },
    tokens,
    model: fields.model ?? request.model,
    attempts: fields.attempts ?? 1,
  }
}

/** Makes the token ids of a call; each byte is a token. All log-probabilities are 0: a script's answer is certain. */
const traced = (
  request: LmRequest,
  content: string,
  toolCalls: Completion["toolCalls"],
  finishReason: Completion["finishReason"],
): TokenTrace => {
  const ids = completionIds(bytes, { role: "assistant", content, toolCalls }, finishReason !== "length")
  return { promptIds: promptIds(bytes, request), completionIds: ids, logprobs: ids.map(() => 0) }
}

/** Makes an `Lm` service that answers each request with the result of `script`. */
export const make = (script: Script): LmService => ({
  complete: (request) =>
    Effect.suspend(() => {
      const answer = script(request)
      return Effect.isEffect(answer)
        ? Effect.map(answer, (answer) => completed(request, answer))
        : Effect.succeed(completed(request, answer))
    }),
})

/** Provides an `Lm` that answers each request with the result of `script`. */
export const layer = (script: Script): Layer.Layer<Lm> => Layer.succeed(Lm, make(script))

/** Provides an Effect `LanguageModel` that answers each request with the result of `script`. */
export const layerLanguageModel = (script: Script): Layer.Layer<LanguageModel.LanguageModel> =>
  languageModel(Effect.succeed({ model: "scripted", complete: make(script).complete }))

/** Answers with the text of the last message. */
export const echo: Script = (request) => request.messages.at(-1)?.content ?? ""

/** The scripts that a config can name as `scripted:NAME`. */
export const named: Readonly<Record<string, Script>> = { echo, reader }
