/** Compares the trainings of a row with those by Stable-Baselines3: by their scores, and by the time until a score. */
import { interquartileMean } from "../../src/base/statistics/resampling.ts"
import { aggregateCurves } from "../../src/base/statistics/statistics.ts"
import { type Estimate, unpaired } from "../../src/base/statistics/unpaired.ts"
import { type ScoreResult, scoreOf } from "./ScoreResult.ts"

interface Point {
  readonly step: number
  readonly value: number
}

/** The comparison of a row. */
interface PeerComparison {
  /** The difference of the interquartile means of the evaluations, ours minus theirs. */
  readonly difference: Estimate
  /** The return of training episodes until which the time is measured. */
  readonly score: number
  /** The CPU seconds until our curve reaches the score; `peerSeconds` are those of Stable-Baselines3. */
  readonly ownSeconds: number
  readonly peerSeconds: number
}

/** The share of the way from the start of the curves to the lower one of their ends that a score lies at. */
const share = 0.9

/** Combines the curves of trainings to one of their interquartile means. */
const combined = (results: ReadonlyArray<ScoreResult>): ReadonlyArray<Point> =>
  aggregateCurves(results.map(({ curve }) => curve)).map(({ step, iqm }) => ({ step, value: iqm }))

/** Returns the step at which a curve first reaches a score, interpolated linearly; its last step if it never does. */
export const stepAt = (curve: ReadonlyArray<Point>, score: number): number => {
  const after = curve.findIndex(({ value }) => value >= score)
  if (after === -1) return curve[curve.length - 1].step
  if (after === 0) return curve[0].step
  const [one, other] = [curve[after - 1], curve[after]]
  return one.step + ((other.step - one.step) * (score - one.value)) / (other.value - one.value)
}

/** Returns the CPU seconds until a step: a step costs about the same throughout a training. */
const secondsUntil = (step: number, results: ReadonlyArray<ScoreResult>): number =>
  step * interquartileMean(results.map(({ steps, cpu_seconds }) => cpu_seconds / steps))

export const comparePeers = ({
  own,
  peers,
}: {
  readonly own: ReadonlyArray<ScoreResult>
  readonly peers: ReadonlyArray<ScoreResult>
}): PeerComparison => {
  const { difference } = unpaired([{ left: peers.map(scoreOf), right: own.map(scoreOf) }])
  const curves = [combined(own), combined(peers)]
  const start = Math.min(...curves.map(([first]) => first.value))
  const end = Math.min(...curves.map((curve) => curve[curve.length - 1].value))
  const score = start + share * (end - start)
  const [ownSeconds, peerSeconds] = [own, peers].map((results, index) =>
    secondsUntil(stepAt(curves[index], score), results),
  )
  return { difference, score, ownSeconds, peerSeconds }
}
