/** Keeps the state of one player in an episode with several players. `MultiAgentSync` uses it. */
import { Effect } from "effect"
import type { Agent, AgentFailure, AgentInput } from "../../agent/Agent.ts"
import type { Feedback } from "../../task/Feedback.ts"
import { CallContext } from "../../lm/Lm.ts"
import type { ToolSpec } from "../../lm/Chat.ts"
import { SamplingSeed } from "../../lm/middleware/seeded.ts"
import { stream } from "../../rng/Rng.ts"
import type { Episode } from "../Protocol.ts"
import { makeRecording, type NamedEnv, type Recording } from "./recording.ts"
import type { Ending } from "../Rollout.ts"
import { firstInput } from "./tools.ts"
import { reflect } from "./turn.ts"

/** An action of a player for which the result is not complete yet. */
export interface Pending {
  readonly turnId: string
  readonly agentStepIds: ReadonlyArray<string>
  readonly observation: string
  readonly action: string
  readonly reward: number
}

/** The observations and feedback that a player has received since its last step. */
interface Received {
  observation: string | null
  readonly feedback: Array<Feedback>
  info: Readonly<Record<string, unknown>> | undefined
}

/** One of several players: it keeps the state between the player's agent and the env. */
export interface Player {
  readonly name: string
  readonly agent: Agent
  readonly recording: Recording
  /**
   * The seed of this player's sampling, so that an agent that plays several players does not answer the same for all of
   * them.
   */
  readonly samplingSeed: number
  readonly received: Received
  /** The next input of the agent. */
  input: AgentInput
  pending: Pending | null
  /** Gives the last observation, or "" if there was none since the last action. */
  readonly observation: () => string
  /** Makes the observation the next input of the agent, the first time together with the tools. */
  readonly turnTo: (tools: ReadonlyArray<ToolSpec>) => void
  /** Stores the action until its result is complete. */
  readonly acted: (action: Pending) => void
  /** If the player has acted, records the env step of that action with its result. */
  readonly finishStep: (ending: Ending, context: CallContext) => Effect.Effect<void, AgentFailure>
  readonly reflect: (context: CallContext) => Effect.Effect<void, AgentFailure>
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

export const playerOf = (name: string, agent: Agent, episode: Episode<NamedEnv>): Player => {
  const id = `${episode.id}/${name}`
  const recording = makeRecording({ ...episode, groupId: episode.groupId ?? episode.id }, id)
  const samplingSeed = stream(episode.samplingSeed, "player", name).uint32()
  const received: Received = { observation: null, feedback: [], info: undefined }
  const seeded = <A, E>(effect: Effect.Effect<A, E>) => Effect.provideService(effect, SamplingSeed, samplingSeed)

  let isNew = true
  const player: Player = {
    name,
    agent,
    recording,
    samplingSeed,
    received,
    input: { _tag: "Observation", text: "" },
    pending: null,
    observation: () => received.observation ?? "",
    turnTo: (tools) => {
      const text = player.observation()
      player.input = isNew ? firstInput(text, tools) : { _tag: "Observation", text }
      isNew = false
    },
    acted: (action) => {
      player.pending = action
      received.observation = null
    },
    finishStep: (ending, context) =>
      Effect.gen(function* () {
        const { pending } = player
        const { observation, info } = received
        const feedback = merged(received.feedback)
        player.pending = null
        received.feedback.length = 0
        received.info = undefined
        const { terminated, truncated } = ending
        const envStep = { observation, feedback, terminated, truncated, ...(info === undefined ? {} : { info }) }
        if (pending === null) {
          // Before the player's first action, record a step only if there is a score.
          if (feedback.score === 0) return
          const turnId = recording.beginTurn()
          const noAction = { turnId, agentStepIds: [], observation: "", action: "", actionReward: 0 }
          return yield* recording.envStep({ ...noAction, envStep, ending })
        }
        const { action, reward: actionReward, ...rest } = pending
        yield* agent
          .observe({ action, observation, feedback: agent.training ? feedback : null, done: terminated || truncated })
          .pipe(seeded, Effect.provideService(CallContext, context))
        yield* recording.envStep({ ...rest, action, actionReward, envStep, ending })
      }),
    reflect: (context) => seeded(reflect(agent, recording, context)),
  }
  return player
}
