import { isPlain, type Plain } from "../../../base/config/plain.ts"
import { kindOf } from "../../../run/RunSpec.ts"

/** Returns why a run with this config never records a metric; undefined if it may record it. This is a pure function. */
export const neverRecorded = (config: Plain, metric: string): string | undefined => {
  const kind = kindOf(config)
  const isOfValidation = metric.startsWith("validation/")
  if (kind === "gateway") return "a gateway records no metrics"
  if ((kind === "evaluation" || kind === "prompts") && !isOfValidation)
    return `${kind === "evaluation" ? "an evaluation" : "a run that learns prompts"} records only validation/score, validation/score_std and validation/episodic_length, and no ${metric}`
  const { validation } = config
  if (kind === "training" && isOfValidation && isPlain(validation) && validation.everySteps === 0)
    return "the training has no validations: its setting validation.every_steps is 0"
  return undefined
}
