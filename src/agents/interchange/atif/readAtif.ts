/**
 * Converts an ATIF trajectory to rollouts: exactly the rollouts that `writeAtif.ts` wrote, or for other programs' trajectories,
 * rollouts of their messages. Hidden reasoning, times, costs and pictures of these are left out.
 */
import type { Effect } from "effect"
import type { FormatError } from "../../../base/formats/FormatError.ts"
import { isPlain } from "../../../base/config/plain.ts"
import type { ConfigError } from "../../../base/config/Config.ts"
import { checkJson } from "../../../base/config/jsonFile.ts"
import type { EpisodeRow } from "../../evaluate/rows.ts"
import type { Rollout, RolloutStep } from "../../episode/Rollout.ts"
import type { ChatMessage, Completion, TokenTrace, ToolSpec } from "../../lm/Chat.ts"
import { type ForeignEntry, foreignRollout } from "../foreignRollout.ts"
import { growBy, spend, withinBudget } from "../promptBudget.ts"
import { answersOf, messagesOf, ownIn, ownStep, textOf, toolCallsOf, toolResultsOf } from "./conversation.ts"
import { type AtifStep, OwnMetrics, type OwnStep, OwnTrajectory, Trajectory } from "./Trajectory.ts"

/** Decodes a trajectory from parsed JSON; `path` names its file in errors. */
export const trajectoryOf = (value: unknown, path: string): Effect.Effect<Trajectory, ConfigError> =>
  checkJson(Trajectory, value, path)

/** What a trajectory of another program does not say. */
interface TaskOfTrajectory {
  readonly id: string
  readonly type: string
  /** The score of the episode; null if it is unknown. */
  readonly reward: number | null
}

const ownTrajectory = ownIn(OwnTrajectory)
const ownMetrics = ownIn(OwnMetrics)

/** Returns the row of the episode in an evaluation's table; undefined if the trajectory has none. */
export const rowIn = ({ extra }: Trajectory): EpisodeRow | undefined => ownTrajectory(extra)?.episode

/** Returns the rollout of a trajectory, and after it those of its sub-agents. Fails if its prompts are too long. */
export const rolloutsOf = (
  trajectory: Trajectory,
  task: TaskOfTrajectory,
): Effect.Effect<ReadonlyArray<Rollout>, FormatError> => withinBudget(() => allRollouts(trajectory, task))

const allRollouts = (trajectory: Trajectory, task: TaskOfTrajectory): ReadonlyArray<Rollout> => {
  const own = ownTrajectory(trajectory.extra)
  if (own === undefined) return foreignRollouts(trajectory, { ...task, name: task.id })
  const { id, meta, totalReward, length, ending } = own
  const rollout = { id, meta, steps: stepsOf(trajectory, id), totalReward, length, ending }
  return [rollout, ...(trajectory.subagent_trajectories ?? []).flatMap((child) => allRollouts(child, task))]
}

/* Trajectories that we wrote */

const stepsOf = ({ agent, steps }: Trajectory, id: string): ReadonlyArray<RolloutStep> => {
  const tools = toolsOf(agent.tool_definitions ?? [])
  const read: Array<RolloutStep> = []
  let conversation: Array<ChatMessage> = []
  const budget = { conversation: 0, spent: 0 }
  const begin = (messages: ReadonlyArray<ChatMessage>): void => {
    conversation = [...messages]
    budget.conversation = 0
    growBy(budget, messages)
  }
  for (const step of steps) {
    const own = ownStep(step.extra)
    if (own?.restart === true) begin([])
    if (own?.call !== undefined) {
      if (own.messages !== undefined) begin(own.messages)
      const used = own.call.tools?.flatMap((at) => tools.at(at) ?? [])
      spend(budget, id, used ?? [])
      read.push(agentStepOf(step, own.call, { messages: [...conversation], used }))
    }
    const messages = messagesOf(step)
    growBy(budget, messages)
    for (const message of messages) conversation.push(message)
    if (own?.env !== undefined) read.push(own.env)
  }
  return read
}

