import { assert, it } from "vitest"
import { animate } from "../../../../src/rl/train/validation/rendering.ts"

it("an animation has the last picture of an episode, however long the episode is", () => {
  for (const length of [1, 2, 499, 500, 501, 750, 999, 1001]) {
    const pictures = Array.from({ length }, (_, index) => `<svg viewBox="0 0 4 3"><text>${index}.</text></svg>`)
    const shown = Array.from(animate(pictures, 30).matchAll(/<text>(\d+)\./g), ([, index]) => Number(index))
    assert.strictEqual(shown[0], 0)
    assert.strictEqual(shown.at(-1), length - 1)
    assert.strictEqual(new Set(shown).size, shown.length)
    assert.isAtMost(shown.length, 500)
  }
})
