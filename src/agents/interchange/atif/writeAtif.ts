/**
 * Converts rollouts to ATIF trajectories. Every call of the model becomes a step of the agent, with its tool calls, their
 * results, tokens and log-probabilities in ATIF's own fields. The messages of a prompt become steps where they first appear; an
 * agent whose prompts do not continue each other begins again with each prompt. All other facts are in `extra.effect_rl`.
 *
 * A rollout that another one delegated is embedded in that one's trajectory.
 */
import type { ToolResult } from "../../agent/Agent.ts"
import { isPlain } from "../../../base/config/plain.ts"
import { parsedJson } from "../../../base/text/text.ts"
import type { EpisodeRow } from "../../evaluate/rows.ts"
import { type AgentStep, type EnvironmentStep, type Rollout, usageOf } from "../../episode/Rollout.ts"
import { type ChatMessage, type Completion, noTokens, type ToolCall, type ToolSpec } from "../../lm/Chat.ts"
import { messagesOf, ownStep, textOf } from "./conversation.ts"
import { continues, resultsAfter, resultsInPrompt, sameMessages } from "./prompts.ts"
import {
  type AtifResult,
  type AtifStep,
  type AtifToolCall,
  type Metrics,
  type OwnStep,
  type OwnTrajectory,
  ownKey,
  type Trajectory,
  writtenVersion,
} from "./Trajectory.ts"

interface AtifOptions {
  /** The version of the agent's program, which ATIF requires. */
  readonly version: string
  /** Returns the row of a rollout's episode in the table of an evaluation, whose scores are then written, too. */
  readonly episodeOf?: (rollout: Rollout) => EpisodeRow | undefined
}

/** Converts rollouts to trajectories: one for each rollout that no other one of them delegated, in their order. */
export const trajectoriesOf = (rollouts: ReadonlyArray<Rollout>, options: AtifOptions): ReadonlyArray<Trajectory> => {
  const ids = new Set(rollouts.map(({ id }) => id))
  const isChild = ({ id, meta: { parentRolloutId } }: Rollout) =>
    parentRolloutId !== null && parentRolloutId !== id && ids.has(parentRolloutId)
  const children = Map.groupBy(rollouts.filter(isChild), ({ meta }) => meta.parentRolloutId ?? "")
  const written = new Set<string>()
  const convert = (rollout: Rollout): Trajectory => {
    written.add(rollout.id)
    const own = (children.get(rollout.id) ?? []).filter(({ id }) => !written.has(id))
    return trajectoryOf(rollout, own, own.map(convert), options)
  }
  return rollouts.filter((rollout) => !isChild(rollout)).map(convert)
}

/** A message of a rollout, which the model wrote in it (`isCompletion`), or which was part of a prompt. */
interface ToldMessage {
  readonly message: ChatMessage
  readonly isCompletion: boolean
}

/** Returns the messages of a rollout in their order, each once. An agent without a model has its observations and actions. */
export const conversationOf = (rollout: Rollout): ReadonlyArray<ToldMessage> =>
  rollout.steps.length === 0 ? [] : stepsOf(rollout, [], new Map()).flatMap(toldBy)

const toldBy = (step: AtifStep): ReadonlyArray<ToldMessage> => {
  const isCopied = step.is_copied_context === true
  if (isCopied && step.source !== "agent") return []
  const role = step.source === "agent" ? "assistant" : step.source
  const isUnseen = ownStep(step.extra)?.unseen === true
  const messages: ReadonlyArray<ChatMessage> = isUnseen ? [{ role, content: textOf(step.message) }] : messagesOf(step)
  return messages.map((message) => ({ message, isCompletion: message.role === "assistant" && !isCopied }))
}

