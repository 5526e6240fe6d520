import { assert, describe, it } from "vitest"
import { bandOf } from "../../../../src/command/ui/curves/bands.ts"
import {
  addScores,
  downsample,
  emptyPoints,
  type Points,
  validationCurve,
  validationsOf,
} from "../../../../src/command/ui/curves/scoreCurves.ts"
import { interquartileMean } from "../../../../src/base/statistics/resampling.ts"
import { scoreLine } from "../folder.ts"

const pointsOf = (values: ReadonlyArray<number>): Points => ({
  steps: values.map((_, index) => index * 10),
  time: values.map((_, index) => 5000 + index * 1000),
  episodes: values.map((_, index) => index + 1),
  value: [...values],
})

const curveOf = (steps: ReadonlyArray<number>, mean: ReadonlyArray<number>) => ({
  steps,
  time: steps,
  episodes: steps,
  mean,
  min: mean,
  max: mean,
})

describe("score lines", () => {
  it("become points, and what is none is passed over", () => {
    const points = emptyPoints()
    addScores(
      points,
      `${scoreLine(9, 7, 0)}nonsense\n{"step_index":3}\n{"step_index":4,"score":null}\n${scoreLine(20, -1, 1)}`,
    )
    assert.deepStrictEqual(points.steps, [9, 20])
    assert.deepStrictEqual(points.value, [7, -1])
    assert.deepStrictEqual(points.episodes, [1, 2])
    assert.strictEqual(points.time[1] - points.time[0], 11)
  })

  it("of two validations in one file are told apart", () => {
    const text = [scoreLine(100, 1, 0), scoreLine(100, 3, 1), scoreLine(200, 10, 0)].join("")
    const found = validationsOf(text, 42)
    assert.deepStrictEqual(
      found.map(({ step, returns, episodes }) => ({ step, returns, episodes })),
      [
        { step: 100, returns: [1, 3], episodes: 42 },
        { step: 200, returns: [10], episodes: 42 },
      ],
    )
    const curve = validationCurve(found, found[0].time - 2000)
    assert.deepStrictEqual(
      [curve.mean, curve.min, curve.max, curve.time],
      [
        [2, 10],
        [1, 10],
        [3, 10],
        [2, 2.1],
      ],
    )
  })
})

describe("a curve", () => {
  it("with few points is as it was, from the run's start", () => {
    const curve = downsample(pointsOf([3, 1, 2]), 10)
    assert.deepStrictEqual(
      [curve.mean, curve.steps, curve.time, curve.episodes],
      [
        [3, 1, 2],
        [0, 10, 20],
        [0, 1, 2],
        [1, 2, 3],
      ],
    )
    assert.deepStrictEqual(downsample(emptyPoints(), 10).mean, [])
  })

  it("with many is thinned out, but loses no peak and no mean", () => {
    const values = Array.from({ length: 10_000 }, (_, index) => (index === 4321 ? 1e6 : index % 7))
    const curve = downsample(pointsOf(values), 100)
    assert.isAtMost(curve.mean.length, 101)
    assert.isAtLeast(curve.mean.length, 90)
    assert.strictEqual(Math.max(...curve.max), 1e6)
    assert.strictEqual(Math.min(...curve.min), 0)
    assert.isTrue(curve.steps.every((step, index) => index === 0 || step > curve.steps[index - 1]))
    curve.mean.forEach((mean, index) => assert.isTrue(curve.min[index] <= mean && mean <= curve.max[index]))
  })

  it("of episodes that all ended at one step is one point", () => {
    const all = {
      ...pointsOf(Array.from({ length: 500 }, (_, index) => index)),
      steps: Array.from({ length: 500 }, () => 8),
    }
    assert.deepStrictEqual(downsample(all, 100).max, [499])
  })
})

