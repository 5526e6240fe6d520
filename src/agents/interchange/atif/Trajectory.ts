/**
 * Defines a trajectory in the Agent Trajectory Interchange Format (ATIF), versions 1.0 to 1.8, and what we add to its `extra`
 * fields under the key `effect_rl`, so that a rollout can be read back as it was. `writeAtif.ts` and `readAtif.ts` convert.
 */
import { Schema } from "effect"
import { ParseResult } from "../../agent/Parser.ts"
import { EpisodeRow } from "../../evaluate/rows.ts"
import { AgentStep, EnvironmentStep, RolloutEnding, RolloutMeta } from "../../episode/Rollout.ts"
import { ChatMessage, FinishReason, TokenTrace } from "../../lm/Chat.ts"

/** The version that we write. Version 1.8 differs only in audio content, which we have none of. */
export const writtenVersion = "ATIF-v1.7"

/** A field that may be missing or null: many programs write all fields. */
const optional = <S extends Schema.Codec<unknown, unknown>>(schema: S) => Schema.optionalKey(Schema.NullOr(schema))

const Extra = optional(Schema.Record(Schema.String, Schema.Unknown))

/** A text, or since version 1.6 a list of parts, of which only those with `text` are texts. */
const Content = Schema.Union([
  Schema.String,
  Schema.Array(Schema.Struct({ type: Schema.String, text: optional(Schema.String) })),
])
export type Content = typeof Content.Type

const AtifToolCall = Schema.Struct({
  tool_call_id: Schema.String,
  function_name: Schema.String,
  arguments: Schema.Record(Schema.String, Schema.Unknown),
  extra: Extra,
})
export type AtifToolCall = typeof AtifToolCall.Type

const AtifResult = Schema.Struct({
  source_call_id: optional(Schema.String),
  content: optional(Content),
  subagent_trajectory_ref: optional(
    Schema.Array(
      Schema.Struct({
        trajectory_id: optional(Schema.String),
        session_id: optional(Schema.String),
        trajectory_path: optional(Schema.String),
        extra: Extra,
      }),
    ),
  ),
  extra: Extra,
})
export type AtifResult = typeof AtifResult.Type

const Metrics = Schema.Struct({
  prompt_tokens: optional(Schema.Int),
  completion_tokens: optional(Schema.Int),
  cached_tokens: optional(Schema.Int),
  cost_usd: optional(Schema.Finite),
  prompt_token_ids: optional(Schema.Array(Schema.Int)),
  completion_token_ids: optional(Schema.Array(Schema.Int)),
  logprobs: optional(Schema.Array(Schema.Finite)),
  extra: Extra,
})
export type Metrics = typeof Metrics.Type

export const AtifStep = Schema.Struct({
  step_id: Schema.Int,
  timestamp: optional(Schema.String),
  source: Schema.Literals(["system", "user", "agent"]),
  model_name: optional(Schema.String),
  reasoning_effort: optional(Schema.Union([Schema.String, Schema.Finite])),
  message: Content,
  reasoning_content: optional(Schema.String),
  tool_calls: optional(Schema.Array(AtifToolCall)),
  observation: optional(Schema.Struct({ results: Schema.Array(AtifResult) })),
  metrics: optional(Metrics),
  /** Whether the step is only context for later steps: nothing new, so nothing to train on. */
  is_copied_context: optional(Schema.Boolean),
  /** The number of calls of a model that the step stands for; 0 for an agent that acts without one. */
  llm_call_count: optional(Schema.Int),
  extra: Extra,
})
export type AtifStep = typeof AtifStep.Type

const ToolDefinition = Schema.Record(Schema.String, Schema.Unknown)

const fields = {
  schema_version: Schema.String,
  session_id: optional(Schema.String),
  trajectory_id: optional(Schema.String),
  agent: Schema.Struct({
    name: Schema.String,
    version: Schema.String,
    model_name: optional(Schema.String),
    tool_definitions: optional(Schema.Array(ToolDefinition)),
    extra: Extra,
  }),
  steps: Schema.Array(AtifStep),
  notes: optional(Schema.String),
  final_metrics: optional(
    Schema.Struct({
      total_prompt_tokens: optional(Schema.Int),
      total_completion_tokens: optional(Schema.Int),
      total_cached_tokens: optional(Schema.Int),
      total_cost_usd: optional(Schema.Finite),
      total_steps: optional(Schema.Int),
      extra: Extra,
    }),
  ),
  continued_trajectory_ref: optional(Schema.String),
  extra: Extra,
}

