/** Finds settings of a run that do not fit what the run learns from: rewards, a teacher, a critic or pairs. */
import { advantageEstimatorOf, type TokenObjective } from "../../rl/losses/Losses.ts"
import type { TeacherConfig } from "../teacher/TeacherConfig.ts"

/** The settings of a run that choose what it learns from. */
interface Sources {
  readonly objective: TokenObjective
  readonly teacher: TeacherConfig | null
  readonly critic: object | null
}

interface TaughtRun extends Omit<Sources, "critic"> {
  readonly sampling: { readonly temperature: number }
  readonly protocol: string
}

interface BatchedRun extends Sources {
  readonly batch: {
    readonly evenGroups: "keep" | "drop"
    readonly replacedGroups: number
    readonly positiveOnly: boolean
    readonly filters: ReadonlyArray<string>
  }
}

/** Returns what in a run's settings does not fit its teacher. */
export const teacherProblem = ({ teacher, objective, sampling, protocol }: TaughtRun) => {
  if (teacher === null) return undefined
  if (objective.type === "sft" || objective.type === "dpo")
    return {
      path: ["objective", "type"],
      issue: `Expected an objective with advantages, such as reinforce, because the teacher gives them; ${objective.type} has none`,
    }
  if (sampling.temperature !== 1)
    return {
      path: ["sampling", "temperature"],
      issue: "Expected 1 with a teacher, so that both models' log-probabilities can be compared",
    }
  return teacher.hint !== null && protocol === "self_play"
    ? {
        path: ["teacher", "hint"],
        issue: "Expected a teacher without a hint for self_play, whose games have no right answer",
      }
    : undefined
}

/** Tells whether the rewards of a group are compared with each other, after the supervised steps. */
export const comparesRewards = ({ objective, teacher, critic }: Sources): boolean =>
  advantageEstimatorOf(objective.type) !== null && critic === null && (teacher === null || teacher.rewards)

/** Describes what gives the advantages, if the rewards of a group are not compared. */
const sourceOf = ({ objective, critic }: Sources): string => {
  if (critic !== null) return "the critic gives the advantages"
  return advantageEstimatorOf(objective.type) === null
    ? `${objective.type} has no advantages`
    : "only the teacher gives the advantages"
}

/** Returns a setting of the batch that would have no effect, because of what the run learns from. */
export const unusedProblem = (config: BatchedRun) => {
  const { batch, objective, critic } = config
  if (comparesRewards(config)) return undefined
  const unused = (key: string, expected: string, why: string) => ({
    path: ["batch", key],
    issue: `Expected ${expected}, because ${why}`,
  })
  const why = `${sourceOf(config)}, so no rewards of a group are compared`
  if (batch.evenGroups !== "keep") return unused("evenGroups", "keep", why)
  if (batch.replacedGroups > 0) return unused("replacedGroups", "0", why)
  if (batch.positiveOnly && critic === null) return unused("positiveOnly", "false", why)
  return objective.type === "dpo" && batch.filters.length > 0
    ? unused("filters", "none", "dpo learns from all of its pairs")
    : undefined
}
