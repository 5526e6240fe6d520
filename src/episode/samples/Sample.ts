import { Schema } from "effect"
import { TruncationReason } from "../Rollout.ts"

const Fields = Schema.Struct({
  /** The turn's id; with `#1`, `#2` … behind it for the parts of one that was split. */
  id: Schema.String,
  rolloutId: Schema.String,
  turnId: Schema.String,
  groupId: Schema.NullOr(Schema.String),
  parentRolloutId: Schema.NullOr(Schema.String),
  depth: Schema.Int,
  player: Schema.NullOr(Schema.String),
  purpose: Schema.Literals(["action", "reflection"]),
  inputIds: Schema.Array(Schema.Int),
  /** The mask of the tokens: 1 for a token that the model wrote, 0 for a token of its prompt. */
  actionMask: Schema.Array(Schema.Literals([0, 1])),
  /** The log probabilities of the tokens: as many as tokens, 0 where the mask is 0; null if the server gave none. */
  logprobs: Schema.NullOr(Schema.Array(Schema.Finite)),
  /**
   * The advantage of each token, if the trainer has computed it: as many as tokens, 0 where the mask is 0. Without it,
   * every token that the model wrote in the turn has the advantage `credit` times `weight`.
   */
  advantages: Schema.optionalKey(Schema.Array(Schema.Finite)),
  /** The places of the model's calls among the rollout's steps, and their ids. */
  stepIndices: Schema.Array(Schema.Int),
  stepIds: Schema.Array(Schema.String),
  actionTargets: Schema.Array(Schema.Literals(["internal", "external", "env"])),
  hasEnvStep: Schema.Boolean,
  /** The last completion couldn't be acted upon. */
  parseFailed: Schema.Boolean,
  /** One of the completions was cut off by the model's own limit, which is no truncation. */
  incomplete: Schema.Boolean,
  /** Of the turn's last step, as are `credit` and `weight`. */
  reward: Schema.Finite,
  credit: Schema.Finite,
  weight: Schema.Finite,
  /** The episode ended with this turn, by the task. */
  terminated: Schema.Boolean,
  /** The episode was cut off with this turn, or this sample at `maxSeqLen`. */
  truncated: Schema.Boolean,
  /** Of the episode as a whole. */
  episodeTerminated: Schema.Boolean,
  episodeTruncated: Schema.Boolean,
  /** Of the episode; or `max_seq_len`, where it wasn't truncated but this sample was. */
  truncationReason: Schema.NullOr(TruncationReason),
  seqLenTruncated: Schema.Boolean,
  /** In tokens, before the cut and after it. */
  seqLenOriginal: Schema.Int,
  seqLenRetained: Schema.Int,
  tags: Schema.Record(Schema.String, Schema.String),
})

/** What a model can be trained on: the tokens of a turn, which of them it said itself, and what that was worth. */
export const Sample = Fields.pipe(
  // Files have these names in most languages' trainers.
  Schema.encodeKeys({
    rolloutId: "rollout_id",
    turnId: "turn_id",
    groupId: "group_id",
    parentRolloutId: "parent_rollout_id",
    inputIds: "input_ids",
    actionMask: "action_mask",
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

/** Rollouts that no samples can be made of; the message is one line, which names the turn. */
export class SampleError extends Schema.TaggedError<SampleError>()("SampleError", {
  rollout: Schema.String,
  turn: Schema.String,
  step: Schema.String,
  /**
   * - `not_append_only`: a prompt doesn't begin with what came before it in the turn
   * - `no_tokens`: the server gave none, and there is no tokenizer
   * - `logprobs`: they are missing, of some calls or of all, or of another length than the completion
   * - `not_finite`: a weight or credit that is missing, or no finite number
   */
  reason: Schema.Literals(["not_append_only", "no_tokens", "logprobs", "not_finite"]),
  message: Schema.String,
}) {}
