import { assert, it } from "vitest"
import { roundedSpeed } from "../../src/config/text.ts"

it("speeds have a digit after the point if they are low, so that a slow run is not shown as one that stands still", () => {
  assert.deepStrictEqual([0, 0.26, 1, 9.94, 10.4, 2500.5].map(roundedSpeed), [0, 0.3, 1, 9.9, 10, 2501])
})