const agentStepOf = (
  step: AtifStep,
  own: NonNullable<OwnStep["call"]>,
  {
    messages,
    used,
  }: { readonly messages: ReadonlyArray<ChatMessage>; readonly used: ReadonlyArray<ToolSpec> | undefined },
): RolloutStep => {
  const { purpose, target, loopIndex, parsed, incomplete, finishReason, attempts, ...ofStep } = own
  const { ownResults, promptResults = 0, tools: _, ...rest } = ofStep
  const results = toolResultsOf(step)
  return {
    _tag: "AgentStep",
    ...rest,
    call: {
      purpose,
      target,
      loopIndex,
      parsed,
      incomplete,
      messages,
      ...(used === undefined ? {} : { tools: used }),
      completion: { ...completionOf(step, ""), finishReason, attempts },
      toolResults: results.slice(0, ownResults),
    },
    toolResults: results.slice(ownResults, Math.max(0, results.length - promptResults)),
  }
}

/** Returns the tools that a list of OpenAI's tool definitions describes. */
const toolsOf = (definitions: ReadonlyArray<{ readonly [key: string]: unknown }>): ReadonlyArray<ToolSpec> =>
  definitions.flatMap((definition) => {
    const { name, description, parameters } = isPlain(definition.function) ? definition.function : definition
    if (typeof name !== "string") return []
    return {
      name,
      description: typeof description === "string" ? description : "",
      parameters: isPlain(parameters) ? parameters : { type: "object" },
    }
  })

const completionOf = (step: AtifStep, model: string): Completion => {
  const { prompt_tokens, completion_tokens, extra } = step.metrics ?? {}
  const reasoning = extra?.reasoning_tokens
  const toolCalls = toolCallsOf(step)
  return {
    content: textOf(step.message),
    toolCalls,
    finishReason: toolCalls.length === 0 ? "stop" : "tool_calls",
    usage: {
      inputTokens: prompt_tokens ?? 0,
      outputTokens: completion_tokens ?? 0,
      reasoningTokens: typeof reasoning === "number" && Number.isSafeInteger(reasoning) ? reasoning : 0,
    },
    tokens: tokensOf(step),
    model: step.model_name ?? model,
    attempts: 1,
  }
}

const tokensOf = ({ metrics }: AtifStep): TokenTrace | null => {
  const { prompt_token_ids, completion_token_ids, logprobs, extra } = metrics ?? {}
  if (prompt_token_ids === undefined || prompt_token_ids === null) return null
  if (completion_token_ids === undefined || completion_token_ids === null) return null
  return {
    promptIds: prompt_token_ids,
    completionIds: completion_token_ids,
    logprobs: logprobs ?? null,
    ...ownMetrics(extra),
  }
}

/* Trajectories of other programs */

interface ForeignTask extends TaskOfTrajectory {
  /** The id of the rollout. */
  readonly name: string
  readonly parent?: { readonly rollout: Rollout; readonly stepId: string | null }
}

const foreignRollouts = (trajectory: Trajectory, task: ForeignTask): ReadonlyArray<Rollout> => {
  const { agent, steps } = trajectory
  const model = agent.model_name ?? steps.find(({ model_name }) => typeof model_name === "string")?.model_name ?? null
  const { rollout, delegated } = foreignRollout({
    id: task.name,
    task,
    agent: agent.name,
    model,
    tools: toolsOf(agent.tool_definitions ?? []),
    entries: steps.flatMap((step) => entriesOf(step, model ?? "unknown")),
    reward: task.reward,
    target: null,
    ...(task.parent === undefined ? {} : { parent: task.parent }),
  })
  const children = (trajectory.subagent_trajectories ?? []).flatMap((child, at) => {
    const id = child.trajectory_id ?? ""
    const parent = { rollout, stepId: delegated.get(id) ?? null }
    return foreignRollouts(child, { ...task, reward: null, name: `${task.name}/sub/${at}`, parent })
  })
  return [rollout, ...children]
}

/** Tells whether a model wrote the message of a step, so that it is no context and no action of a program. */
const isOfModel = ({ source, is_copied_context, llm_call_count }: AtifStep): boolean =>
  source === "agent" && is_copied_context !== true && llm_call_count !== 0

const entriesOf = (step: AtifStep, model: string): ReadonlyArray<ForeignEntry> => {
  if (!isOfModel(step)) return messagesOf(step).map((message) => ({ _tag: "Message", message }))
  const references = (step.observation?.results ?? []).flatMap((result) => result.subagent_trajectory_ref ?? [])
  return [
    {
      _tag: "Completion",
      completion: completionOf(step, model),
      results: toolResultsOf(step),
      delegated: references.flatMap(({ trajectory_id }) => trajectory_id ?? []),
    },
    ...answersOf(step).map((text): ForeignEntry => ({ _tag: "Message", message: { role: "user", content: text } })),
  ]
}