describe("a band", () => {
  it("has the statistics of its runs where all were measured at the same steps", () => {
    const values = [10, 20, 30, 40, 1000]
    const band = bandOf(values.map((value) => curveOf([0, 5], [0, value])), "steps") // prettier-ignore
    assert.deepStrictEqual(band.x, [0, 5])
    assert.deepStrictEqual(band.runs, [5, 5])
    assert.strictEqual(band.iqm[1], interquartileMean(values))
    assert.strictEqual(band.mean[1], 220)
    assert.isTrue(band.iqmLow[1] < band.iqm[1] && band.iqm[1] < band.iqmHigh[1])
    assert.deepStrictEqual([band.iqmLow[0], band.iqmHigh[0]], [0, 0])
  })

  it("goes between the points of runs that were measured elsewhere", () => {
    const band = bandOf(
      [curveOf([0, 10], [0, 10]), curveOf([0, 5, 10], [0, 5, 10]), curveOf([0, 20, 40], [0, 20, 40])],
      "steps",
    )
    assert.deepStrictEqual(band.x, [0, 5, 10, 20, 40])
    assert.deepStrictEqual(band.mean, band.x)
    assert.deepStrictEqual(band.runs, [3, 3, 3, 1, 1])
    assert.strictEqual(band.shared, 3)
  })

  it("goes to the end of half of the runs, and of those that went on longer says how many they are", () => {
    const long = curveOf([20_480, 40_960, 61_440, 81_920, 100_000], [500, 500, 490, 500, 500])
    const short = [[480, 500], [485, 498], [485, 498]].map((values) => curveOf([20_480, 30_000], values)) // prettier-ignore
    const band = bandOf([long, long, ...short], "steps")
    const rows = band.x.map((x, place) => [x, band.runs[place], band.mean[place], band.iqm[place]])
    assert.deepStrictEqual(rows, [
      //  step, runs, mean, IQM
      [20_480, 5, 490, 490],
      [30_000, 5, 499.2, 499.3333],
      [40_960, 2, 500, 500],
      [61_440, 2, 490, 490],
      [81_920, 2, 500, 500],
      [100_000, 2, 500, 500],
    ])
    assert.deepStrictEqual([band.of, band.shared], [5, 2])
  })

  it("keeps the points of short runs beside a very long one", () => {
    const every = (steps: number) => {
      const x = Array.from({ length: 400 }, (_, index) => 10 + index * steps)
      return curveOf(x, x)
    }
    const band = bandOf([every(10_000), every(10), every(11)], "steps")
    assert.isAtMost(band.x.length, 201)
    assert.isAtLeast(band.shared, 100)
    assert.strictEqual(band.x[band.shared - 1], 10 + 399 * 11)
    assert.strictEqual(band.x.at(-1), 10 + 399 * 10_000)
    assert.deepStrictEqual(
      band.x,
      band.x.toSorted((a, b) => a - b),
    )
  })

  it("of runs that end nearly together has even places, and hardly any of fewer runs", () => {
    const runs = [997, 1000, 998, 999, 996].map((end, run) => {
      const x = Array.from({ length: 100 }, (_, index) => (index * (end + run / 10)) / 99)
      return curveOf(x, x)
    })
    const { x, shared, mean } = bandOf(runs, "time")
    assert.deepStrictEqual([x.length, shared, x[0], x[shared - 1], x.at(-1)], [102, 101, 0, 998.2, 1000.1])
    x.forEach((place, index) => assert.closeTo(mean[index], place, 1e-3))
    for (let index = 1; index < shared; index++) assert.closeTo(x[index] - x[index - 1], 9.982, 1e-3)
  })

  it("of runs that have one place each has the place that most share", () => {
    const runs = Array.from({ length: 500 }, (_, index) => curveOf([index < 250 ? 0 : index], [1]))
    const { x, shared, runs: counts } = bandOf(runs, "steps")
    assert.deepStrictEqual([x[0], counts[0], shared], [0, 250, 1])
  })

  it("is empty where at no place half of the runs were measured", () => {
    const band = bandOf([10, 500, 90_000].map((step) => curveOf([step], [1])), "steps") // prettier-ignore
    assert.deepStrictEqual([band.x, band.of, band.shared], [[], 3, 0])
  })

  it("of runs without such an axis is empty", () => {
    const { x } = bandOf([curveOf([NaN], [1]), curveOf([], [])], "time")
    assert.deepStrictEqual(x, [])
  })
})