/** Makes the trajectory of one rollout. `delegated` are the rollouts that it delegated, with their trajectories. */
const trajectoryOf = (
  rollout: Rollout,
  delegated: ReadonlyArray<Rollout>,
  embedded: ReadonlyArray<Trajectory>,
  { version, episodeOf }: AtifOptions,
): Trajectory => {
  const { id, meta, totalReward, length, ending } = rollout
  const episode = meta.parentRolloutId === null ? episodeOf?.(rollout) : undefined
  const tools = toolsOf(rollout)
  const steps = stepsOf(rollout, tools, Map.groupBy(delegated, parentStepOf))
  const { inputTokens, outputTokens } = usageOf([rollout])
  const own: OwnTrajectory = { id, meta, totalReward, length, ending, ...(episode === undefined ? {} : { episode }) }
  return {
    schema_version: writtenVersion,
    ...(meta.depth === 0 ? { session_id: id } : {}),
    trajectory_id: id,
    agent: {
      name: meta.agent,
      version,
      ...(meta.model === null ? {} : { model_name: meta.model }),
      ...(tools.length === 0
        ? {}
        : { tool_definitions: tools.map((tool) => ({ type: "function", function: { ...tool } })) }),
    },
    steps,
    final_metrics: {
      total_prompt_tokens: inputTokens,
      total_completion_tokens: outputTokens,
      total_steps: steps.length,
      extra: { reward: totalReward, ...(episode === undefined ? {} : { scores: episode.scores }) },
    },
    extra: { [ownKey]: own },
    ...(embedded.length === 0 ? {} : { subagent_trajectories: embedded }),
  }
}

/** Returns the id of the step that delegated a rollout. */
const parentStepOf = ({ steps }: Rollout): string | null => {
  const call = steps.find((step) => step._tag === "AgentStep")
  return call?.parentId ?? null
}

/** Lists the different tools that the model could call in a rollout. */
const toolsOf = ({ steps }: Rollout): ReadonlyArray<ToolSpec> => {
  const byText = new Map<string, ToolSpec>()
  for (const step of steps) {
    for (const tool of (step._tag === "AgentStep" ? step.call.tools : undefined) ?? []) {
      byText.set(JSON.stringify(tool), tool)
    }
  }
  return [...byText.values()]
}

/** The steps so far, without their numbers, and the conversation that they give. */
interface Writing {
  readonly steps: Array<Omit<AtifStep, "step_id">>
  conversation: ReadonlyArray<ChatMessage>
  /** The texts of all messages so far. */
  readonly seen: Set<string>
}

const stepsOf = (
  { steps }: Rollout,
  tools: ReadonlyArray<ToolSpec>,
  delegated: ReadonlyMap<string | null, ReadonlyArray<Rollout>>,
): ReadonlyArray<AtifStep> => {
  const writing: Writing = { steps: [], conversation: [], seen: new Set() }
  const lastCall = steps.findLastIndex((step) => step._tag === "AgentStep" && step.call.purpose === "action")
  for (const [at, step] of steps.entries()) {
    if (step._tag === "AgentStep") {
      const next = steps.at(at + 1)
      const env = next?._tag === "EnvironmentStep" ? next : undefined
      const answer = env !== undefined && at >= lastCall ? env : undefined
      const promptResults = resultsInPrompt(step, { steps, at })
      addCall(writing, step, { tools, env, answer, promptResults, delegated: delegated.get(step.id) ?? [] })
    } else if (steps.at(at - 1)?._tag !== "AgentStep" || at === 0) addEnvStep(writing, step)
  }
  if (writing.steps.length === 0) {
    writing.steps.push({ source: "system", message: "The episode has no steps.", extra: extraOf({ unseen: true }) })
  }
  return writing.steps.map((step, at) => ({ step_id: at + 1, ...step }))
}

const extraOf = (own: OwnStep): NonNullable<AtifStep["extra"]> => ({ [ownKey]: own })

/** Adds the action of an agent that called no model, after the observation that it got. */
const addEnvStep = ({ steps }: Writing, env: EnvironmentStep): void => {
  const extra = extraOf({ unseen: true })
  steps.push({ source: "user", message: env.observation, extra })
  steps.push({
    source: "agent",
    message: env.action,
    observation: { results: [{ content: answerOf(env) }] },
    llm_call_count: 0,
    extra: extraOf({ unseen: true, env }),
  })
}

