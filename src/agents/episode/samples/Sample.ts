/** Defines the training samples that are made from rollouts, and the error of this conversion. */
import { Schema } from "effect"
import { EncodedExperts } from "../../../base/formats/routedExperts.ts"
import { TruncationReason } from "../Rollout.ts"

const Fields = Schema.Struct({
  /** The id of the turn. If a turn became several samples, their ids have the suffixes `#1`, `#2` … */
  id: Schema.String,
  rolloutId: Schema.String,
  turnId: Schema.String,
  groupId: Schema.NullOr(Schema.String),
  parentRolloutId: Schema.NullOr(Schema.String),
  depth: Schema.Int,
  player: Schema.NullOr(Schema.String),
  purpose: Schema.Literals(["action", "reflection"]),
  inputIds: Schema.Array(Schema.Int),
  /** A number for each token: 1 if the model wrote it, 0 if it belongs to a prompt. */
  actionMask: Schema.Array(Schema.Literals([0, 1])),
  /** The log-probability of each token, and 0 where the mask is 0; null if the server gave none. */
  logprobs: Schema.NullOr(Schema.Array(Schema.Finite)),
  /** The experts that the model chose for the first tokens, which are all except the last one; left out if they are not known. */
  routedExperts: Schema.optionalKey(EncodedExperts),
  /**
   * The advantage of each token, and 0 where the mask is 0; left out if the trainer has not computed it. Without it,
   * every token that the model wrote in the turn has the advantage `credit` times `weight`.
   */
  advantages: Schema.optionalKey(Schema.Array(Schema.Finite)),
  /** The positions in the rollout of the steps (calls of the model) whose tokens are in this sample. */
  stepIndices: Schema.Array(Schema.Int),
  stepIds: Schema.Array(Schema.String),
  actionTargets: Schema.Array(Schema.Literals(["internal", "external", "env"])),
  hasEnvStep: Schema.Boolean,
  /** Whether the last completion could not be parsed. */
  parseFailed: Schema.Boolean,
  /** Whether a completion was cut off at the model's limit of tokens; this does not count as truncation. */
  incomplete: Schema.Boolean,
  /** The reward of the turn's last step. */
  reward: Schema.Finite,
  /** The part of the rewards that is assigned to the turn's last step, by the option `credit`. */
  credit: Schema.Finite,
  /** A factor by which trainers multiply the credit. */
  weight: Schema.Finite,
  /** Whether the env ended the episode with this turn. */
  terminated: Schema.Boolean,
  /** Whether the episode was truncated with this turn, or this sample was cut off at `maxSeqLen`. */
  truncated: Schema.Boolean,
  /** Whether the env ended the episode, with this turn or a later one. */
  episodeTerminated: Schema.Boolean,
  /** Whether a limit cut off the episode, with this turn or a later one. */
  episodeTruncated: Schema.Boolean,
  /** The reason why the episode was truncated; `max_seq_len` if only this sample was cut off. */
  truncationReason: Schema.NullOr(TruncationReason),
  /** Whether this sample was cut off at `maxSeqLen`. */
  seqLenTruncated: Schema.Boolean,
  /** The number of tokens before this sample was cut off. */
  seqLenOriginal: Schema.Int,
  /** The number of tokens in this sample. */
  seqLenRetained: Schema.Int,
  tags: Schema.Record(Schema.String, Schema.String),
})

/** A training sample of a model: the tokens of a turn, a mask of those that the model wrote, and their credit. */
export const Sample = Fields.pipe(
  // Trainers in other languages expect snake_case names.
  Schema.encodeKeys({
    rolloutId: "rollout_id",
    turnId: "turn_id",
    groupId: "group_id",
    parentRolloutId: "parent_rollout_id",
    inputIds: "input_ids",
    actionMask: "action_mask",
    routedExperts: "routed_experts",
    stepIndices: "turn_step_indices",
    stepIds: "turn_step_ids",
    actionTargets: "turn_action_targets",
    hasEnvStep: "turn_has_env_step",
    parseFailed: "parse_failed",
    episodeTerminated: "episode_terminated",
    episodeTruncated: "episode_truncated",
    truncationReason: "truncation_reason",
    seqLenTruncated: "seq_len_truncated",
    seqLenOriginal: "seq_len_original",
    seqLenRetained: "seq_len_retained",
  }),
)
export type Sample = typeof Sample.Type

/** Reports that a rollout cannot be converted to samples. The message is one line that names the turn. */
export class SampleError extends Schema.TaggedError<SampleError>()("SampleError", {
  rollout: Schema.String,
  turn: Schema.String,
  step: Schema.String,
  /**
   * - `not_append_only`: a prompt does not begin with the earlier tokens of the turn
   * - `no_tokens`: the server gave no tokens, and there is no tokenizer
   * - `logprobs`: log-probabilities are missing for some or all calls, or their number differs from the completion's
   * - `routed_experts`: the experts are missing for some calls, or are not those of all tokens that the model has read
   * - `not_finite`: a weight or credit is missing or not a finite number
   */
  reason: Schema.Literals(["not_append_only", "no_tokens", "logprobs", "routed_experts", "not_finite"]),
  message: Schema.String,
}) {}
