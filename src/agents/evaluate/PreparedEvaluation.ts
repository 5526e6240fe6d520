/** Defines an evaluation that is ready to start, and what it has recorded so far. */
import type { Plain } from "../../base/config/Config.ts"
import type { Part } from "../../run/store/FileTree.ts"
import type { OwnPlace } from "../../run/store/RunStore.ts"
import type { Protocol } from "../episode/Protocol.ts"
import type { Price } from "../lm/LmConfig.ts"
import type { SpendingCounter } from "../lm/middleware/budgeted.ts"
import type { TaskSet } from "../task/TaskSet.ts"
import type { EvaluationSettings } from "./EvaluationConfig.ts"
import type { EpisodeRow } from "./rows.ts"
import type { Scorer } from "./Scorer.ts"

/** An agent to evaluate. */
export interface Contestant {
  readonly name: string
  /** Whether the config names the agent. If not, the name is derived from the agent's type. */
  readonly isNamed: boolean
  readonly type: string
  readonly model: string | null
  readonly protocol: Protocol
  readonly price: Price | undefined
}

/** An evaluation that is ready to start: its settings, tasks, agents and scorers. */
export interface PreparedEvaluation {
  readonly settings: EvaluationSettings
  readonly tasks: TaskSet
  readonly contestants: ReadonlyArray<Contestant>
  readonly scorers: ReadonlyArray<Scorer>
  /** The config with all defaults, which is saved as `config.yaml`. */
  readonly effective: Plain
  /** The settings on which the episodes depend. They must be the same when the evaluation is resumed. */
  readonly identity: Plain
  /** The rows of another evaluation to compare with; null if there is none. */
  readonly other: ReadonlyArray<EpisodeRow> | null
  /** Whether every call of a model is written to a file. */
  readonly logCalls: boolean
  /** The counter of the calls, tokens and cost of all agents. When an evaluation is resumed, the counter continues. */
  readonly spent: SpendingCounter
  /** The name of the config in error messages. */
  readonly source: string
  readonly place: OwnPlace | undefined
}

/** The episodes of an evaluation in progress. */
export interface EvaluationProgress {
  /** The rows of the recorded episodes: first those of the first agent, then those of the second, and so on. */
  readonly rows: Array<EpisodeRow>
  /**
   * The episodes that an earlier process played, by `keyOf` of `journal.ts`, with their positions in the journal, from which they must be
   * read again.
   */
  readonly earlier: Map<string, Part>
}
