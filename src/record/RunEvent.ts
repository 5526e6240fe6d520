/**
 * What trainers and runtimes tell of a run, in the order in which it happened. Sinks turn it into files, a progress
 * line, metrics; who emits it knows none of them.
 */
export type RunEvent =
  | RunStarted
  | EpisodeEnded
  | UpdateApplied
  | ValidationEnded
  | CheckpointSaved
  | Note
  | Warning
  | RunEnded

export interface RunStarted {
  readonly _tag: "RunStarted"
  readonly name: string
  readonly env: string
  readonly algorithm: string
  /** Program → the device that runs it. */
  readonly devices: Readonly<Record<string, string>>
  readonly seed: number
  readonly totalSteps: number
  readonly numEnvs: number
  /** The step that a resumed run goes on from. */
  readonly resumedFromStep: number | null
  readonly config: Readonly<Record<string, unknown>>
}

export interface EpisodeEnded {
  readonly _tag: "EpisodeEnded"
  /** Env steps of the run so far. */
  readonly step: number
  /** Counted over the run, from 0. */
  readonly episode: number
  /** Which of the envs. */
  readonly env: number
  readonly return: number
  readonly length: number
  readonly terminated: boolean
  readonly truncated: boolean
  readonly truncationReason: "env" | "max_steps" | null
}

export interface UpdateApplied {
  readonly _tag: "UpdateApplied"
  readonly step: number
  /** Counted from 1. */
  readonly update: number
  /** By the names that CleanRL made common: `losses/policy_loss`, `charts/learning_rate`. */
  readonly metrics: Readonly<Record<string, number>>
}

export interface ValidationEnded {
  readonly _tag: "ValidationEnded"
  readonly step: number
  /** Training episodes that had ended. */
  readonly seenEpisodes: number
  readonly episodes: ReadonlyArray<{
    readonly return: number
    readonly length: number
    readonly terminated: boolean
    readonly truncated: boolean
  }>
  readonly meanReturn: number
  /** Population deviation. */
  readonly stdReturn: number
}

export interface CheckpointSaved {
  readonly _tag: "CheckpointSaved"
  readonly step: number
  readonly path: string
}

export interface Note {
  readonly _tag: "Note"
  readonly message: string
}

export interface Warning {
  readonly _tag: "Warning"
  readonly message: string
}

export interface RunEnded {
  readonly _tag: "RunEnded"
  readonly step: number
  readonly episodes: number
  readonly reason: "finished" | "interrupted" | "failed"
  /** What failed. */
  readonly message: string | null
}
