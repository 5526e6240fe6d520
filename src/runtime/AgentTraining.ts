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
  /** The agent's settings that a resumed run must share with the run that was saved. */
  readonly agentIdentity: Plain
  /** Warnings about the config. */
  readonly warnings?: ReadonlyArray<string>
  /** Whether every call of the model is written to a file below `llm_calls/`. */
  readonly logCalls: boolean
  /** The usage that counts against the budget, if there is one. A resumed run continues the count. */
  readonly spent?: Spent
  readonly from: DecodeOptions
}

/** The errors that end the loop of a training. */
export type LoopError = EpisodeFailure | DatasetError | RunError

/** The number of training episodes, including those that are skipped. */
export const totalEpisodesOf = ({ settings, train }: AgentTraining): number =>
  Math.min(train?.size ?? 0, settings.runtime.maxEnvsToVisit ?? Infinity)
