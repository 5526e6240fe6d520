/** Records the steps of a rollout in memory while an episode is played. The protocols use it. */
import { Effect } from "effect"
import type { Agent } from "../../agent/Agent.ts"
import type { TextEnv, TextStep } from "../../task/TextEnv.ts"
import type { EpisodeToPlay } from "../Protocol.ts"
import type { AgentStep, RolloutEnding, EnvironmentStep, Rollout, RolloutStep } from "../Rollout.ts"
import { notEnded, terminated, truncatedBy } from "../Rollout.ts"

/**
 * Returns how the episode ended with an env step, if it did. `isLast` tells whether a limit ends the episode with this step.
 */
export const endingOf = (step: Pick<TextStep, "terminated" | "truncated">, isLast: boolean): RolloutEnding => {
  if (step.terminated) return terminated
  if (step.truncated === true) return truncatedBy("env")
  return isLast ? truncatedBy("max_steps") : notEnded
}

/** A call of the model to record. By default, `toolResults` is empty, `reward` is 0, and `ending` is `notEnded`. */
type RecordedCall = Pick<AgentStep, "turnId" | "call"> &
  Partial<Pick<AgentStep, "toolResults" | "reward">> & { readonly ending?: RolloutEnding }

/** The action with which an agent ended a turn; the env's step is recorded later. */
export interface TakenAction extends Pick<EnvironmentStep, "turnId" | "agentStepIds" | "action"> {
  /** The reward that the agent's parser gave for the form of the answer. */
  readonly reward: number
}

/** The properties of an env that a rollout records. */
type NamedEnv = Pick<TextEnv, "id" | "type">

const metaOf = (
  episode: EpisodeToPlay<NamedEnv>,
  { type, model }: Pick<Agent, "type" | "model">,
  player: string | null,
): Rollout["meta"] => ({
  envId: episode.env.id,
  envType: episode.env.type,
  agent: type,
  model,
  envSeed: episode.envSeed,
  samplingSeed: episode.samplingSeed,
  groupId: episode.groupId ?? null,
  parentRolloutId: episode.parent?.rolloutId ?? null,
  depth: episode.parent?.depth ?? 0,
  player,
  tags: episode.tags ?? {},
})

/** Makes the recording of one rollout. It gives each step a position and an id, and calls the episode's `onStep`. */
export const makeRecording = (episode: EpisodeToPlay<NamedEnv>, id: string = episode.id) => {
  const steps: Array<RolloutStep> = []
  const { onStep } = episode
  let turns = 0
  let total = 0
  let envSteps = 0
  const add = <S extends RolloutStep>(step: S): Effect.Effect<S> => {
    steps.push(step)
    total += step.reward
    return onStep === undefined ? Effect.succeed(step) : Effect.as(onStep(step), step)
  }
  const nextId = (): string => `${id}/${steps.length}`
  return {
    id,
    /** Returns the id of the next step. */
    nextId,
    /** Returns the number of calls of the model so far: all steps that are not env steps. */
    calls: () => steps.length - envSteps,
    /** Begins a turn, and returns its id. */
    beginTurn: () => `${id}/turn/${turns++}`,
    /** Records a call of the model. */
    call: ({ turnId, call, toolResults = [], reward = 0, ending = notEnded }: RecordedCall): Effect.Effect<AgentStep> =>
      add({
        _tag: "AgentStep",
        id: nextId(),
        index: steps.length,
        turnId,
        parentId: episode.parent?.stepId ?? null,
        call,
        toolResults,
        reward,
        ...ending,
      }),
    /** Records a step of the env, which answers the action that the agent took. */
    envStep: (
      { turnId, agentStepIds, action, reward }: TakenAction,
      observation: string,
      envStep: TextStep,
      ending: RolloutEnding,
    ): Effect.Effect<EnvironmentStep> => {
      envSteps++
      return add({
        _tag: "EnvironmentStep",
        id: nextId(),
        index: steps.length,
        turnId,
        sourceAgentStepId: agentStepIds.at(-1) ?? null,
        agentStepIds,
        observation,
        action,
        nextObservation: envStep.observation,
        feedback: envStep.feedback,
        reward: envStep.feedback.score + reward,
        ...ending,
        ...(envStep.info === undefined ? {} : { info: envStep.info }),
      })
    },
    /**
     * Marks the last step as the end, for a player whose last step was recorded before the episode ended. `onStep` has already
     * received it without the mark.
     */
    endLastStep: (ending: RolloutEnding): void => {
      const last = steps.at(-1)
      if (last !== undefined) steps[steps.length - 1] = { ...last, ...ending }
    },
    /** Returns the rollout of the steps so far. `player` is null in an env for one agent. */
    finish: (agent: Pick<Agent, "type" | "model">, ending: RolloutEnding, player: string | null = null): Rollout => ({
      id,
      meta: metaOf(episode, agent, player),
      steps,
      totalReward: total,
      length: envSteps,
      ending,
    }),
  }
}
export type EpisodeRecording = ReturnType<typeof makeRecording>
