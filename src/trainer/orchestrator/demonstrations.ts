/**
 * Plays episodes with the right moves instead of a model's answers, for supervised fine-tuning. The agent builds its prompts
 * as it does with a model, so a model that is trained on these rollouts meets the same prompts later.
 *
 * @example
 * ```ts
 * const protocol = demonstrations((lm) => Effect.provideService(MemorylessAgent.make({ model: "policy" }), Lm, lm), encode)
 * const [rollout] = yield* protocol.play({ id: "first", env, envSeed: 1, samplingSeed: 1 })
 * ```
 */
import { Effect } from "effect"
import type { Agent } from "../../agents/agent/Agent.ts"
import type { Protocol } from "../../agents/episode/Protocol.ts"
import { ProtocolError } from "../../agents/episode/ProtocolError.ts"
import * as SingleAgent from "../../agents/episode/protocols/SingleAgent.ts"
import type { ChatAnswer, Completion, LmRequest } from "../../agents/lm/Chat.ts"
import type { LmService } from "../../agents/lm/Lm.ts"
import type { LmError } from "../../agents/lm/LmError.ts"
import { stream } from "../../base/rng/Rng.ts"
import type { TextEnv } from "../../agents/task/TextEnv.ts"

/** Makes the run's agent, which asks this model. */
export type AgentOf = (lm: LmService) => Effect.Effect<Agent, { readonly message: string }>

/** Makes the completion that the model would give if it answered a request with a right move. */
export type Encode = (request: LmRequest, move: ChatAnswer) => Effect.Effect<Completion, LmError>

/** Wraps an env, and remembers its last observation or tool result, which `seen` returns. */
const watched = (env: TextEnv) => {
  let seen = ""
  const watching: TextEnv = {
    ...env,
    begin: (random) =>
      Effect.map(env.begin(random), (episode) => {
        seen = episode.observation
        return {
          ...episode,
          step: (action) =>
            Effect.tap(episode.step(action), ({ observation }) => Effect.sync(() => (seen = observation ?? ""))),
          call: (call) => Effect.tap(episode.call(call), ({ content }) => Effect.sync(() => (seen = content))),
        }
      }),
  }
  return { env: watching, seen: () => seen }
}

const name = "demonstrations"

/**
 * Makes the protocol. The right moves are those of the env's `demonstrate`. If an env has none, its task is played as one
 * step: the right answer is read from the feedback to an empty answer. Fails if the feedback names none.
 */
export const demonstrations = (agentOf: AgentOf, encode: Encode): Protocol => ({
  name,
  play: Effect.fnUntraced(function* (episode) {
    const { id, envSeed } = episode
    const { env, seen } = watched(episode.env)
    const refuse = (message: string) =>
      new ProtocolError({ protocol: name, rollout: id, message: `${env.id}: ${message}` })
    let { demonstrate } = env
    if (demonstrate === undefined) {
      const answered = Effect.flatMap(env.begin(stream(envSeed, "env")), ({ step }) => step(""))
      const { feedback } = yield* Effect.scoped(answered)
      const { target } = feedback
      if (target === null) return yield* refuse("expected feedback with the right answer, to imitate it; found none")
      demonstrate = () => target
    }
    const next = demonstrate
    let moves = 0
    const demonstrator: LmService = {
      complete: (request) =>
        Effect.suspend(() => {
          const move = next(seen(), stream(envSeed, "demonstration", moves), moves)
          moves++
          return encode(request, move)
        }),
    }
    const agent = yield* Effect.mapError(agentOf(demonstrator), ({ message }) => refuse(message))
    return yield* SingleAgent.make(agent).play({ ...episode, env })
  }),
})
