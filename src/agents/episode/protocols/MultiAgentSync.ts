/**
 * Defines the protocol for several players in one env, who act in turn or at the same time. Each player has its own
 * agent, or one agent plays all of them. `play` returns one rollout for each player, all with the same `groupId`.
 *
 * @example
 * ```ts
 * const selfPlay = MultiAgentSync.make(agent)
 * const match = MultiAgentSync.make({ X: agent, O: opponent }, { maxSteps: 20 })
 * const rollouts = yield* match.play({ id: "first", env, envSeed: 1, samplingSeed: 1 })
 * rollouts.map(({ meta, totalReward }) => [meta.player, totalReward]) // [["X", 1], ["O", -1]]
 * ```
 *
 * In each round, all players whose turn it is act. The round counts as one of the `maxSteps`. A player whose answer cannot be
 * parsed acts again in the next round; the env takes its step when all of these players have given an action. If the episode
 * ends before that, the calls of the model are recorded, but no env step.
 *
 * In a player's rollout, an env step lasts from the player's action until the player must act again or the episode ends. The
 * step's feedback is the sum of all feedback in that time, including feedback for moves of others. If a player gets a score
 * before its first action, its rollout begins with a step without an action.
 */
import { Effect, Record } from "effect"
import type { Agent, AgentInput } from "../../agent/Agent.ts"
import type { Feedback } from "../../task/Feedback.ts"
import type { MultiTextEnv, MultiTextStep } from "../../task/MultiTextEnv.ts"
import type { ToolSpec } from "../../lm/Chat.ts"
import { CallContext } from "../../lm/Lm.ts"
import { inAgentSpan } from "../../lm/genAi.ts"
import { SamplingSeed } from "../../lm/middleware/seeded.ts"
import { stream } from "../../../base/rng/Rng.ts"
import type { EpisodeToPlay, EpisodeFailure, Protocol } from "../Protocol.ts"
import { ProtocolError } from "../ProtocolError.ts"
import { endingOf, makeRecording, type TakenAction } from "./recording.ts"
import { type RolloutEnding, notEnded, type Rollout } from "../Rollout.ts"
import { limitOf } from "./SingleAgent.ts"
import { externalTools, firstInput, type Toolbox, type ToolOptions } from "./tools.ts"
import { cloneOf, observe, reflect, turn } from "./turn.ts"

export interface MultiAgentOptions extends ToolOptions {
  /** The maximum number of rounds; null sets no limit. The env's own limit applies as well. */
  readonly maxSteps?: number | null
  /** Whether a failed parse ends the episode for all players; otherwise the player may try again. */
  readonly stopOnParseError?: boolean
  /**
   * Whether an episode ends for all players, truncated, when a player's next prompt is too long for the model. By default,
   * the episode fails. If the first prompt of a player is too long, it always fails.
   */
  readonly endsIfPromptTooLong?: boolean
}

/** An agent for each player, by its name, or one agent for all. */
export type Agents = Agent | Readonly<Record<string, Agent>>

const protocol = "MultiAgentSync"

/** Tells whether one agent plays all players. An agent has a function `act`; a record of agents has none. */
const isOneAgent = (agents: Agents): agents is Agent => typeof agents["act"] === "function"

/** Returns the agents in the order of the players; fails unless the names are exactly the players. */
const agentsInOrder = (
  agents: Readonly<Record<string, Agent>>,
  { id, env }: EpisodeToPlay<MultiTextEnv>,
): Effect.Effect<ReadonlyArray<readonly [string, Agent]>, ProtocolError> => {
  const names = Object.keys(agents)
  if (names.length === env.players.length && env.players.every((name) => Object.hasOwn(agents, name))) {
    return Effect.succeed(env.players.map((name) => [name, agents[name]]))
  }
  const message = `env "${env.id}": expected an agent for each of its players ${env.players.join(", ")}, found agents for ${names.length === 0 ? "none" : names.join(", ")}`
  return Effect.fail(new ProtocolError({ protocol, rollout: id, message }))
}

/** An action of a player, and the observation on which it was taken. */
interface Pending extends TakenAction {
  readonly observation: string
}

