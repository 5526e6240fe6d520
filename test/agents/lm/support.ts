import { Effect } from "effect"
import { type Completion, LmRequest } from "../../../src/agents/lm/Chat.ts"
import type { LmService } from "../../../src/agents/lm/Lm.ts"
import { LmError } from "../../../src/agents/lm/LmError.ts"

export const request = (content: string, more: Partial<LmRequest> = {}): LmRequest => ({
  ...LmRequest.defaults,
  model: "m",
  messages: [{ role: "user", content }],
  ...more,
})

export const completion = (content: string, tokens = 0): Completion => ({
  content,
  toolCalls: [],
  finishReason: "stop",
  usage: { inputTokens: tokens, outputTokens: 0, reasoningTokens: 0 },
  tokens: null,
  model: "m",
  attempts: 1,
})

export const failure = (reason: LmError["reason"], more: Partial<LmError> = {}): LmError =>
  new LmError({ model: "m", reason, attempts: 1, message: `m: ${reason}`, ...more })

/** A model that answers by the number of the attempt, and counts its calls. */
export const answering = (
  answer: (nth: number, request: LmRequest) => Effect.Effect<Completion, LmError> | string,
): { readonly lm: LmService; readonly asked: () => number } => {
  let asked = 0
  return {
    asked: () => asked,
    lm: {
      complete: (request) =>
        Effect.suspend(() => {
          const given = answer(asked++, request)
          return typeof given === "string" ? Effect.succeed(completion(given)) : given
        }),
    },
  }
}
