import { assert, describe, it } from "vitest"
import { type RunsOverview, overviewText } from "../../../src/run/find/overview.ts"

const about: RunsOverview = {
  path: "results/run",
  time: "2026-01-01_00-00-00",
  commit: null,
  name: "run",
  population: {},
  seed: 0,
  state: "finished",
  reason: null,
  steps: 20,
  validation: null,
  config: null,
  metrics: null,
  validations: [],
  resumesFrom: null,
  checkpoints: [],
  files: [],
}

/** Returns the lengths of the bars of validations with these means. */
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

it("the validations of a game have a column for each agent, empty where it did not play", () => {
  const of = (step: number, agents: Record<string, number>) => ({
    step,
    mean: 1,
    std: 0,
    episodes: 1,
    agents: Object.entries(agents).map(([agent, mean]) => ({ agent, mean })),
  })
  const text = overviewText({ ...about, validations: [of(10, { fox: 2.5 }), of(20, { fox: 3, hare: -3 })] }, undefined)
  assert.match(text, /^ +step +mean +std +fox +hare$/m)
  assert.match(text, /^ +10 +1 +0 +2\.5 +- +█+$/m)
  assert.match(text, /^ +20 +1 +0 +3 +-3 +█+$/m)
})

describe("the config of a run", () => {
  it("is shown without nulls, and without groups of which nothing is left", () => {
    const config =
      "a: 1\nlimits:\n  budget:\n    calls: null\n  time: null\nkept:\n  x: null\n  y: 2\nlist:\n- 1\nlast: null\n"
    const text = overviewText(about, config)
    assert.include(text, "config (and 4 that are null)\n  a: 1\n  kept:\n    y: 2\n  list:\n  - 1\n")
  })
})

it("the overview of a failed run has the reason", () => {
  assert.match(overviewText({ ...about, state: "failed", reason: "no track" }, undefined), /^ +reason +no track$/m)
})
