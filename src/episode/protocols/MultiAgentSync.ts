/**
 * Several players in one env, in turn or at once, each with an agent of its own, or one agent as all of them. There is
 * one rollout for each player, all with the same `groupId`.
 *
 * @example
 * ```ts
 * const selfPlay = MultiAgentSync.make(agent)
 * const match = MultiAgentSync.make({ X: agent, O: opponent }, { maxSteps: 20 })
 * const rollouts = yield* match.play({ id: "first", env, envSeed: 1, samplingSeed: 1 })
 * rollouts.map(({ meta, totalReward }) => [meta.player, totalReward]) // [["X", 1], ["O", -1]]
 * ```
 *
 * A player's env step goes from what it saw when it acted to what it sees when it is to act again, or at the end: what
 * the moves of others meant to it meanwhile is in that step's feedback, scores added up. What it gains or loses before it
 * first acts is a step without an action. A round, in which everybody who
 * is to move is asked, takes one of the `maxSteps`. Whose parse fails is asked again in the next round, and the env waits.
 */
import { Effect, type Scope } from "effect"
import type { Agent } from "../../agent/Agent.ts"
import type { MultiTextEnv, MultiTextStep } from "../../task/MultiTextEnv.ts"
import { CallContext } from "../../lm/Lm.ts"
import { SamplingSeed } from "../../lm/middleware/seeded.ts"
import { stream } from "../../rng/Rng.ts"
import { type Pending, type Player, playerOf, type Told } from "./player.ts"
import type { Episode, EpisodeFailure, Protocol } from "../Protocol.ts"
import { ProtocolError } from "../ProtocolError.ts"
import { endingOf } from "./recording.ts"
import { type Ending, goesOn, type Rollout } from "../Rollout.ts"
import { limitOf } from "./SingleAgent.ts"
import { offered, type ToolOptions } from "./tools.ts"
import { turn } from "./turn.ts"

export interface MultiAgentOptions extends ToolOptions {
  /** Rounds. The env's own limit counts, too. */
  readonly maxSteps?: number | null
  /** A parse that fails is the end for all; else that player may try again. */
  readonly stopOnParseError?: boolean
}

/** By player, or one as all of them. */
export type Agents = Agent | Readonly<Record<string, Agent>>

const protocol = "MultiAgentSync"

const isOne = (agents: Agents): agents is Agent => typeof agents["act"] === "function"

/** An agent for each player, and none for anybody else. */
const seats = (
  agents: Readonly<Record<string, Agent>>,
  { id, env }: Episode<MultiTextEnv>,
): Effect.Effect<ReadonlyArray<readonly [string, Agent]>, ProtocolError> => {
  const names = Object.keys(agents)
  if (names.length === env.players.length && env.players.every((name) => Object.hasOwn(agents, name))) {
    return Effect.succeed(env.players.map((name) => [name, agents[name]]))
  }
  const message = `env "${env.id}": expected an agent for each of its players ${env.players.join(", ")}, found agents for ${names.length === 0 ? "nobody" : names.join(", ")}`
  return Effect.fail(new ProtocolError({ protocol, rollout: id, message }))
}

/** What the env said, at the players' own places: what they saw, were told, and did. */
const hear = (player: Player, { observations, feedback, info }: MultiTextStep): void => {
  const { name, told } = player
  if (Object.hasOwn(observations, name)) told.observation = observations[name]
  if (Object.hasOwn(feedback, name)) told.feedback.push(feedback[name])
  if (info !== undefined) told.info = info
}

