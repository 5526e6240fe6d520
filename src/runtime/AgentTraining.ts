/**
 * The value that `Runtime.ts` and `fromConfig.ts` prepare and `execute.ts` trains. Agents here ask a language model.
 */
import type { Agent } from "../agent/Agent.ts"
import type { DecodeOptions, Plain } from "../config/Config.ts"
import type { Spent } from "../lm/middleware/budgeted.ts"
import type { EpisodeFailure } from "../episode/Protocol.ts"
import type { RunError } from "../run/Run.ts"
import type { DatasetError, TaskSet } from "../task/TaskSet.ts"
import type { RunSettings } from "./RuntimeConfig.ts"

/** A training of an agent that is ready to start: its settings, the agent and its tasks. */
export interface AgentTraining {
  readonly settings: RunSettings
  readonly agent: Agent
  readonly train: TaskSet | null
  readonly validation: TaskSet | null
  /** The agent and the data sets, as `config.yaml` describes them. */
  readonly described: {
    readonly agent: Plain
    readonly trainDataset: Plain | null
    readonly validationDataset: Plain | null
  }
  /** The agent's settings that must be the same when the run is resumed. */
  readonly agentIdentity: Plain
  /** Warnings about the config. */
  readonly warnings?: ReadonlyArray<string>
  /** Whether every call of the model is written to a file below `llm_calls/`. */
  readonly logCalls: boolean
  /** The calls, tokens and cost that count against the budget, also from before a resume; undefined without a budget. */
  readonly spent?: Spent
  /** The places where settings were written, for error messages. */
  readonly from: DecodeOptions
}

/** The errors that end the loop of a training. */
export type LoopError = EpisodeFailure | DatasetError | RunError

/** The number of training episodes of the whole run, including those that it skips at the data set's beginning. */
export const totalEpisodesOf = ({ settings, train }: AgentTraining): number =>
  Math.min(train?.size ?? 0, settings.runtime.maxEnvsToVisit ?? Infinity)
