/** Draws the pictures of docs/scores.md: learning curves of a row, and performance profiles of a group. */
import { aggregateCurves } from "../../src/base/statistics/statistics.ts"
import { curvesFigure, type NamedCurve } from "../../src/rl/export/curveFiles.ts"
import { svgOf } from "../../src/rl/export/drawing.ts"
import { type GroupComparison, profileOf } from "./groups.ts"
import { nameOf, type Row } from "./rows.ts"
import type { ScoreResult } from "./ScoreResult.ts"

/** Returns the name of a row's picture in docs/scores/pictures. */
export const curvePicture = (row: Row): string => `${nameOf(row).replaceAll("/", "-")}.svg`

/** Returns the name of a group's picture in docs/scores/pictures. */
export const profilePicture = ({ group }: GroupComparison): string => `${group.name}.svg`

const namedCurve = (name: string, results: ReadonlyArray<ScoreResult>): ReadonlyArray<NamedCurve> => {
  const curve = aggregateCurves(results.map((result) => result.curve))
  return curve.length === 0 ? [] : [{ name, curve }]
}

/** Draws the learning curves of a row: of its trainings, and of those by Stable-Baselines3. */
export const drawCurves = (
  row: Row,
  own: ReadonlyArray<ScoreResult>,
  peers: ReadonlyArray<ScoreResult>,
): string | undefined => {
  const curves = [...namedCurve("effect-rl", own), ...namedCurve("Stable-Baselines3", peers)]
  if (curves.length === 0) return undefined
  const count = curves.length > 1 ? `${own.length} and ${peers.length}` : String(own.length)
  const caption = `mean return of the training episodes: IQM of ${count} seeds, with its 95 % interval`
  return svgOf(curvesFigure(nameOf(row), curves, "steps", caption))
}

/** Draws the performance profiles of a group. */
export const drawProfiles = ({ group, algorithms }: GroupComparison): string => {
  const curves = algorithms.map(({ algorithm, scores }) => {
    const runs = scores.flat().length
    const curve = profileOf(scores).map(({ threshold: step, value: iqm, low, high }) => {
      return { step, runs, iqm, low, high, mean: iqm, median: iqm, std: 0 }
    })
    return { name: algorithm, curve }
  })
  const caption = "share of the trainings whose normalised score is higher, with its 95 % interval"
  return svgOf(curvesFigure(group.title, curves, "normalised score", caption))
}
