/** Tells the alerts of a command about validations that the command does not record as a run of its own. */
import { Context, Effect } from "effect"
import type { AlertFacts } from "./deliver.ts"

/** The metrics of one step, by their names in TensorBoard, and facts about their run. */
export interface MetricsOfStep {
  readonly facts: Partial<Pick<AlertFacts, "run" | "seed">>
  readonly step: number
  readonly values: Readonly<Record<string, number>>
}

/** Passes metrics to the alerts of the command, which deliver those whose thresholds are passed. Without alerts, it does nothing. */
export const MetricAlerts = Context.Reference<(metrics: ReadonlyArray<MetricsOfStep>) => Effect.Effect<void>>(
  "effect-rl/cli/MetricAlerts",
  { defaultValue: () => () => Effect.void },
)
