/**
 * Makes learning curves from the texts of score files, with no more points than a screen can show. All functions are pure,
 * except that `addScores` changes its `Points`; `curves.ts` reads the files.
 *
 * @example
 * ```ts
 * const points = emptyPoints()
 * addScores(points, '{"timestamp":"2026-01-31T12:00:00Z","step_index":9,"episode_index":0,"score":9}\n')
 * downsample(points, 300) // { steps: [9], time: [0], episodes: [1], mean: [9], min: [9], max: [9] }
 * ```
 */
import { episodesOf, scoreLine } from "../../../run/record/scoreLine.ts"
import { meanOf } from "../../../base/statistics/resampling.ts"
import { type Curve, rounded } from "./Curve.ts"
import { highest, lowest } from "../../../base/statistics/extremes.ts"

/** Columns of equal length, with one value per training episode in the order of the file. */
export interface Points {
  readonly steps: Array<number>
  /** The times at which the episodes ended, in milliseconds since 1970. */
  readonly time: Array<number>
  readonly episodes: Array<number>
  readonly value: Array<number>
}

export const emptyPoints = (): Points => ({ steps: [], time: [], episodes: [], value: [] })

/**
 * Adds the episodes in lines of a training's score file. Agents write a line for each step; the lines of one episode are
 * combined.
 */
export const addScores = (points: Points, text: string): void => {
  const { steps, time, episodes, value } = points
  for (const one of text.split("\n")) {
    const line = one === "" ? undefined : scoreLine(one)
    if (line === undefined || line.total === null || line.failed) continue
    const last = steps.length - 1
    const isStep = line.of === "step"
    if (isStep && last >= 0 && episodes[last] === line.episode) {
      if (line.update === null) steps[last]++
      time[last] = line.time
      value[last] = line.total
      continue
    }
    steps.push(isStep ? (line.update ?? (steps[last] ?? 0) + 1) : line.step)
    time.push(line.time)
    // In lines of steps, episodes are counted from 1. In lines of whole episodes, which trainers of policies write, they are
    // counted from 0.
    episodes.push(isStep ? (line.episode ?? last + 2) : (line.episode ?? last + 1) + 1)
    value.push(line.total)
  }
}

/** Returns the number of steps that had been taken when `seen` episodes had ended. */
const stepsAfter = ({ steps, episodes }: Points, seen: number): number => {
  let [low, high] = [0, episodes.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if (episodes[middle] <= seen) low = middle + 1
    else high = middle
  }
  return steps[low - 1] ?? 0
}

/**
 * Reduces points to about `most`: one point for each of `most` equal ranges of steps, with the lowest and the highest value
 * in its range. If there are fewer points, they are not changed; with `mergeSteps`, though, points of the same step are
 * merged.
 */
export const downsample = (
  { steps, time, episodes, value }: Points,
  most: number,
  { mergeSteps = false }: { readonly mergeSteps?: boolean } = {},
): Curve => {
  const start = time[0]
  const end = steps.length
  const width = (steps[end - 1] - steps[0]) / most
  const rangeOf = (index: number): number => (width === 0 ? 0 : Math.floor((steps[index] - steps[0]) / width))
  const curve = emptyCurve()
  for (let from = 0, to = 0; from < end; from = to) {
    const range = rangeOf(from)
    const isMore = (index: number): boolean =>
      (end > most && rangeOf(index) <= range) || (mergeSteps && steps[index] === steps[from])
    for (to = from + 1; to < end && isMore(to);) to++
    const part = value.slice(from, to)
    curve.steps.push(Math.round(meanOf(steps.slice(from, to))))
    curve.time.push(rounded((meanOf(time.slice(from, to)) - start) / 1000))
    curve.episodes.push(Math.round(meanOf(episodes.slice(from, to))))
    curve.mean.push(rounded(meanOf(part)))
    curve.min.push(rounded(part.reduce((a, b) => Math.min(a, b))))
    curve.max.push(rounded(part.reduce((a, b) => Math.max(a, b))))
  }
  return curve
}

/** A validation: the returns of its episodes, and when in the training it happened. */
export interface ScoredValidation {
  readonly step: number
  /** The time in milliseconds since 1970; NaN if no file contains it. */
  readonly time: number
  /** The number of training episodes before the validation. */
  readonly episodes: number
  readonly returns: ReadonlyArray<number>
  /** The lengths of the validation's episodes in env steps; empty if the file doesn't contain them. */
  readonly lengths: ReadonlyArray<number>
  readonly terminated: ReadonlyArray<boolean>
}

/**
 * Reads the validations in the text of one file. They were made after `seenEpisodes` training episodes; a file contains
 * several validations if no training episode ended between them. If its lines are steps of agents, they don't contain the env
 * steps of the training, so these are looked up in `training`, the points of the training's scores. The validations of a
 * multi-run trainer need no look-up, because it counts updates instead of episodes: `training` is then "updates".
 */
export const validationsOf = (
  text: string,
  seenEpisodes: number,
  training: Points | "updates" = emptyPoints(),
): ReadonlyArray<ScoredValidation> => {
  const lines = text.split("\n").flatMap((line) => scoreLine(line) ?? [])
  const ended = episodesOf(lines).filter(({ total, failed, counts }) => total !== null && !failed && counts)
  const stepOf = ({ of, step }: (typeof ended)[number]): number =>
    of === "episode" ? step : training === "updates" ? seenEpisodes : stepsAfter(training, seenEpisodes)
  return [...Map.groupBy(ended, stepOf)].map(([step, some]) => ({
    step,
    time: some[0].time,
    episodes: seenEpisodes,
    returns: some.flatMap(({ total }) => total ?? []),
    lengths: some.flatMap(({ length }) => length ?? []),
    terminated: some.flatMap(({ terminated }) => terminated ?? []),
  }))
}

/** Makes the curve of validations; `start` is the time at which the run started. */
export const validationCurve = (validations: ReadonlyArray<ScoredValidation>, start: number): Curve => {
  const curve = emptyCurve()
  for (const { step, time, episodes, returns } of validations) {
    if (returns.length === 0) continue
    curve.steps.push(step)
    curve.time.push(rounded(Math.max(0, time - start) / 1000))
    curve.episodes.push(episodes)
    curve.mean.push(rounded(meanOf(returns)))
    curve.min.push(lowest(returns))
    curve.max.push(highest(returns))
  }
  return curve
}

const emptyCurve = () => ({
  steps: new Array<number>(),
  time: new Array<number>(),
  episodes: new Array<number>(),
  mean: new Array<number>(),
  min: new Array<number>(),
  max: new Array<number>(),
})
