import { assert, describe, it } from "vitest"
import { type Overview, overviewText } from "../../src/runs/overview.ts"

const about: Overview = {
  path: "results/run",
  time: "2026-01-01_00-00-00",
  commit: null,
  name: "run",
  population: {},
  seed: 0,
  state: "finished",
  steps: 20,
  validation: null,
  config: null,
  metrics: null,
  validations: [],
  resumesFrom: null,
  checkpoints: [],
  files: [],
}

/** How long the bars of validations with these means are. */
const barsOf = (...means: ReadonlyArray<number>): ReadonlyArray<number> => {
  const validations = means.map((mean, at) => ({ step: at + 1, mean, std: 0, episodes: 1 }))
  return [...overviewText({ ...about, validations }, undefined).matchAll(/[█▏▎▍▌▋▊▉]+$/gm)].map(([bar]) => bar.length)
}

describe("the bars of validations", () => {
  it("begin at 0, and at the lowest mean where that is below 0", () => {
    assert.deepStrictEqual(barsOf(250, 500), [15, 30])
    assert.deepStrictEqual(barsOf(-10, 0, 10), [1, 15, 30])
  })
})
