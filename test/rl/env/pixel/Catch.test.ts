import { assert, describe, it } from "vitest"
import * as Catch from "../../../../src/rl/env/pixel/Catch.ts"
import { stream } from "../../../../src/base/rng/Rng.ts"

const plain = Catch.make({ stickiness: 0 })
const paddleOf = (seen: ArrayLike<number>): number =>
  Array.from({ length: 10 }, (_, column) => column).findIndex((column) => seen[190 + column] === 1)
const ballsOf = (seen: ArrayLike<number>): ReadonlyArray<{ readonly row: number; readonly column: number }> =>
  Array.from({ length: 100 }, (_, place) => place)
    .filter((place) => seen[place] === 1)
    .map((place) => ({ row: Math.floor(place / 10), column: place % 10 }))

/** Goes under the lowest ball. */
const follow = (seen: ArrayLike<number>): number => {
  const lowest = ballsOf(seen).at(-1)
  return lowest === undefined ? 1 : 1 + Math.sign(lowest.column - paddleOf(seen))
}

describe("Catch-v0", () => {
  it("gives 1 for a caught ball, and −1 for a missed one, which ends the game", () => {
    const random = stream(3)
    let state = plain.reset(random)
    const rewards: Array<number> = []
    for (let step = 0; step < 200; step++) {
      const moved = plain.step(state, follow(plain.observe(state)), random)
      rewards.push(moved.reward)
      assert.isFalse(moved.terminated)
      state = moved.state
    }
    assert.isAbove(rewards.filter((reward) => reward === 1).length, 20)
    let over = false
    while (!over) {
      const lowest = ballsOf(plain.observe(state)).at(-1)
      const away = lowest !== undefined && lowest.column < 5 ? 2 : 0
      const moved = plain.step(state, away, random)
      over = moved.terminated
      if (over) assert.strictEqual(moved.reward, -1)
      state = moved.state
    }
  })

  it("brings balls closer as the score grows, unless ramps is false", () => {
    for (const [env, most] of [
      [plain, 3],
      // The next is let fall as one lands.
      [Catch.make({ stickiness: 0, ramps: false }), 2],
    ] as const) {
      const random = stream(4)
      let state = env.reset(random)
      let together = 0
      for (let step = 0; step < 400; step++) {
        const moved = env.step(state, follow(env.observe(state)), random)
        if (moved.terminated) break
        state = moved.state
        together = Math.max(together, ballsOf(env.observe(state)).length)
      }
      assert.strictEqual(together, most)
    }
  })
})
