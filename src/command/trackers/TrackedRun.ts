/** Describes a run that has ended in the form that experiment trackers need: MLflow, and Weights & Biases. */
import type { SettingTree } from "../../run/record/hparams.ts"

/** The metrics of one step, or some of them. */
export interface TrackedEvent {
  readonly step: number
  /** The time in seconds since 1970. */
  readonly wallSeconds: number
  readonly metrics: Readonly<Record<string, number>>
}

export interface TrackedRun {
  /** The run's name without its settings, time and seed: runs that can be compared have the same one. */
  readonly experiment: string
  readonly name: string
  readonly state: "finished" | "failed" | "stopped"
  readonly startedAtMillis: number
  readonly endedAtMillis: number
  readonly settings: SettingTree
  /** The commit of the code that made the run. */
  readonly commit: string | undefined
  /** The digest of the run's results. */
  readonly digest: string | undefined
  /** The metrics in the order in which the run logged them. */
  readonly events: ReadonlyArray<TrackedEvent>
  /** The files with the run's config, its results and its policy, by their names. */
  readonly files: Readonly<Record<string, Uint8Array>>
}
