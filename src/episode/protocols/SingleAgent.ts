/**
 * One agent meets one env: it is shown what there is to see, acts, is told what that led to, until the env says that it
 * is over or somebody cuts it off.
 *
 * @example
 * ```ts
 * const protocol = SingleAgent.make(agent, { maxSteps: 50 })
 * const [rollout] = yield* protocol.play({ id: "first", env, envSeed: 1, samplingSeed: 1 })
 * rollout.totalReward
 * ```
 *
 * A failed parse takes one of the `maxSteps`, as an action does: the model is told what was wrong, and the env isn't
 * stepped. Calls of tools between two actions take none.
 */
import { Effect, type Scope } from "effect"
import type { Agent } from "../../agent/Agent.ts"
import { CallContext } from "../../lm/Lm.ts"
import { SamplingSeed } from "../../lm/middleware/seeded.ts"
import { stream } from "../../rng/Rng.ts"
import type { Episode, EpisodeFailure, Protocol } from "../Protocol.ts"
import { ProtocolError } from "../ProtocolError.ts"
import { endingOf, recording } from "./recording.ts"
import { type Ending, goesOn, type Rollout } from "../Rollout.ts"
import { offered, opening, type ToolOptions } from "./tools.ts"
import { lookBack, type TurnResult, turn } from "./turn.ts"

export interface SingleAgentOptions extends ToolOptions {
  /** The env's own limit counts, too. */
  readonly maxSteps?: number | null
  /**
   * The episode is cut off when the model was asked that often, as by `maxSteps`. What an agent asks within one act, for
   * tools of its own, is counted, but not interrupted; looking back afterwards isn't counted.
   */
  readonly maxCalls?: number | null
  /** A parse that fails is the end; else the model may try again. */
  readonly stopOnParseError?: boolean
}

/** The smallest of the limits of that name that are set. */
export const limitOf = (
  protocol: string,
  rollout: string,
  name: string,
  ...limits: ReadonlyArray<number | null | undefined>
): Effect.Effect<number, ProtocolError> => {
  let limit = Infinity
  for (const given of limits) {
    if (given === null || given === undefined) continue
    if (!(Number.isInteger(given) && given >= 1)) {
      const message = `${name}: expected a whole number of at least 1, found ${given}`
      return Effect.fail(new ProtocolError({ protocol, rollout, message }))
    }
    limit = Math.min(limit, given)
  }
  return Effect.succeed(limit)
}

const protocol = "SingleAgent"

const playing = Effect.fnUntraced(function* (
  agent: Agent,
  episode: Episode,
  options: SingleAgentOptions,
): Effect.fn.Return<Rollout, EpisodeFailure> {
  const { env } = episode
  const { stopOnParseError = false } = options
  const limit = yield* limitOf(protocol, episode.id, "maxSteps", options.maxSteps, env.maxSteps)
  const maxCalls = yield* limitOf(protocol, episode.id, "maxCalls", options.maxCalls)
  const around = yield* CallContext
  const making = recording(episode)

  yield* agent.reset
  const begun = yield* env.begin(stream(episode.envSeed, "env"))
  const tools = { protocol, options, env: env.tools === undefined ? null : begun }
  let { observation } = begun
  let shown = opening(observation, offered(env, options))
  let ending: Ending = goesOn
  let step = 0
  while (!ending.terminated && !ending.truncated) {
    step++
    const isLast = step >= limit
    const context: CallContext = { ...around, purpose: "action", step }
    const asked = { recording: making, tools, stopOnParseError, isLast, maxCalls, context }
    const settled: TurnResult = yield* turn(agent, shown, asked)
    if (settled._tag === "Failed") {
      ;({ shown, ending } = settled)
      continue
    }
    const { action, reward, turnId, agentStepIds } = settled
    const led = yield* begun.step(action)
    ending = endingOf(led, isLast || making.calls() >= maxCalls)
    const done = ending.terminated || ending.truncated
    yield* Effect.provideService(
      agent.observe({ action, observation: led.observation, feedback: agent.training ? led.feedback : null, done }),
      CallContext,
      context,
    )
    yield* making.acted({ turnId, agentStepIds, observation, action, actionReward: reward, led, ending })
    observation = led.observation ?? ""
    shown = { _tag: "Observation", text: observation }
  }
  yield* lookBack(agent, making, { ...around, step })
  return making.finish(agent, ending)
})

/**
 * Plays an episode by that very agent: its short-term state is reset before, its memory is written if it is in training,
 * and it is told how good its actions were only then. Calls of the model run in the `CallContext` around this, with the
 * step in it.
 */
export const play = (
  agent: Agent,
  episode: Episode,
  options: SingleAgentOptions = {},
): Effect.Effect<Rollout, EpisodeFailure> =>
  Effect.provideService(playing(agent, episode, options), SamplingSeed, episode.samplingSeed)

/** A protocol whose episodes are played by clones of the agent, which share its memory: any number at a time. */
export const make = (agent: Agent, options: SingleAgentOptions = {}): Protocol => ({
  name: protocol,
  play: Effect.fnUntraced(function* (
    episode: Episode,
  ): Effect.fn.Return<ReadonlyArray<Rollout>, EpisodeFailure, Scope.Scope> {
    const player = yield* agent.cloneForEpisode({ training: agent.training, shareMemory: true })
    return [yield* play(player, episode, options)]
  }),
})
