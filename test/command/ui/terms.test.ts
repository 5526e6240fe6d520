/** Tests which terms of a reward the player of the page shows. */
import { assert, describe, it } from "vitest"

const trajectories = new URL("../../../src/command/ui/page/player/trajectories.js", import.meta.url).href
const { shownTerms } = await import(/* @vite-ignore */ trajectories)

describe("shownTerms", () => {
  it("shows the terms that are finite numbers, in their order", () => {
    const mixed = { forward: 2, control: -0.5, wrong: Number.NaN, text: "1", huge: Number.POSITIVE_INFINITY }
    assert.deepStrictEqual(shownTerms(mixed), [
      ["forward", 2],
      ["control", -0.5],
    ])
  })

  it("shows the first terms of a file by somebody else with many", () => {
    const many = Object.fromEntries(Array.from({ length: 100_000 }, (_, index) => [`term ${index}`, index]))
    assert.strictEqual(shownTerms(many).length, 50)
  })
})
