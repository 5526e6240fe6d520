/**
 * Describes the validation of an agent as an evaluation. `validate.ts` plays it in this process, and `spread/` in chunks on
 * other machines.
 */
import { cores } from "../episode/cores.ts"
import * as Evaluate from "../evaluate/Evaluate.ts"
import type { LmError } from "../lm/LmError.ts"
import type { AgentTraining } from "./AgentTraining.ts"

/**
 * Returns the validation after `seen` training episodes; undefined if there are no validation tasks. It is played by clones
 * of the agent that cannot write its memory. Episodes in which the model gave no answer after all retries are added to
 * `unanswered`.
 */
export const validationOf = (
  { settings, agent, validation }: AgentTraining,
  seen: number,
  unanswered: Map<number, LmError>,
): Evaluate.EvaluationPlan | undefined => {
  const { runtime, seed } = settings
  if (validation === null) return undefined
  return {
    tasks: validation,
    protocol: Evaluate.frozen(agent, { maxSteps: runtime.maxStepsPerEpisode }),
    seed,
    concurrency: runtime.validationNumWorkers ?? runtime.numParallelEpisodes ?? cores(),
    phase: { _tag: "validation", seenEpisodes: seen },
    onFailed: (index, error) => {
      if (error._tag === "LmError" && error.reason === "exhausted") unanswered.set(index, error)
    },
  }
}
