/** Makes the rollout of a session that has ended, from its calls and its reward. This is a pure function. */
import type { ModelCall } from "../../agent/Agent.ts"
import { parsed } from "../../agent/Parser.ts"
import {
  type AgentStep,
  type EnvironmentStep,
  notEnded,
  type Rollout,
  type RolloutEnding,
  type RolloutStep,
  terminated,
  totalReward,
  truncatedBy,
} from "../../episode/Rollout.ts"
import { placesOf, toolResultsIn } from "./conversations.ts"

/** A session that has ended. */
export interface RecordedSession {
  readonly id: string
  /** The name of the agent, as its program has given it. */
  readonly agent: string
  readonly groupId: string | null
  readonly tags: Readonly<Record<string, string>>
  readonly samplingSeed: number
  /** The calls that have an answer, in the order in which they began. */
  readonly calls: ReadonlyArray<ModelCall>
  readonly reward: number | null
  /** Whether the agent has ended the session, or at least given its reward; otherwise the session was cut off. */
  readonly isComplete: boolean
}

/**
 * Fills in what later calls show about each call: its position in its conversation, and the results of the tools that the
 * agent ran. The last answer counts as the agent's action.
 */
const withContext = (
  calls: ReadonlyArray<ModelCall>,
  places: ReturnType<typeof placesOf>,
): ReadonlyArray<ModelCall> => {
  const results = new Map(
    places.flatMap(({ continues }, index) =>
      continues === null ? [] : [[continues, toolResultsIn(calls[continues], calls[index])] as const],
    ),
  )
  return calls.map((call, index): ModelCall => {
    const isAction = index === calls.length - 1 && call.completion.toolCalls.length === 0
    return {
      ...call,
      loopIndex: places[index].position,
      toolResults: results.get(index) ?? [],
      ...(isAction ? { target: "env", parsed: parsed(call.completion.content) } : {}),
    }
  })
}

/** Returns the text of the first message of a user: what the agent was to do. */
const taskOf = ([first]: ReadonlyArray<ModelCall>): string =>
  first?.messages.find(({ role }) => role === "user")?.content ?? ""

/** Makes the env's step that holds the reward of a session, after its last call. */
const rewardStep = (
  { id, reward, calls }: RecordedSession & { readonly reward: number },
  steps: ReadonlyArray<AgentStep>,
  ending: RolloutEnding,
): EnvironmentStep => {
  const last = steps.at(-1)
  const turnId = last?.turnId ?? `${id}/turn/0`
  return {
    _tag: "EnvironmentStep",
    id: `${id}/${steps.length}`,
    index: steps.length,
    turnId,
    sourceAgentStepId: last?.id ?? null,
    agentStepIds: steps.filter((step) => step.turnId === turnId).map((step) => step.id),
    observation: taskOf(calls),
    action: last?.call.completion.content ?? "",
    nextObservation: null,
    feedback: { score: reward, target: null, message: "" },
    reward,
    ...ending,
  }
}

/** Makes the rollout. Each conversation is a turn; the reward is that of the env's only step. */
export const rolloutOf = (session: RecordedSession): Rollout => {
  const { id, agent, groupId, tags, samplingSeed, reward } = session
  const places = placesOf(session.calls)
  const calls = withContext(session.calls, places)
  const ending = session.isComplete ? terminated : truncatedBy("env")
  const agentSteps = calls.map((call, index): AgentStep => ({
    _tag: "AgentStep",
    id: `${id}/${index}`,
    index,
    turnId: `${id}/turn/${places[index].conversation}`,
    parentId: null,
    call,
    toolResults: [],
    reward: 0,
    ...(reward === null && index === calls.length - 1 ? ending : notEnded),
  }))
  const steps: ReadonlyArray<RolloutStep> =
    reward === null ? agentSteps : [...agentSteps, rewardStep({ ...session, reward, calls }, agentSteps, ending)]
  return {
    id,
    meta: {
      envId: id,
      envType: "gateway",
      agent,
      model: calls.at(-1)?.completion.model ?? null,
      envSeed: 0,
      samplingSeed,
      groupId,
      parentRolloutId: null,
      depth: 0,
      player: null,
      tags,
    },
    steps,
    totalReward: totalReward(steps),
    length: reward === null ? 0 : 1,
    ending,
  }
}
