import { Effect } from "effect"
import type { Agent, ModelCall, ToolResult } from "../../agent/Agent.ts"
import type { TextEnv, TextStep } from "../../task/TextEnv.ts"
import type { Episode } from "../Protocol.ts"
import { type AgentStep, type Ending, goesOn, type Rollout, type Step, terminated, truncatedBy } from "../Rollout.ts"

/** What an env says of a step, as an ending: where it says both, it is over. */
export const endingOf = (step: Pick<TextStep, "terminated" | "truncated">, isLast: boolean): Ending => {
  if (step.terminated) return terminated
  if (step.truncated === true) return truncatedBy("env")
  return isLast ? truncatedBy("max_steps") : goesOn
}

/** A rollout in the making: gives steps their places and ids, tells of them, and adds up. */
export interface Recording {
  readonly id: string
  /** The id of a new turn. */
  readonly beginTurn: () => string
  readonly call: (about: {
    readonly turnId: string
    readonly call: ModelCall
    readonly toolResults?: ReadonlyArray<ToolResult>
    readonly reward?: number
    readonly ending?: Ending
  }) => Effect.Effect<AgentStep>
  readonly acted: (about: {
    readonly turnId: string
    readonly agentStepIds: ReadonlyArray<string>
    readonly observation: string
    readonly action: string
    readonly actionReward: number
    readonly led: TextStep
    readonly ending: Ending
  }) => Effect.Effect<void>
  /** The id that the next step gets. */
  readonly nextId: () => string
  /** How often the model was asked. */
  readonly calls: () => number
  readonly finish: (agent: Pick<Agent, "type" | "model">, ending: Ending, player?: string) => Rollout
}

/** What a recording needs to know of an env. */
export type Named = Pick<TextEnv, "id" | "type">

export const recording = (episode: Episode<Named>, id: string = episode.id): Recording => {
  const steps: Array<Step> = []
  const { onStep } = episode
  let turns = 0
  let total = 0
  let length = 0
  const told = <S extends Step>(step: S): Effect.Effect<S> => {
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
    call: ({ turnId, call, toolResults = [], reward = 0, ending = goesOn }) =>
      told({
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
    acted: ({ turnId, agentStepIds, observation, action, actionReward, led, ending }) => {
      length++
      return told({
        _tag: "EnvironmentStep",
        id: nextId(),
        index: steps.length,
        turnId,
        sourceAgentStepId: agentStepIds.at(-1) ?? null,
        agentStepIds,
        observation,
        action,
        nextObservation: led.observation,
        feedback: led.feedback,
        reward: led.feedback.score + actionReward,
        ...ending,
        ...(led.info === undefined ? {} : { info: led.info }),
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
