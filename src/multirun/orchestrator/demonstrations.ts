/**
 * Plays episodes in which the right answers stand in for those of a model, for supervised fine-tuning. The agent builds
 * its prompts as it does with a model, so a model that is trained on these rollouts meets the same prompts later.
 *
 * @example
 * ```ts
 * const protocol = demonstrations((lm) => Effect.provideService(MemorylessAgent.make({ model: "policy" }), Lm, lm), encode)
 * const [rollout] = yield* protocol.play({ id: "first", env, envSeed: 1, samplingSeed: 1 })
 * ```
 */
import { Effect } from "effect"
import type { Agent } from "../../agent/Agent.ts"
import type { Protocol } from "../../episode/Protocol.ts"
import { ProtocolError } from "../../episode/ProtocolError.ts"
import * as SingleAgent from "../../episode/protocols/SingleAgent.ts"
import type { Completion, LmRequest, TokenTrace } from "../../lm/Chat.ts"
import type { LmService } from "../../lm/Lm.ts"
import type { LmError } from "../../lm/LmError.ts"
import { stream } from "../../rng/Rng.ts"

/** Makes the run's agent, which asks this model. */
export type AgentOf = (lm: LmService) => Effect.Effect<Agent, { readonly message: string }>

/** Returns the tokens of a request's prompt and of an answer to it. */
export type Encode = (request: LmRequest, answer: string) => Effect.Effect<TokenTrace, LmError>

/** Makes a model that answers every request with one text. */
const demonstrator = (answer: string, encode: Encode): LmService => ({
  complete: (request) =>
    Effect.map(encode(request, answer), (tokens): Completion => {
      const { promptIds, completionIds } = tokens
      const usage = { inputTokens: promptIds.length, outputTokens: completionIds.length, reasoningTokens: 0 }
      return { content: answer, toolCalls: [], finishReason: "stop", usage, tokens, model: "target", attempts: 1 }
    }),
})

const name = "demonstrations"

/**
 * Makes the protocol. The right answer to a task is the one that its feedback on an empty answer names, so it suits tasks
 * of one step; a task whose feedback names none cannot be played.
 */
export const demonstrations = (agentOf: AgentOf, encode: Encode): Protocol => ({
  name,
  play: Effect.fnUntraced(function* (episode) {
    const { id, env, envSeed } = episode
    const refuse = (message: string) =>
      new ProtocolError({ protocol: name, rollout: id, message: `${env.id}: ${message}` })
    const { feedback } = yield* Effect.flatMap(env.begin(stream(envSeed, "env")), ({ step }) => step(""))
    if (feedback.target === null)
      return yield* refuse("expected feedback with the right answer, to imitate it; found none")
    const agent = yield* Effect.mapError(agentOf(demonstrator(feedback.target, encode)), ({ message }) =>
      refuse(message),
    )
    return yield* SingleAgent.make(agent).play(episode)
  }),
})
