/**
 * Learning curves: what the score files hold, as columns, and the same thinned out to what a screen can show.
 *
 * @example
 * ```ts
 * const points = emptyPoints()
 * addScores(points, '{"timestamp":"2026-01-31T12:00:00Z","step_index":9,"episode_index":0,"score":9}\n')
 * downsample(points, 300) // { steps: [9], time: [0], episodes: [1], mean: [9], min: [9], max: [9] }
 * ```
 */
import { episodesOf, scoreLine } from "../run/record/scoreLine.ts"
import { rounded } from "./rounded.ts"
import { meanOf } from "../statistics/resampling.ts"

/** What a curve can be drawn over. */
export const axes = ["steps", "time", "episodes"] as const
export type Axis = (typeof axes)[number]

/** Columns of equal length, in the order in which it happened. */
export interface Points {
  readonly steps: Array<number>
  /** In milliseconds. */
  readonly time: Array<number>
  readonly episodes: Array<number>
  readonly value: Array<number>
}

export interface Curve {
  readonly steps: ReadonlyArray<number>
  /** In seconds since the run's start. */
  readonly time: ReadonlyArray<number>
  readonly episodes: ReadonlyArray<number>
  readonly mean: ReadonlyArray<number>
  /** Of what a point stands for: several episodes, where there are more than can be shown. */
  readonly min: ReadonlyArray<number>
  readonly max: ReadonlyArray<number>
}

export const emptyPoints = (): Points => ({ steps: [], time: [], episodes: [], value: [] })

/** Adds the lines of `scores/train/scores.jsonl`, of which one is an episode or a step; what is none is passed over. */
export const addScores = (points: Points, text: string): void => {
  const { steps, time, episodes, value } = points
  for (const one of text.split("\n")) {
    const line = one === "" ? undefined : scoreLine(one)
    if (line === undefined || line.total === null || line.failed) continue
    const last = steps.length - 1
    const isStep = line.of === "step"
    if (isStep && last >= 0 && episodes[last] === line.episode) {
      steps[last]++
      time[last] = line.time
      value[last] = line.total
      continue
    }
    steps.push(isStep ? (steps[last] ?? 0) + 1 : line.step)
    time.push(line.time)
    // Trainers count them from 0.
    episodes.push(isStep ? (line.episode ?? last + 2) : (line.episode ?? last + 1) + 1)
    value.push(line.total)
  }
}

/** How many steps had been taken when so many episodes had ended. */
const stepsAfter = ({ steps, episodes }: Points, seen: number): number => {
  let [low, high] = [0, episodes.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if (episodes[middle] <= seen) low = middle + 1
    else high = middle
  }
  return steps[low - 1] ?? 0
}

/** A curve of at most so many points, each of an equal stretch of steps, with the lowest and the highest in it. */
export const downsample = ({ steps, time, episodes, value }: Points, most: number): Curve => {
  const start = time[0]
  const end = steps.length
  const width = (steps[end - 1] - steps[0]) / most
  const stretchOf = (index: number): number => (width === 0 ? 0 : Math.floor((steps[index] - steps[0]) / width))
  const curve = emptyCurve()
  for (let from = 0, to = 0; from < end; from = to) {
    const stretch = stretchOf(from)
    for (to = from + 1; to < end && end > most && stretchOf(to) <= stretch;) to++
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

/** One validation: its episodes' returns, and where in the run it stood. */
export interface Validation {
  readonly step: number
  /** In milliseconds; NaN where no file says when. */
  readonly time: number
  readonly episodes: number
  readonly returns: ReadonlyArray<number>
  /** Of its episodes, as far as the file says. */
  readonly lengths: ReadonlyArray<number>
  readonly terminated: ReadonlyArray<boolean>
}

/**
 * The validations of one file: two of them between two training episodes share it. Of one whose lines are steps, only the
 * training's scores know the steps by then.
 */
export const validationsOf = (
  text: string,
  seenEpisodes: number,
  training: Points = emptyPoints(),
): ReadonlyArray<Validation> => {
  const lines = text.split("\n").flatMap((line) => scoreLine(line) ?? [])
  const ended = episodesOf(lines).filter(({ total, failed }) => total !== null && !failed)
  const stepOf = ({ of, step }: (typeof ended)[number]): number =>
    of === "step" ? stepsAfter(training, seenEpisodes) : step
  return [...Map.groupBy(ended, stepOf)].map(([step, some]) => ({
    step,
    time: some[0].time,
    episodes: seenEpisodes,
    returns: some.flatMap(({ total }) => total ?? []),
    lengths: some.flatMap(({ length }) => length ?? []),
    terminated: some.flatMap(({ terminated }) => terminated ?? []),
  }))
}

/** The curve of validations; `start` is when the run did. */
export const validationCurve = (validations: ReadonlyArray<Validation>, start: number): Curve => {
  const curve = emptyCurve()
  for (const { step, time, episodes, returns } of validations) {
    if (returns.length === 0) continue
    curve.steps.push(step)
    curve.time.push(rounded(Math.max(0, time - start) / 1000))
    curve.episodes.push(episodes)
    curve.mean.push(rounded(meanOf(returns)))
    curve.min.push(Math.min(...returns))
    curve.max.push(Math.max(...returns))
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
