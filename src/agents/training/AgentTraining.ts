/**
 * Defines a training of a language-model agent that is ready to start. `Runtime.ts` makes it from values,
 * `fromConfig.ts` from a config, and `execute.ts` runs it.
 */
import type { Agent } from "../agent/Agent.ts"
import type { DecodeOptions, Plain } from "../../base/config/Config.ts"
import type { Price } from "../lm/LmConfig.ts"
import type { SpendingCounter } from "../lm/middleware/budgeted.ts"
import type { TaskSet } from "../task/TaskSet.ts"
import type { SentTraining } from "../../run/spread/SentTraining.ts"
import type { RunSettings } from "./RuntimeConfig.ts"

/** A training that other machines can load, and the settings on which its episodes depend. */
interface Sendable {
  readonly training: SentTraining
  readonly identity: Plain
}

/** A training of an agent that is ready to start: its settings, the agent and its tasks. */
export interface AgentTraining {
  readonly settings: RunSettings
  readonly agent: Agent
  readonly train: TaskSet | null
  readonly validation: TaskSet | null
  /** The agent and the data sets in the form of `config.yaml`. */
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
  /** Counts the calls, tokens and cost for the budget, including those before a resume; undefined if there is no budget. */
  readonly spent?: SpendingCounter
  /** The price of the agent's calls; undefined if it has none. */
  readonly price?: Price | undefined
  /** The description with which other machines load this training; undefined if they cannot. */
  readonly sent?: SentTraining | undefined
  /** The same description, with the settings that influence episodes. `execute.ts` adds them. */
  readonly sendable?: Sendable | undefined
  /** The source of each setting (a file and line, or an override), for error messages. */
  readonly from: DecodeOptions
}

/** Returns the number of training tasks, one episode each, including those that `start_episode_index` skips. */
export const totalEpisodesOf = ({ settings, train }: AgentTraining): number =>
  Math.min(train?.size ?? 0, settings.runtime.maxEnvsToVisit ?? Infinity)
