/**
 * Defines the protocol for one agent in one env: the agent gets an observation, acts, and gets the result, until the
 * env ends the episode or a limit cuts it off.
 *
 * @example
 * ```ts
 * const protocol = SingleAgent.make(agent, { maxSteps: 50 })
 * const [rollout] = yield* protocol.play({ id: "first", env, envSeed: 1, samplingSeed: 1 })
 * rollout.totalReward
 * ```
 *
 * An answer that cannot be parsed counts as one of the `maxSteps`, as an action does: the model gets feedback, and the
 * env takes no step. Tool calls between two actions do not count.
 */
import { Effect } from "effect"
import type { Agent } from "../../agent/Agent.ts"
import { CallContext } from "../../lm/Lm.ts"
import { inAgentSpan } from "../../lm/genAi.ts"
import { SamplingSeed } from "../../lm/middleware/seeded.ts"
import { stream } from "../../../base/rng/Rng.ts"
import type { EpisodeToPlay, EpisodeFailure, Protocol } from "../Protocol.ts"
import { ProtocolError } from "../ProtocolError.ts"
import { endingOf, makeRecording } from "./recording.ts"
import { type RolloutEnding, notEnded, type Rollout } from "../Rollout.ts"
import { externalTools, firstInput, type ToolOptions } from "./tools.ts"
import { cloneOf, observe, reflect, turn, type TurnResult } from "./turn.ts"

export interface SingleAgentOptions extends ToolOptions {
  /** The maximum number of steps; null sets no limit. The env's own limit applies as well. */
  readonly maxSteps?: number | null
  /**
   * The number of calls of the model at which the episode is cut off; null sets no limit. All calls count, except
   * reflections. An agent that runs its own tools may exceed the limit within a turn.
   */
  readonly maxCalls?: number | null
  /** Whether an answer that cannot be parsed ends the episode; otherwise (the default) the model may try again. */
  readonly stopOnParseError?: boolean
  /**
   * Whether an episode ends, truncated, when its next prompt is too long for the model. By default, the episode fails. If the
   * first prompt is too long, it always fails.
   */
  readonly endsIfPromptTooLong?: boolean
}

/** Returns the smallest limit that is not null, or Infinity; fails if a limit is not a whole number of at least 1. */
export const limitOf = (
  protocol: string,
  rollout: string,
  name: string,
  ...limits: ReadonlyArray<number | null | undefined>
): Effect.Effect<number, ProtocolError> => {
  let limit = Infinity
  for (const value of limits) {
    if (value === null || value === undefined) continue
    if (!(Number.isInteger(value) && value >= 1)) {
      const message = `${name}: expected a whole number of at least 1, found ${value}`
      return Effect.fail(new ProtocolError({ protocol, rollout, message }))
    }
    limit = Math.min(limit, value)
  }
  return Effect.succeed(limit)
}

const protocol = "SingleAgent"

/**
 * Plays an episode with the given agent itself (not with a clone); first resets its short-term state. An agent in training
 * gets the feedback, and may write to its memory. Calls of the model are labelled in logs with the caller's `CallContext` and
 * the current step.
 */
export const play: (
  agent: Agent,
  episode: EpisodeToPlay,
  options?: SingleAgentOptions,
) => Effect.Effect<Rollout, EpisodeFailure> = Effect.fnUntraced(
  function* (agent, episode, options = {}) {
    const { env } = episode
    const { stopOnParseError = false, endsIfPromptTooLong = false } = options
    const limit = yield* limitOf(protocol, episode.id, "maxSteps", options.maxSteps, env.maxSteps)
    const maxCalls = yield* limitOf(protocol, episode.id, "maxCalls", options.maxCalls)
    const callContext = yield* CallContext
    const recording = makeRecording(episode)

    yield* agent.reset
    const begun = yield* env.begin(stream(episode.envSeed, "env"))
    const tools = { protocol, options, env: env.tools === undefined ? null : begun }
    let { observation } = begun
    let input = firstInput(observation, externalTools(env, options))
    let ending: RolloutEnding = notEnded
    let step = 0
    while (!ending.terminated && !ending.truncated) {
      step++
      const isLast = step >= limit
      const context: CallContext = { ...callContext, purpose: "action", step }
      const limits = { stopOnParseError, endsIfPromptTooLong, isLast, maxCalls }
      const result: TurnResult = yield* turn(agent, input, { recording, tools, context, ...limits })
      if (result._tag === "Failed") {
        ;({ input, ending } = result)
        continue
      }
      const envStep = yield* begun.step(result.action)
      ending = endingOf(envStep, isLast || recording.calls() >= maxCalls)
      yield* observe(agent, result.action, envStep, ending, context)
      yield* recording.envStep(result, observation, envStep, ending)
      observation = envStep.observation ?? ""
      input = { _tag: "Observation", text: observation }
    }
    yield* reflect(agent, recording, { ...callContext, step })
    return recording.finish(agent, ending)
  },
  (effect, agent, episode) =>
    inAgentSpan(agent, episode.id, Effect.scoped(Effect.provideService(effect, SamplingSeed, episode.samplingSeed))),
)

/** Makes the protocol. Each episode is played by a clone of the agent, with its memory, so many can be played at a time. */
export const make = (agent: Agent, options: SingleAgentOptions = {}): Protocol => ({
  name: protocol,
  play: Effect.fnUntraced(function* (episode) {
    return [yield* play(yield* cloneOf(agent), episode, options)]
  }),
})
