/** Records the steps of a rollout while an episode is played. The protocols use it. */
import { Effect } from "effect"
import type { Agent, ModelCall, ToolResult } from "../../agent/Agent.ts"
import type { TextEnv, TextStep } from "../../task/TextEnv.ts"
import type { Episode } from "../Protocol.ts"
import { type AgentStep, type Ending, notEnded, type Rollout, type Step, terminated, truncatedBy } from "../Rollout.ts"

/** Gives the ending of an env step; if the env reports both `terminated` and `truncated`, only `terminated` is true. */
export const endingOf = (step: Pick<TextStep, "terminated" | "truncated">, isLast: boolean): Ending => {
  if (step.terminated) return terminated
  if (step.truncated === true) return truncatedBy("env")
  return isLast ? truncatedBy("max_steps") : notEnded
}

/** Records the steps of a rollout, with their positions and ids, and reports them to the episode's `onStep`. */
export interface Recording {
  readonly id: string
  /** Begins a turn, and gives its id. */
  readonly beginTurn: () => string
  readonly call: (step: {
    readonly turnId: string
    readonly call: ModelCall
    readonly toolResults?: ReadonlyArray<ToolResult>
    readonly reward?: number
    readonly ending?: Ending
  }) => Effect.Effect<AgentStep>
  readonly envStep: (step: {
    readonly turnId: string
    readonly agentStepIds: ReadonlyArray<string>
    readonly observation: string
    readonly action: string
    readonly actionReward: number
    readonly envStep: TextStep
    readonly ending: Ending
  }) => Effect.Effect<void>
  /** Gives the id of the next step. */
  readonly nextId: () => string
  /** Gives the number of calls of the model so far. */
  readonly calls: () => number
  readonly finish: (agent: Pick<Agent, "type" | "model">, ending: Ending, player?: string) => Rollout
}

/** The properties of an env that a rollout records. */
export type NamedEnv = Pick<TextEnv, "id" | "type">

export const makeRecording = (episode: Episode<NamedEnv>, id: string = episode.id): Recording => {
  const steps: Array<Step> = []
  const { onStep } = episode
  let turns = 0
  let total = 0
  let length = 0
  const add = <S extends Step>(step: S): Effect.Effect<S> => {
    steps.push(step)
    total += step.reward
    return onStep === undefined ? Effect.succeed(step) : Effect.as(onStep(step), step)
  }
  const nextId = (): string => `${id}/${steps.length}`
  return {
    id,
    nextId,
    calls: () => steps.length - length,
    beginTurn: () => `${id}/turn/${turns++}`,
    call: ({ turnId, call, toolResults = [], reward = 0, ending = notEnded }) =>
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
    envStep: ({ turnId, agentStepIds, observation, action, actionReward, envStep, ending }) => {
      length++
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
        reward: envStep.feedback.score + actionReward,
        ...ending,
        ...(envStep.info === undefined ? {} : { info: envStep.info }),
      })
    },
    finish: ({ type, model }, ending, player) => ({
      id,
      meta: {
        envId: episode.env.id,
        envType: episode.env.type,
        agent: type,
        model,
        envSeed: episode.envSeed,
        samplingSeed: episode.samplingSeed,
        groupId: episode.groupId ?? null,
        parentRolloutId: episode.parent?.rolloutId ?? null,
        depth: episode.parent?.depth ?? 0,
        player: player ?? null,
        tags: episode.tags ?? {},
      },
      steps,
      totalReward: total,
      length,
      ending,
    }),
  }
}