interface PlayerState {
  /** The next input of the agent. */
  input: AgentInput
  /** The last action, until its result is complete (when the player must act again or the episode ends); otherwise null. */
  pending: Pending | null
  /** The latest observation since the player's last action, or null if there is none. */
  observation: string | null
  /** All feedback that the player got since its last action. */
  feedback: Array<Feedback>
  /** The latest info in a step's result; undefined if there was none since the last complete step. */
  info: Readonly<Record<string, unknown>> | undefined
}

/** Merges the feedback for several moves: scores add up, and messages are joined. */
const merged = (all: ReadonlyArray<Feedback>): Feedback => {
  if (all.length === 1) return all[0]
  const extra = Object.fromEntries(all.flatMap((feedback) => Object.entries(feedback.extra ?? {})))
  return {
    score: all.reduce((sum, { score }) => sum + score, 0),
    target: all.findLast(({ target }) => target !== null)?.target ?? null,
    message: all.flatMap(({ message }) => (message === "" ? [] : [message])).join("\n"),
    ...(Object.keys(extra).length === 0 ? {} : { extra }),
  }
}

const isOver = ({ terminated, truncated }: RolloutEnding): boolean => terminated || truncated

/** Makes a player: an agent, the recording of its rollout, its state, and the functions that `play` calls. */
const playerOf = (name: string, agent: Agent, episode: EpisodeToPlay<MultiTextEnv>) => {
  const recording = makeRecording({ ...episode, groupId: episode.groupId ?? episode.id }, `${episode.id}/${name}`)
  // Each player has its own seed; otherwise an agent that plays several players would give the same answers for all.
  const samplingSeed = stream(episode.samplingSeed, "player", name).uint32()
  const seeded = <A, E>(effect: Effect.Effect<A, E>) => Effect.provideService(effect, SamplingSeed, samplingSeed)
  const state: PlayerState = {
    input: { _tag: "Observation", text: "" },
    pending: null,
    observation: null,
    feedback: [],
    info: undefined,
  }
  let isNew = true
  return {
    name,
    agent,
    recording,
    state,
    seeded,
    /** Stores the observation, feedback and info that a step's result has for this player. */
    receive: ({ observations, feedback, info }: Pick<MultiTextStep, "observations" | "feedback" | "info">): void => {
      if (Object.hasOwn(observations, name)) state.observation = observations[name]
      if (Object.hasOwn(feedback, name)) state.feedback.push(feedback[name])
      if (info !== undefined) state.info = info
    },
    /** Makes the latest observation the agent's next input. The first input also has the descriptions of the tools. */
    turnTo: (tools: ReadonlyArray<ToolSpec>): void => {
      const text = state.observation ?? ""
      state.input = isNew ? firstInput(text, tools) : { _tag: "Observation", text }
      isNew = false
    },
    /** Stores the action that the env has just taken, until its result is complete. */
    acted: (action: Pending): void => {
      state.pending = action
      state.observation = null
    },
    /** Completes the player's last action: tells the agent the result, and records the env step. */
    finishStep: Effect.fnUntraced(function* (ending: RolloutEnding, context: CallContext) {
      const { pending, observation, info } = state
      const feedback = merged(state.feedback)
      state.pending = null
      state.feedback = []
      state.info = undefined
      const { terminated, truncated } = ending
      const envStep = { observation, feedback, terminated, truncated, ...(info === undefined ? {} : { info }) }
      if (pending !== null) {
        yield* seeded(observe(agent, pending.action, envStep, ending, context))
        yield* recording.envStep(pending, pending.observation, envStep, ending)
      } else if (feedback.score !== 0) {
        // Before the player's first action, a score becomes a step; an observation alone does not.
        const noAction = { turnId: recording.beginTurn(), agentStepIds: [], action: "", reward: 0 }
        yield* recording.envStep(noAction, "", envStep, ending)
      }
    }),
    reflect: (context: CallContext) => seeded(reflect(agent, recording, context)),
  }
}