/** An agent's whole episode, with the trajectories of its sub-agents. */
export interface Trajectory extends Schema.Struct.Type<typeof fields> {
  readonly subagent_trajectories?: ReadonlyArray<Trajectory> | null
}
interface EncodedTrajectory extends Schema.Struct.Encoded<typeof fields> {
  readonly subagent_trajectories?: ReadonlyArray<EncodedTrajectory> | null
}
export const Trajectory: Schema.Codec<Trajectory, EncodedTrajectory> = Schema.Struct({
  ...fields,
  subagent_trajectories: optional(
    Schema.Array(Schema.suspend((): Schema.Codec<Trajectory, EncodedTrajectory> => Trajectory)),
  ),
})

/* What we add under the key `effect_rl` */

export const ownKey = "effect_rl"

/** The facts about a rollout for which ATIF has no place. */
export const OwnTrajectory = Schema.Struct({
  id: Schema.String,
  meta: RolloutMeta,
  totalReward: Schema.Finite,
  length: Schema.Int,
  ending: RolloutEnding,
  /** The row of the episode in an evaluation's table, with its scores; only in the first rollout of an episode. */
  episode: Schema.optionalKey(EpisodeRow),
})
export type OwnTrajectory = typeof OwnTrajectory.Type

/** The facts about a call of the model for which ATIF has no place. */
const { _tag: _1, call: _2, toolResults: _3, ...stepFields } = AgentStep.fields
const OwnCall = Schema.Struct({
  ...stepFields,
  purpose: Schema.Literals(["action", "reflection"]),
  target: Schema.Literals(["internal", "external", "env"]),
  loopIndex: Schema.Int,
  parsed: Schema.NullOr(ParseResult),
  incomplete: Schema.Boolean,
  finishReason: FinishReason,
  attempts: Schema.Int,
  /** How many of the results come from tools that the agent ran itself; these are the first ones. */
  ownResults: Schema.Int,
  /** How many of the results, the last ones, only the next prompt has; left out if it has none. */
  promptResults: Schema.optionalKey(Schema.Int),
  /** The positions of the call's tools in `tool_definitions`; left out if it had none. */
  tools: Schema.optionalKey(Schema.Array(Schema.Int)),
})

/** The fields that we add to a step. */
export const OwnStep = Schema.Struct({
  /** Whether the model's next prompt begins with this step, and with nothing before it. */
  restart: Schema.optionalKey(Schema.Boolean),
  /** Whether the step is not in any prompt. */
  unseen: Schema.optionalKey(Schema.Boolean),
  call: Schema.optionalKey(OwnCall),
  /** The prompt of the call, if the steps before it do not give it exactly. */
  messages: Schema.optionalKey(Schema.Array(ChatMessage)),
  /** The step of the env that follows the call. */
  env: Schema.optionalKey(EnvironmentStep),
})
export type OwnStep = typeof OwnStep.Type

/** The fields that we add to a tool call that ATIF cannot hold as it is. */
export const OwnToolCall = Schema.Struct({
  /** The id, if it is not unique in the step. */
  id: Schema.optionalKey(Schema.String),
  /** The text of the arguments, if it is not the usual JSON of an object. */
  arguments: Schema.optionalKey(Schema.String),
})

/** The fields that we add to the result of a tool. */
export const OwnResult = Schema.Struct({
  toolCallId: Schema.optionalKey(Schema.String),
  toolName: Schema.optionalKey(Schema.String),
  isError: Schema.optionalKey(Schema.Boolean),
})

/** The fields that we add to the metrics of a call. */
export const OwnMetrics = Schema.Struct({
  texts: TokenTrace.fields.texts,
  weights: TokenTrace.fields.weights,
})
