/** Makes a run's learning curve from the texts of its `return.json` or score files, which `RunReader.ts` reads. */
import { isPlain } from "../../base/config/plain.ts"
import { seenEpisodesOf } from "../Layout.ts"
import { episodesOf, type ScoreLine, scoreLine } from "../record/scoreLine.ts"
import { deviationOf, meanOf } from "../../base/statistics/resampling.ts"

/** One point of a run's learning curve: a validation. */
export interface ValidationPoint {
  readonly step: number
  readonly mean: number
  /** The standard deviation; NaN if another program wrote the file without it. */
  readonly std: number
  readonly episodes: number
  /** The mean return of each agent of a game; left out for other envs. */
  readonly agents?: ReadonlyArray<AgentMean>
}

interface AgentMean {
  readonly agent: string
  readonly mean: number
}

const finite = (value: unknown): number | undefined =>
  typeof value === "number" && Number.isFinite(value) ? value : undefined

/**
 * Reads the evaluations in a return.json of this library or of RLtools; undefined if the data is not a list of evaluations.
 * It uses no Schema, because the page reads a thousand of these files before it shows anything.
 */
export const evaluationsIn = (data: unknown): ReadonlyArray<ValidationPoint> | undefined => {
  if (!Array.isArray(data)) return undefined
  const evaluations: Array<ValidationPoint> = []
  for (const record of data) {
    const mean = isPlain(record) ? finite(record.returns_mean) : undefined
    if (mean === undefined) return undefined
    const episodes = Array.isArray(record.returns) ? record.returns.length : 0
    const agents = agentsIn(record.agents, "returns_mean")
    evaluations.push({
      step: finite(record.step) ?? 0,
      mean,
      std: finite(record.returns_std) ?? NaN,
      episodes,
      ...named(agents),
    })
  }
  return evaluations
}

const named = (agents: ReadonlyArray<AgentMean>): Pick<ValidationPoint, "agents"> =>
  agents.length === 0 ? {} : { agents }

/**
 * Reads the scores of the best candidate in the contents of a `candidates.json`; undefined if there are none. Like
 * `evaluationsIn`, it uses no Schema.
 */
export const bestCandidateIn = (data: unknown): ValidationPoint | undefined => {
  if (!isPlain(data) || !Array.isArray(data.candidates) || typeof data.best !== "number") return undefined
  const candidate: unknown = data.candidates[data.best]
  if (!isPlain(candidate) || !Array.isArray(candidate.scores)) return undefined
  const scores = candidate.scores.flatMap((score) => finite(score) ?? [])
  if (scores.length === 0) return undefined
  const foundAfter = finite(candidate.foundAfter) ?? 0
  return { step: foundAfter, mean: meanOf(scores), std: deviationOf(scores), episodes: scores.length }
}

/** Reads the scores of the agents in a validation, as `return.json` and `metrics.json` have them. */
export const agentsIn = (data: unknown, key: "returns_mean" | "mean_return"): ReadonlyArray<AgentMean> =>
  (Array.isArray(data) ? data : []).flatMap((score: unknown) => {
    const mean = isPlain(score) ? finite(score[key]) : undefined
    return isPlain(score) && typeof score.agent === "string" && mean !== undefined ? [{ agent: score.agent, mean }] : []
  })

/**
 * Parses a score file, and tells whether a line is damaged. Ignores an incomplete last line, because it is still being
 * written.
 */
export const scoreLines = (text: string): { readonly lines: ReadonlyArray<ScoreLine>; readonly damaged: boolean } => {
  const whole = text.split("\n").slice(0, -1)
  const lines = whole.flatMap((line) => {
    const parsed = scoreLine(line)
    return parsed === undefined ? [] : [parsed]
  })
  return { lines, damaged: lines.length < whole.length }
}

/** The return of an episode of a validation (null if the episode failed), and the step of the validation. */
export interface ValidationReturn {
  readonly step: number
  readonly score: number | null
  readonly agent: string | null
  /** Whether the episode counts for the score of the validation. */
  readonly counts: boolean
}

/** Returns the episodes in the lines of the score file `name`. For agents, `step` is a number of training episodes. */
export const playedIn = (name: string, lines: ReadonlyArray<ScoreLine>): ReadonlyArray<ValidationReturn> =>
  episodesOf(lines).map(({ of, step, total, failed, agent, counts }) => ({
    agent,
    counts,
    step: of === "step" ? (seenEpisodesOf(name) ?? NaN) : step,
    score: failed ? null : total,
  }))

/**
 * Groups episodes into validations: all episodes of one step are one validation. Failed episodes are left out. Validations
 * without an episode that counts are left out, too; a file that is still being written may have them.
 */
export const curveOf = (episodes: ReadonlyArray<ValidationReturn>): ReadonlyArray<ValidationPoint> => {
  const returned = episodes.flatMap(({ score, ...episode }) => (score === null ? [] : [{ ...episode, score }]))
  return [...Map.groupBy(returned, ({ step }) => step)]
    .flatMap(([step, group]) => {
      const scores = group.flatMap(({ score, counts }) => (counts ? score : []))
      if (scores.length === 0) return []
      const agents = [...Map.groupBy(group, ({ agent }) => agent)].flatMap(([agent, own]) =>
        agent === null ? [] : [{ agent, mean: meanOf(own.map(({ score }) => score)) }],
      )
      return [{ step, mean: meanOf(scores), std: deviationOf(scores), episodes: scores.length, ...named(agents) }]
    })
    .sort((a, b) => a.step - b.step)
}
