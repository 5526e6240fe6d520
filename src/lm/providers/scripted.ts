/**
 * A language model that is a function of the request: for tests, examples, and baselines. It may fail, and take time on
 * Effect's clock.
 *
 * @example
 * ```ts
 * const model = Scripted.layer((request) => `You said: ${request.messages.at(-1)?.content}`)
 * const slow = Scripted.layer(() => Effect.delay(Effect.succeed("At last"), "200 millis"))
 * ```
 */
import { Effect, Layer } from "effect"
import type { LanguageModel } from "effect/ai"
import type { Completion, LmRequest, TokenTrace } from "../Chat.ts"
import { bytes, completionIds, promptIds } from "../ChatTokens.ts"
import { Lm, type LmService } from "../Lm.ts"
import type { LmError } from "../LmError.ts"
import { languageModel } from "./Provider.ts"
import { reader } from "./reader.ts"

/** What is said, or that and more of the completion. */
export type Answer = string | Partial<Completion>

export type Script = (request: LmRequest) => Answer | Effect.Effect<Answer, LmError>

/** A word, for those who don't count by tokens. */
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

const completed = (request: LmRequest, answer: Answer): Completion => {
  const given = typeof answer === "string" ? { content: answer } : answer
  const content = given.content ?? ""
  const toolCalls = given.toolCalls ?? []
  const finishReason = given.finishReason ?? (toolCalls.length > 0 ? "tool_calls" : "stop")
  const tokens = given.tokens ?? (request.traceTokens ? traced(request, content, toolCalls, finishReason) : null)
  return {
    content,
    toolCalls,
    finishReason,
    usage: given.usage ?? {
      inputTokens:
        tokens?.promptIds.length ?? request.messages.reduce((sum, { content }) => sum + countWords(content), 0),
      outputTokens: tokens?.completionIds.length ?? countWords(content),
      reasoningTokens: 0,
    },
    tokens,
    model: given.model ?? request.model,
    attempts: given.attempts ?? 1,
  }
}

/** Bytes as tokens; a script is certain of what it says. */
const traced = (
  request: LmRequest,
  content: string,
  toolCalls: Completion["toolCalls"],
  finishReason: Completion["finishReason"],
): TokenTrace => {
  const ids = completionIds(bytes, { role: "assistant", content, toolCalls }, finishReason !== "length")
  return { promptIds: promptIds(bytes, request), completionIds: ids, logprobs: ids.map(() => 0) }
}

/** A model that says what the function gives. */
export const make = (script: Script): LmService => ({
  complete: (request) =>
    Effect.suspend(() => {
      const answer = script(request)
      return Effect.isEffect(answer)
        ? Effect.map(answer, (answer) => completed(request, answer))
        : Effect.succeed(completed(request, answer))
    }),
})

/** The same for what asks for an `Lm`. */
export const layer = (script: Script): Layer.Layer<Lm> => Layer.succeed(Lm, make(script))

/** The same as Effect's own service. */
export const layerLanguageModel = (script: Script): Layer.Layer<LanguageModel.LanguageModel> =>
  languageModel({ model: "scripted", complete: make(script).complete })

/** Says again what it was told last. */
export const echo: Script = (request) => request.messages.at(-1)?.content ?? ""

/** Those that a config can name, as `scripted:NAME`. */
export const named: Readonly<Record<string, Script>> = { echo, reader }
