/**
 * Makes a rollout from a conversation that another program recorded: its messages in order, and which of them a model wrote.
 * A message without calls of tools is an action, and the user's next message is the env's answer to it. These are pure functions.
 */
import type { ToolResult } from "../agent/Agent.ts"
import { type AgentStep, type EnvironmentStep, notEnded, type Rollout, terminated } from "../episode/Rollout.ts"
import { asMessage, type ChatMessage, type Completion, type ToolSpec } from "../lm/Chat.ts"
import { growBy, type PromptBudget, spend } from "./promptBudget.ts"
import { toolMessage } from "./toolMessage.ts"

/** A message of a prompt, or a completion of the model with the results of the tools that it called. */
export type ForeignEntry =
  | { readonly _tag: "Message"; readonly message: ChatMessage }
  | {
      readonly _tag: "Completion"
      readonly completion: Completion
      readonly results: ReadonlyArray<ToolResult>
      /** The ids of the conversations of sub-agents that the model started with this completion. */
      readonly delegated?: ReadonlyArray<string>
    }

interface ForeignConversation {
  readonly id: string
  readonly task: { readonly id: string; readonly type: string }
  readonly agent: string
  readonly model: string | null
  readonly tools: ReadonlyArray<ToolSpec>
  readonly entries: ReadonlyArray<ForeignEntry>
  /** The score of the whole episode; null if it is unknown. */
  readonly reward: number | null
  /** The right answer; null if there is none. */
  readonly target: string | null
  /** The rollout that delegated this one, and the id of its step. */
  readonly parent?: { readonly rollout: Rollout; readonly stepId: string | null }
}

interface Recording {
  readonly source: ForeignConversation
  readonly conversation: Array<ChatMessage>
  readonly budget: PromptBudget
  readonly steps: Array<AgentStep | EnvironmentStep>
  /** The ids of the steps in the current turn. */
  inTurn: Array<string>
  turns: number
  observation: string
}

/**
 * Makes the rollout, and returns with it the step that started each conversation of a sub-agent, by that one's id. Throws a
 * `FormatError` if the prompts are too long.
 */
export const foreignRollout = (source: ForeignConversation) => {
  const budget = { conversation: 0, spent: 0 }
  const recording: Recording = { source, budget, conversation: [], steps: [], inTurn: [], turns: 0, observation: "" }
  const delegated = new Map<string, string>()
  for (const [at, entry] of source.entries.entries()) {
    if (entry._tag === "Message") {
      tell(recording, [entry.message])
      if (entry.message.role === "user") recording.observation = entry.message.content
      continue
    }
    const step = addCall(recording, entry, source.entries.at(at + 1))
    for (const id of entry.delegated ?? []) delegated.set(id, step)
  }
  endLast(recording)
  return { rollout: rolloutOf(recording), delegated }
}

/** Adds messages to the conversation. */
const tell = ({ conversation, budget }: Recording, messages: ReadonlyArray<ChatMessage>): void => {
  growBy(budget, messages)
  for (const message of messages) conversation.push(message)
}

/** Adds a call, and the env's step if the completion is an action. Returns the id of the call's step. */
const addCall = (
  recording: Recording,
  { completion, results }: Extract<ForeignEntry, { readonly _tag: "Completion" }>,
  next: ForeignEntry | undefined,
): string => {
  const { source, conversation, steps, inTurn, observation } = recording
  const { id, tools, parent } = source
  spend(recording.budget, id, tools)
  const turnId = `${id}/turn/${recording.turns}`
  const stepId = `${id}/${steps.length}`
  const callsTools = completion.toolCalls.length > 0 || results.length > 0
  const isAction = !callsTools && next?._tag !== "Completion"
  const { content } = completion
  steps.push({
    _tag: "AgentStep",
    id: stepId,
    index: steps.length,
    turnId,
    parentId: parent?.stepId ?? null,
    call: {
      purpose: "action",
      target: targetOf({ callsTools, isAction }),
      loopIndex: inTurn.length,
      messages: [...conversation],
      ...(tools.length === 0 ? {} : { tools }),
      completion,
      toolResults: [],
      parsed: isAction ? { _tag: "Parsed", action: content, reward: 0 } : null,
      incomplete: false,
    },
    toolResults: results,
    reward: 0,
    ...notEnded,
  })
  inTurn.push(stepId)
  tell(recording, [asMessage(completion), ...results.map(toolMessage)])
  if (!isAction) return stepId
  const answer = next?._tag === "Message" && next.message.role === "user" ? next.message.content : null
  steps.push({
    _tag: "EnvironmentStep",
    id: `${id}/${steps.length}`,
    index: steps.length,
    turnId,
    sourceAgentStepId: stepId,
    agentStepIds: inTurn,
    observation,
    action: content,
    nextObservation: answer,
    feedback: { score: 0, target: null, message: "" },
    reward: 0,
    ...notEnded,
  })
  recording.inTurn = []
  recording.turns++
  return stepId
}

const targetOf = ({ callsTools, isAction }: { readonly callsTools: boolean; readonly isAction: boolean }) => {
  if (callsTools) return "external"
  return isAction ? "env" : "internal"
}

/** Gives the episode's score to the last step, and ends the episode with it. */
const endLast = ({ source, steps }: Recording): void => {
  const last = steps.at(-1)
  if (last === undefined) return
  const reward = source.reward ?? 0
  steps[steps.length - 1] =
    last._tag === "AgentStep"
      ? { ...last, reward, ...terminated }
      : { ...last, reward, feedback: { score: reward, target: source.target, message: "" }, ...terminated }
}

const rolloutOf = ({ source, steps }: Recording): Rollout => {
  const { id, task, agent, model, reward, parent } = source
  return {
    id,
    meta: {
      envId: task.id,
      envType: task.type,
      agent,
      model,
      envSeed: 0,
      samplingSeed: 0,
      groupId: null,
      parentRolloutId: parent?.rollout.id ?? null,
      depth: parent === undefined ? 0 : parent.rollout.meta.depth + 1,
      player: null,
      tags: {},
    },
    steps,
    totalReward: steps.length === 0 ? 0 : (reward ?? 0),
    length: steps.filter(({ _tag }) => _tag === "EnvironmentStep").length,
    ending: steps.length === 0 ? notEnded : terminated,
  }
}
