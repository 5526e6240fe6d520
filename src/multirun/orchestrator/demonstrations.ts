/**
 * Plays episodes in which the right answers stand in for those of a model, for supervised fine-tuning. The agent builds
 * its prompts as it does with a model, so a model that is trained on these rollouts meets the same prompts later.
 */
import { Effect } from "effect"
import type { Completion, LmRequest, TokenTrace } from "../../lm/Chat.ts"
import type { LmService } from "../../lm/Lm.ts"
import type { EnvError } from "../../env/EnvError.ts"
import { stream } from "../../rng/Rng.ts"
import type { TextEnv } from "../../task/TextEnv.ts"

/**
 * Returns the right answer to the first observation of a task, as the feedback on an empty answer names it; null if the
 * feedback names none.
 */
export const targetOf = (env: TextEnv, envSeed: number): Effect.Effect<string | null, EnvError> =>
  Effect.gen(function* () {
    const episode = yield* env.begin(stream(envSeed, "env"))
    const { feedback } = yield* episode.step("")
    return feedback.target
  })

/** Makes a model that answers every request with one text. `encode` returns the tokens of the prompt and the answer. */
export const demonstrator = (
  answer: string,
  encode: (request: LmRequest, answer: string) => Effect.Effect<TokenTrace>,
): LmService => ({
  complete: (request) =>
    Effect.map(encode(request, answer), (tokens): Completion => {
      const { promptIds, completionIds } = tokens
      const usage = { inputTokens: promptIds.length, outputTokens: completionIds.length, reasoningTokens: 0 }
      return { content: answer, toolCalls: [], finishReason: "stop", usage, tokens, model: "target", attempts: 1 }
    }),
})
