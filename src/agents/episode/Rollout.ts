/**
 * Defines a rollout, the record of an episode step by step, as plain data. In files it is one line of JSON.
 *
 * A turn is everything that an agent does between two observations: any number of `AgentStep`s (each is a call of the model);
 * the last one may lead to an `EnvironmentStep`. A reflection after the end of the episode is one more turn. Ids consist of
 * the rollout's id and counters, so the same seed gives the same file.
 */
import { Schema } from "effect"
import { ModelCall, ToolResult } from "../agent/Agent.ts"
import { type LmUsage, noUsage } from "../lm/Chat.ts"
import { Feedback } from "../task/Feedback.ts"

/**
 * The limit that cut off an episode (the protocol's steps or calls of the model; the env's own limit) or a training sample
 * (its length).
 */
export const TruncationReason = Schema.Literals(["max_steps", "env", "max_seq_len"])
export type TruncationReason = typeof TruncationReason.Type

/**
 * Describes how an episode ended, or in a step, whether it ended with this step. `terminated` means that the env ended it (or
 * the protocol, if a failed parse ends episodes). `truncated` means that a limit cut it off, and `truncationReason` names the
 * limit; otherwise that is null. At most one of the two flags is true.
 */
export const RolloutEnding = Schema.Struct({
  terminated: Schema.Boolean,
  truncated: Schema.Boolean,
  truncationReason: Schema.NullOr(TruncationReason),
})
export type RolloutEnding = typeof RolloutEnding.Type

/** The ending of a step that does not end the episode. */
export const notEnded: RolloutEnding = { terminated: false, truncated: false, truncationReason: null }
/** The ending of a last step with which the env ended the episode. */
export const terminated: RolloutEnding = { terminated: true, truncated: false, truncationReason: null }
/** Makes the ending of a last step at which a limit cut the episode off. */
export const truncatedBy = (truncationReason: TruncationReason): RolloutEnding => ({
  terminated: false,
  truncated: true,
  truncationReason,
})

/** A call of the model, with its position in the episode. */
export const AgentStep = Schema.TaggedStruct("AgentStep", {
  /** The id of the step: the id of the rollout, a slash, and the `index`. */
  id: Schema.String,
  /** The position among all steps of the rollout, counted from 0. */
  index: Schema.Int,
  turnId: Schema.String,
  /** The id of the step, in the parent rollout, that delegated this rollout; null if there is none. */
  parentId: Schema.NullOr(Schema.String),
  call: ModelCall,
  /** The results of external tools, which the agent does not run itself. */
  toolResults: Schema.Array(ToolResult),
  /**
   * The penalty if the answer gave no action, otherwise 0. The parser's reward for an action is part of the env step's
   * reward.
   */
  reward: Schema.Finite,
  // These differ from `notEnded` only if the episode ends with this step, without another env step.
  ...RolloutEnding.fields,
})
export type AgentStep = typeof AgentStep.Type

/** Returns the parser's failure if a completion was meant for the env but gave no action; otherwise null. */
export const parseFailureOf = ({
  call: { target, parsed },
}: Pick<AgentStep, "call">): Extract<ModelCall["parsed"], { readonly _tag: "Failed" }> | null =>
  target === "env" && parsed?._tag === "Failed" ? parsed : null

/** A step of the env, which an action of the agent causes. */
export const EnvironmentStep = Schema.TaggedStruct("EnvironmentStep", {
  id: Schema.String,
  index: Schema.Int,
  turnId: Schema.String,
  /** The id of the step whose completion holds the action; null for an agent without a model. */
  sourceAgentStepId: Schema.NullOr(Schema.String),
  /** The ids of all steps of the turn in which the agent called the model. */
  agentStepIds: Schema.Array(Schema.String),
  observation: Schema.String,
  action: Schema.String,
  /** The observation after the step, even if the episode ended with it; null if there is none. */
  nextObservation: Schema.NullOr(Schema.String),
  feedback: Feedback,
  /** The env's score plus the reward of the agent's parser. */
  reward: Schema.Finite,
  ...RolloutEnding.fields,
  info: Schema.optionalKey(Schema.Record(Schema.String, Schema.Unknown)),
})
export type EnvironmentStep = typeof EnvironmentStep.Type

export const RolloutStep = Schema.Union([AgentStep, EnvironmentStep])
export type RolloutStep = typeof RolloutStep.Type

export const RolloutMeta = Schema.Struct({
  envId: Schema.String,
  envType: Schema.String,
  agent: Schema.String,
  model: Schema.NullOr(Schema.String),
  /** The seed of the env's randomness. */
  envSeed: Schema.Int,
  /** The seed of the model's sampling. */
  samplingSeed: Schema.Int,
  /** The id of the group of rollouts that are compared with each other; null if there is no group. */
  groupId: Schema.NullOr(Schema.String),
  /** The id of the rollout that delegated this one; null if it was not delegated. */
  parentRolloutId: Schema.NullOr(Schema.String),
  /** The depth of delegation: 0 if it was not delegated. */
  depth: Schema.Int,
  /** The player's name if the env has several players; otherwise null. */
  player: Schema.NullOr(Schema.String),
  tags: Schema.Record(Schema.String, Schema.String),
})
export type RolloutMeta = typeof RolloutMeta.Type

export const Rollout = Schema.Struct({
  id: Schema.String,
  meta: RolloutMeta,
  steps: Schema.Array(RolloutStep),
  /** The sum of the rewards of all steps. */
  totalReward: Schema.Finite,
  /** The number of env steps. */
  length: Schema.Int,
  ending: RolloutEnding,
})
export type Rollout = typeof Rollout.Type

/** Adds up the rewards of steps. */
export const totalReward = (steps: ReadonlyArray<RolloutStep>): number =>
  steps.reduce((sum, { reward }) => sum + reward, 0)

/**
 * Adds up the scores that the env gave. Unlike the total reward, this leaves out the rewards and penalties of the agent's
 * parser.
 */
export const scoreOf = ({ steps }: Pick<Rollout, "steps">): number =>
  steps.reduce((sum, step) => sum + (step._tag === "EnvironmentStep" ? step.feedback.score : 0), 0)

/** Adds up the calls, retries and tokens of the language model in these rollouts. */
export const usageOf = (rollouts: Iterable<Rollout>): LmUsage => {
  let { calls, retries, inputTokens, outputTokens } = noUsage
  for (const { steps } of rollouts) {
    for (const step of steps) {
      if (step._tag !== "AgentStep") continue
      const { usage, attempts } = step.call.completion
      // The answer of an agent that asked its model in a way of its own counts as no call, but its tokens count.
      calls += Math.min(1, attempts)
      retries += Math.max(0, attempts - 1)
      inputTokens += usage.inputTokens
      outputTokens += usage.outputTokens
    }
  }
  return { calls, retries, inputTokens, outputTokens }
}