/** Returns the text with which an env answered an action. */
const answerOf = ({ nextObservation, feedback }: EnvironmentStep): string => nextObservation ?? feedback.message

interface CallContext {
  readonly tools: ReadonlyArray<ToolSpec>
  /** The env step that follows the call. */
  readonly env: EnvironmentStep | undefined
  /** The same, if no later prompt shows the env's answer. */
  readonly answer: EnvironmentStep | undefined
  /** The results of the call's tools that only the next prompt has. */
  readonly promptResults: ReadonlyArray<ToolResult>
  readonly delegated: ReadonlyArray<Rollout>
}

/** Adds the new messages of a call's prompt, and its completion with the results of tools. */
const addCall = (writing: Writing, step: AgentStep, context: CallContext): void => {
  const { _tag, call, toolResults, ...ofStep } = step
  const { completion, purpose, target, loopIndex, parsed, incomplete } = call
  addPrompt(writing, call.messages)
  const isExact = sameMessages(writing.conversation, call.messages)
  const texts = context.tools.map((tool) => JSON.stringify(tool))
  const own: OwnStep = {
    call: {
      ...ofStep,
      purpose,
      target,
      loopIndex,
      parsed,
      incomplete,
      finishReason: completion.finishReason,
      attempts: completion.attempts,
      ownResults: call.toolResults.length,
      ...(context.promptResults.length === 0 ? {} : { promptResults: context.promptResults.length }),
      ...(call.tools === undefined ? {} : { tools: call.tools.map((tool) => texts.indexOf(JSON.stringify(tool))) }),
    },
    ...(isExact ? {} : { messages: call.messages }),
    ...(context.env === undefined ? {} : { env: context.env }),
  }
  const toolCalls = toolCallsOf(completion.toolCalls)
  const results = withReferences(
    [...call.toolResults, ...toolResults, ...context.promptResults].map((result) => resultOf(result, toolCalls)),
    context.delegated,
  )
  if (context.answer !== undefined) results.push({ content: answerOf(context.answer) })
  const metrics = metricsOf(completion)
  const written: Omit<AtifStep, "step_id"> = {
    source: "agent",
    model_name: completion.model,
    message: completion.content,
    ...(toolCalls.length === 0 ? {} : { tool_calls: toolCalls }),
    ...(results.length === 0 ? {} : { observation: { results } }),
    ...(metrics === undefined ? {} : { metrics }),
    ...(completion.attempts === 0 ? {} : { llm_call_count: 1 }),
    extra: extraOf(own),
  }
  writing.steps.push(written)
  writing.conversation = [...call.messages, ...remembered(writing, messagesOf({ step_id: 1, ...written }))]
}

const remembered = ({ seen }: Writing, messages: ReadonlyArray<ChatMessage>): ReadonlyArray<ChatMessage> => {
  for (const message of messages) seen.add(JSON.stringify(message))
  return messages
}

/** Adds the messages of a prompt that the conversation does not have yet: all of them, if the prompt does not continue it. */
const addPrompt = (writing: Writing, prompt: ReadonlyArray<ChatMessage>): void => {
  const { conversation, steps, seen } = writing
  const isContinued = continues(prompt, conversation)
  const messages = isContinued ? prompt.slice(conversation.length) : prompt
  const begun = isContinued ? conversation : []
  const added: Array<Omit<AtifStep, "step_id">> = []
  for (let at = 0; at < messages.length; at++) {
    const message = messages[at]
    // The result of a tool belongs to the step before it; without one, the call keeps its whole prompt.
    if (message.role === "tool") continue
    const isCopied = message.role === "assistant" || seen.has(JSON.stringify(message))
    added.push({
      source: message.role === "assistant" ? "agent" : message.role,
      message: message.content,
      ...(message.role === "assistant" ? withTools(message.toolCalls ?? [], resultsAfter(messages, at)) : {}),
      ...(isCopied ? { is_copied_context: true } : {}),
      ...(added.length === 0 && !isContinued ? { extra: extraOf({ restart: true }) } : {}),
    })
  }
  steps.push(...added)
  // Nothing tells a reader that the prompt begins again: then the call keeps its whole prompt.
  if (!isContinued && added.length === 0) return
  const told = added.flatMap((step) => messagesOf({ step_id: 1, ...step }))
  writing.conversation = [...begun, ...remembered(writing, told)]
}

