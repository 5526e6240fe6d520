/**
 * What happened when agents met an env, step by step, as plain data: a line of JSON a rollout.
 *
 * A turn is what an agent does between two of the env's observations: any number of `AgentStep`s (each a call of the
 * model), of which the last may lead to an `EnvironmentStep`. What an agent asks its model when all is over, to look
 * back, is a turn of its own behind the others. Ids are made of the rollout's id and counters, so the same seed gives
 * the same file.
 */
import { Schema } from "effect"
import { ModelCall, ToolResult } from "../agent/Agent.ts"
import { type LmUsage, noUsage } from "../lm/Chat.ts"
import { Feedback } from "../task/Feedback.ts"

export const TruncationReason = Schema.Literals(["max_steps", "env", "max_seq_len"])
export type TruncationReason = typeof TruncationReason.Type

/**
 * How an episode ended, or what a step had to do with it. `terminated` is the env's word (or the protocol's, where a
 * failed parse ends the episode); `truncated` means that it was cut off from outside of the task, and `truncationReason`
 * by whom. At most one of the two is true, and there is a reason exactly where something was truncated.
 */
export const Ending = Schema.Struct({
  terminated: Schema.Boolean,
  truncated: Schema.Boolean,
  truncationReason: Schema.NullOr(TruncationReason),
})
export type Ending = typeof Ending.Type

/** Of a step after which there are others. */
export const goesOn: Ending = { terminated: false, truncated: false, truncationReason: null }
/** Of the last step, where the task came to its end. */
export const terminated: Ending = { terminated: true, truncated: false, truncationReason: null }
/** Of the last step, where it was cut off. */
export const truncatedBy = (truncationReason: TruncationReason): Ending => ({
  terminated: false,
  truncated: true,
  truncationReason,
})

/** A call of the model, with its place in the episode. */
export const AgentStep = Schema.TaggedStruct("AgentStep", {
  /** `{rollout}/{index}`. */
  id: Schema.String,
  /** Among all steps of the rollout, from 0. */
  index: Schema.Int,
  turnId: Schema.String,
  /** The step of a parent rollout that this rollout was delegated by; null in a rollout of its own. */
  parentId: Schema.NullOr(Schema.String),
  call: ModelCall,
  /** What tools that are not the agent's own answered. */
  toolResults: Schema.Array(ToolResult),
  /** Of a parse that failed; what a good parse is worth is in the env step that it led to. */
  reward: Schema.Finite,
  // Of the last step alone, where the env wasn't stepped any more.
  ...Ending.fields,
})
export type AgentStep = typeof AgentStep.Type

/** Gives the feedback that replaced an observation, if a completion that was meant for the env held no action; else null. */
export const parseFailureOf = ({
  call: { target, parsed },
}: Pick<AgentStep, "call">): Extract<ModelCall["parsed"], { readonly _tag: "Failed" }> | null =>
  target === "env" && parsed?._tag === "Failed" ? parsed : null

/** What the env made of an action. */
export const EnvironmentStep = Schema.TaggedStruct("EnvironmentStep", {
  id: Schema.String,
  index: Schema.Int,
  turnId: Schema.String,
  /** The call of the model whose action it was; null for an env that is stepped by somebody without a model. */
  sourceAgentStepId: Schema.NullOr(Schema.String),
  /** All calls of its turn. */
  agentStepIds: Schema.Array(Schema.String),
  observation: Schema.String,
  action: Schema.String,
  /** What was seen then: at the end of an episode, too, whichever way it ended. */
  nextObservation: Schema.NullOr(Schema.String),
  feedback: Feedback,
  /** The env's score and what the parser gave. */
  reward: Schema.Finite,
  ...Ending.fields,
  info: Schema.optionalKey(Schema.Record(Schema.String, Schema.Unknown)),
})
export type EnvironmentStep = typeof EnvironmentStep.Type

export const Step = Schema.Union([AgentStep, EnvironmentStep])
export type Step = typeof Step.Type

export const RolloutMeta = Schema.Struct({
  envId: Schema.String,
  envType: Schema.String,
  agent: Schema.String,
  model: Schema.NullOr(Schema.String),
  /** Of the env's chance. */
  envSeed: Schema.Int,
  /** Of the model's sampling. */
  samplingSeed: Schema.Int,
  /** Rollouts of the same task, to be compared with each other. */
  groupId: Schema.NullOr(Schema.String),
  /** The rollout that delegated to this one. */
  parentRolloutId: Schema.NullOr(Schema.String),
  /** Its depth below the first one: 0 for that. */
  depth: Schema.Int,
  /** Which of several players. */
  player: Schema.NullOr(Schema.String),
  tags: Schema.Record(Schema.String, Schema.String),
})
export type RolloutMeta = typeof RolloutMeta.Type

export const Rollout = Schema.Struct({
  id: Schema.String,
  meta: RolloutMeta,
  steps: Schema.Array(Step),
  /** Of the env's steps, and of the parses that failed. */
  totalReward: Schema.Finite,
  /** Env steps. */
  length: Schema.Int,
  ending: Ending,
})
export type Rollout = typeof Rollout.Type

/** The rewards of all steps: each counts once. */
export const totalReward = (steps: ReadonlyArray<Step>): number => steps.reduce((sum, { reward }) => sum + reward, 0)

/** Adds up the calls to the language model in these rollouts. */
export const usageOf = (rollouts: Iterable<Rollout>): LmUsage => {
  let { calls, retries, inputTokens, outputTokens } = noUsage
  for (const { steps } of rollouts) {
    for (const step of steps) {
      if (step._tag !== "AgentStep") continue
      const { usage, attempts } = step.call.completion
      calls++
      retries += attempts - 1
      inputTokens += usage.inputTokens
      outputTokens += usage.outputTokens
    }
  }
  return { calls, retries, inputTokens, outputTokens }
}