const playing = Effect.fnUntraced(function* (
  agents: Readonly<Record<string, Agent>>,
  episode: Episode<MultiTextEnv>,
  options: MultiAgentOptions,
): Effect.fn.Return<ReadonlyArray<Rollout>, EpisodeFailure> {
  const { env } = episode
  const { stopOnParseError = false } = options
  const limit = yield* limitOf(protocol, episode.id, "maxSteps", options.maxSteps, env.maxSteps)
  const around = yield* CallContext
  const players = (yield* seats(agents, episode)).map(([name, agent]) => playerOf(name, agent, episode))
  for (const { agent } of players) yield* agent.reset

  const begun = yield* env.begin(stream(episode.envSeed, "env"))
  const { call } = begun
  for (const { name, told } of players) {
    if (Object.hasOwn(begun.observations, name)) told.observation = begun.observations[name]
  }
  let toMove = players.filter(({ name }) => begun.toMove.includes(name))
  const specs = offered(env, options)
  for (const player of toMove) player.turnTo(specs)

  /** Who has answered, while the env waits for the others. */
  const ready = new Map<Player, Pending>()
  let ending: Ending = goesOn
  let step = 0
  while (!ending.terminated && !ending.truncated) {
    step++
    const isLast = step >= limit
    const context: CallContext = { ...around, purpose: "action", step }
    const asking = toMove.filter((player) => !ready.has(player))
    const answered = yield* Effect.forEach(
      asking,
      (player) =>
        turn(player.agent, player.shown, {
          recording: player.recording,
          tools: { protocol, options, env: call === undefined ? null : { call: (asked) => call(player.name, asked) } },
          stopOnParseError,
          isLast,
          maxCalls: Infinity,
          context,
        }).pipe(Effect.provideService(SamplingSeed, player.samplingSeed)),
      // Nobody sees what the others do, so nothing depends on who is first; unless they call the env's tools meanwhile.
      { concurrency: call === undefined || env.tools === undefined ? "unbounded" : 1 },
    )
    for (const [at, settled] of answered.entries()) {
      if (settled._tag === "Act") ready.set(asking[at], { ...settled, observation: asking[at].look() })
      else ({ shown: asking[at].shown, ending } = settled)
    }
    if (ready.size < toMove.length) continue

    const actions = Object.fromEntries(Array.from(ready, ([{ name }, { action }]) => [name, action]))
    const led = yield* begun.step(actions)
    ending = endingOf(led, isLast)
    for (const [player, what] of ready) player.acted(what)
    ready.clear()
    for (const player of players) hear(player, led)
    if (ending.terminated || ending.truncated) break
    toMove = players.filter(({ name }) => led.toMove.includes(name))
    for (const player of toMove) {
      yield* player.settle(goesOn, context)
      player.turnTo(specs)
    }
  }

  const context: CallContext = { ...around, purpose: "action", step }
  for (const player of players) {
    const cut = ready.get(player)
    if (cut !== undefined) {
      player.pending = cut
      player.told.feedback.push(notDone)
    }
    yield* player.settle(ending, context)
  }
  for (const player of players) yield* player.lookBack(context)
  return players.map((player) => player.recording.finish(player.agent, ending, player.name))
})

const notDone: Told["feedback"][number] = {
  score: 0,
  target: null,
  message: "Not done: the episode ended while others had not acted yet.",
}

/** Plays an episode by those very agents, each at a place of its own: their memories are written if they are in training. */
export const play = (
  agents: Readonly<Record<string, Agent>>,
  episode: Episode<MultiTextEnv>,
  options: MultiAgentOptions = {},
): Effect.Effect<ReadonlyArray<Rollout>, EpisodeFailure> => playing(agents, episode, options)

/**
 * A protocol whose episodes are played by clones, which share the memory of what they are clones of: any number at a
 * time. One agent alone plays all players, against itself.
 */
export const make = (agents: Agents, options: MultiAgentOptions = {}): Protocol<MultiTextEnv> => ({
  name: protocol,
  play: Effect.fnUntraced(function* (
    episode: Episode<MultiTextEnv>,
  ): Effect.fn.Return<ReadonlyArray<Rollout>, EpisodeFailure, Scope.Scope> {
    const named = isOne(agents) ? Object.fromEntries(episode.env.players.map((name) => [name, agents])) : agents
    const clones: Record<string, Agent> = {}
    for (const [name, agent] of Object.entries(named)) {
      clones[name] = yield* agent.cloneForEpisode({ training: agent.training, shareMemory: true })
    }
    return yield* play(clones, episode, options)
  }),
})