/** Plays an episode with the agents themselves, not with clones. Returns each player's rollout, in order. */
export const play = Effect.fnUntraced(function* (
  agents: Readonly<Record<string, Agent>>,
  episode: EpisodeToPlay<MultiTextEnv>,
  options: MultiAgentOptions = {},
): Effect.fn.Return<ReadonlyArray<Rollout>, EpisodeFailure> {
  const { env } = episode
  const { stopOnParseError = false, endsIfPromptTooLong = false } = options
  const limit = yield* limitOf(protocol, episode.id, "maxSteps", options.maxSteps, env.maxSteps)
  const callContext = yield* CallContext
  const players = (yield* agentsInOrder(agents, episode)).map(([name, agent]) => playerOf(name, agent, episode))
  for (const { agent } of players) yield* agent.reset

  const begun = yield* env.begin(stream(episode.envSeed, "env"))
  const { call } = begun
  for (const player of players) player.receive({ observations: begun.observations, feedback: {} })
  let toMove = players.filter(({ name }) => begun.toMove.includes(name))
  const specs = externalTools(env, options)
  for (const player of toMove) player.turnTo(specs)

  /** The actions since the env's last step. The env waits until all players in `toMove` have given one. */
  const ready = new Map<ReturnType<typeof playerOf>, Pending>()
  let ending: RolloutEnding = notEnded
  let step = 0
  while (!isOver(ending)) {
    step++
    const isLast = step >= limit
    const context: CallContext = { ...callContext, purpose: "action", step }
    const acting = toMove.filter((player) => !ready.has(player))
    const results = yield* Effect.forEach(
      acting,
      ({ name, agent, recording, state, seeded }) => {
        const ownCalls: Toolbox["env"] = call === undefined ? null : { call: (toolCall) => call(name, toolCall) }
        const tools = { protocol, options, env: ownCalls }
        const limits = { stopOnParseError, endsIfPromptTooLong, isLast, maxCalls: Infinity }
        const taking = seeded(turn(agent, state.input, { recording, tools, context, ...limits }))
        return inAgentSpan(agent, recording.id, taking)
      },
      // Players do not see each other's turns, so they can act at the same time, unless they call the env's tools.
      { concurrency: call === undefined || env.tools === undefined ? "unbounded" : 1 },
    )
    for (const [at, result] of results.entries()) {
      const { state } = acting[at]
      if (result._tag === "Act") ready.set(acting[at], { ...result, observation: state.observation ?? "" })
      else {
        state.input = result.input
        // Another player may have ended the episode in this round.
        if (isOver(result.ending)) ({ ending } = result)
      }
    }
    if (ready.size < toMove.length) continue

    const actions = Object.fromEntries(Array.from(ready, ([{ name }, { action }]) => [name, action]))
    const envStep = yield* begun.step(actions)
    ending = endingOf(envStep, isLast)
    for (const [player, pending] of ready) player.acted(pending)
    ready.clear()
    for (const player of players) player.receive(envStep)
    if (isOver(ending)) break
    toMove = players.filter(({ name }) => envStep.toMove.includes(name))
    for (const player of toMove) {
      yield* player.finishStep(notEnded, context)
      player.turnTo(specs)
    }
  }

  const context: CallContext = { ...callContext, purpose: "action", step }
  for (const player of players) {
    yield* player.finishStep(ending, context)
    // If the env never took the last answer of a player, this player's last step is a call of the model.
    player.recording.endLastStep(ending)
  }
  for (const player of players) yield* player.reflect(context)
  return players.map((player) => player.recording.finish(player.agent, ending, player.name))
})

/**
 * Makes the protocol. Each episode is played by clones of the agents, which share the agents' memories, so many can be played
 * at a time. If `agents` is one agent, it plays against itself.
 */
export const make = (agents: Agents, options: MultiAgentOptions = {}): Protocol<MultiTextEnv> => ({
  name: protocol,
  play: Effect.fnUntraced(function* (episode) {
    const named = isOneAgent(agents) ? Object.fromEntries(episode.env.players.map((name) => [name, agents])) : agents
    return yield* play(yield* Effect.all(Record.map(named, cloneOf)), episode, options)
  }),
})
