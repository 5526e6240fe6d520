/** Keeps the state of one player in an episode with several players. `MultiAgentSync` uses it. */
import { Effect } from "effect"
import type { Agent, AgentInput } from "../../agent/Agent.ts"
import type { Feedback } from "../../task/Feedback.ts"
import type { MultiTextStep } from "../../task/MultiTextEnv.ts"
import type { CallContext } from "../../lm/Lm.ts"
import type { ToolSpec } from "../../lm/Chat.ts"
import { SamplingSeed } from "../../lm/middleware/seeded.ts"
import { stream } from "../../rng/Rng.ts"
import type { Episode } from "../Protocol.ts"
import { makeRecording, type NamedEnv, type TakenAction } from "./recording.ts"
import type { Ending } from "../Rollout.ts"
import { firstInput } from "./tools.ts"
import { observe, reflect } from "./turn.ts"

/** An action of a player, and the observation on which it was taken. */
export interface Pending extends TakenAction {
  readonly observation: string
}

interface PlayerState {
  /** The next input of the agent. */
  input: AgentInput
  /** The action for which the result is not complete yet. */
  pending: Pending | null
  /** The observation, feedback and info that the player has received since its last step. */
  observation: string | null
  feedback: Array<Feedback>
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

/** Makes one of several players: it keeps the state between the player's agent and the env. */
export const playerOf = (name: string, agent: Agent, episode: Episode<NamedEnv>) => {
  const recording = makeRecording({ ...episode, groupId: episode.groupId ?? episode.id }, `${episode.id}/${name}`)
  // Each player has its own seed, so that an agent that plays several players does not answer the same for all of them.
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
    /** Takes the player's part of a step's result. */
    receive: ({ observations, feedback, info }: Pick<MultiTextStep, "observations" | "feedback" | "info">): void => {
      if (Object.hasOwn(observations, name)) state.observation = observations[name]
      if (Object.hasOwn(feedback, name)) state.feedback.push(feedback[name])
      if (info !== undefined) state.info = info
    },
    /** Makes the observation the next input of the agent, the first time together with the tools. */
    turnTo: (tools: ReadonlyArray<ToolSpec>): void => {
      const text = state.observation ?? ""
      state.input = isNew ? firstInput(text, tools) : { _tag: "Observation", text }
      isNew = false
    },
    /** Stores the action until its result is complete. */
    acted: (action: Pending): void => {
      state.pending = action
      state.observation = null
    },
    /** Records the env step of the player's last action with its result. */
    finishStep: Effect.fnUntraced(function* (ending: Ending, context: CallContext) {
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
        // Before the player's first action, only a score is worth a step.
        const noAction = { turnId: recording.beginTurn(), agentStepIds: [], action: "", reward: 0 }
        yield* recording.envStep(noAction, "", envStep, ending)
      }
    }),
    reflect: (context: CallContext) => seeded(reflect(agent, recording, context)),
  }
}
export type Player = ReturnType<typeof playerOf>