const withTools = (
  calls: ReadonlyArray<ToolCall>,
  results: ReadonlyArray<ToolResult>,
): Pick<AtifStep, "tool_calls" | "observation"> => {
  const tool_calls = toolCallsOf(calls)
  return {
    ...(tool_calls.length === 0 ? {} : { tool_calls }),
    ...(results.length === 0
      ? {}
      : { observation: { results: results.map((result) => resultOf(result, tool_calls)) } }),
  }
}

/** Converts calls of tools. Ids are unique in a step of ATIF, and arguments are objects: `extra` has those that are not. */
const toolCallsOf = (calls: ReadonlyArray<ToolCall>): ReadonlyArray<AtifToolCall> => {
  const ids = new Set<string>()
  return calls.map(({ id, name, arguments: text }, at) => {
    const unique = ids.has(id) ? `${id}#${at}` : id
    ids.add(unique)
    const value = parsedJson(text)
    const given = isPlain(value) ? value : {}
    const isUsual = JSON.stringify(given) === text
    const own = { ...(unique === id ? {} : { id }), ...(isUsual ? {} : { arguments: text }) }
    return {
      tool_call_id: unique,
      function_name: name,
      arguments: given,
      ...(Object.keys(own).length === 0 ? {} : { extra: { [ownKey]: own } }),
    }
  })
}

const resultOf = (
  { toolCallId, toolName, content, isError }: ToolResult,
  calls: ReadonlyArray<AtifToolCall>,
): AtifResult => {
  const call = calls.find(({ tool_call_id }) => tool_call_id === toolCallId)
  const own = {
    ...(call === undefined ? { toolCallId } : {}),
    ...(call?.function_name === toolName ? {} : { toolName }),
    ...(isError ? { isError } : {}),
  }
  return {
    ...(call === undefined ? {} : { source_call_id: toolCallId }),
    content,
    ...(Object.keys(own).length === 0 ? {} : { extra: { [ownKey]: own } }),
  }
}

/** Adds references to delegated rollouts: each to the result of its own call if the numbers agree, else all to the last. */
const withReferences = (results: ReadonlyArray<AtifResult>, delegated: ReadonlyArray<Rollout>): Array<AtifResult> => {
  const references = delegated.map(({ id }) => ({ trajectory_id: id }))
  if (references.length === 0) return [...results]
  if (results.length === 0) return [{ subagent_trajectory_ref: references }]
  return results.map((result, at) => {
    const own = references.length === results.length ? [references[at]] : at === results.length - 1 ? references : []
    return own.length === 0 ? result : { ...result, subagent_trajectory_ref: own }
  })
}

const metricsOf = ({ usage, tokens }: Completion): Metrics | undefined => {
  const { inputTokens, outputTokens, reasoningTokens } = usage
  const { texts, weights } = tokens ?? {}
  const own = { ...(texts === undefined ? {} : { texts }), ...(weights === undefined ? {} : { weights }) }
  const extra = {
    ...(reasoningTokens === noTokens.reasoningTokens ? {} : { reasoning_tokens: reasoningTokens }),
    ...(Object.keys(own).length === 0 ? {} : { [ownKey]: own }),
  }
  const metrics: Metrics = {
    ...(inputTokens === noTokens.inputTokens ? {} : { prompt_tokens: inputTokens }),
    ...(outputTokens === noTokens.outputTokens ? {} : { completion_tokens: outputTokens }),
    ...(tokens === null ? {} : { prompt_token_ids: tokens.promptIds, completion_token_ids: tokens.completionIds }),
    ...(tokens === null || tokens.logprobs === null ? {} : { logprobs: tokens.logprobs }),
    ...(Object.keys(extra).length === 0 ? {} : { extra }),
  }
  return Object.keys(metrics).length === 0 ? undefined : metrics
}
