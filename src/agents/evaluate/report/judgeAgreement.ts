/**
 * Compares a judge's scores with people's labels, which tasks have in their metadata: how often both give a pass or both give
 * none, and Cohen's kappa. These are pure functions for reports.
 */
import { Schema } from "effect"
import { Agreement, agreementOf, type RatingPair } from "../../../base/statistics/agreement.ts"
import type { Resampling } from "../../../base/statistics/resampling.ts"

/** Says which label of a task a scorer is compared with, and from which values on a label and a score count as a pass. */
export interface ScorerLabel {
  /** The key of the tasks' metadata. */
  readonly key: string
  /** The smallest label that counts as a pass. */
  readonly labelThreshold: number
  /** The smallest score of the scorer that counts as a pass. */
  readonly threshold: number
}

/** The agreement of a scorer with labels, over the episodes that have a score and whose tasks have a label. */
export const JudgeAgreement = Schema.Struct({ scorer: Schema.String, label: Schema.String, ...Agreement.fields })
export type JudgeAgreement = typeof JudgeAgreement.Type

/**
 * Returns the value of a label as a number: that of a number or of a text with a number, and 1 or 0 for true and false. Undefined
 * if the task has none, null for any other value.
 */
export const labelValue = (label: unknown): number | null | undefined => {
  if (label === undefined || label === null || label === "") return undefined
  if (label === true || label === "true") return 1
  if (label === false || label === "false") return 0
  const value = typeof label === "string" && label.trim() !== "" ? Number(label) : label
  return typeof value === "number" && Number.isFinite(value) ? value : null
}

/** The parts of an episode's row that are needed here. */
interface RatedEpisode {
  readonly task: number
  readonly scores: Readonly<Record<string, number | null>>
  readonly metadata: Readonly<Record<string, unknown>>
}

const rated = (value: number, threshold: number): string => (value >= threshold ? "pass" : "fail")

/** Computes the agreement of each scorer that has a label with that label. The episodes of a task count as one item. */
export const agreementsOf = (
  rows: ReadonlyArray<RatedEpisode>,
  labels: ReadonlyMap<string, ScorerLabel>,
  how: Resampling,
): ReadonlyArray<JudgeAgreement> =>
  [...labels].flatMap(([scorer, { key, labelThreshold, threshold }]) => {
    const items = [...Map.groupBy(rows, ({ task }) => task).values()].map((episodes) =>
      episodes.flatMap(({ scores, metadata }): ReadonlyArray<RatingPair> => {
        const [score, label] = [scores[scorer] ?? null, labelValue(metadata[key]) ?? null]
        return score === null || label === null ? [] : [[rated(score, threshold), rated(label, labelThreshold)]]
      }),
    )
    const agreement = agreementOf(items, how)
    return agreement === null ? [] : [{ scorer, label: key, ...agreement }]
  })
