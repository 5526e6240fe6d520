import { assert, describe, it } from "vitest"
import * as Batch from "../../../../src/rl/env/Batch.ts"
import * as Breakout from "../../../../src/rl/env/pixel/Breakout.ts"
import { stream } from "../../../../src/base/rng/Rng.ts"

const plane = 100

/** Reads the paddle's column, the ball's column and row, the trail's, and the bricks as bits off an observation. */
const readOff = (seen: ArrayLike<number>): ReadonlyArray<number> => {
  const only = (at: number): number => {
    const places = Array.from({ length: plane }, (_, place) => place).filter((place) => seen[at * plane + place] === 1)
    assert.strictEqual(places.length, 1)
    return places[0]
  }
  const [paddle, ball, trail] = [only(0), only(1), only(2)]
  assert.strictEqual(Math.floor(paddle / 10), 9)
  let bricks = 0
  for (let brick = 0; brick < 30; brick++) bricks += seen[3 * plane + 10 + brick] * 2 ** brick
  return [paddle % 10, ball % 10, Math.floor(ball / 10), trail % 10, Math.floor(trail / 10), bricks]
}

const unsticky = Breakout.make({ stickyActionProb: 0 })

describe("MinAtar/Breakout-v1", () => {
  it("repeats the last action about every tenth time", () => {
    const envs = Batch.make(Breakout.env, 1000)
    envs.reset(1)
    const paddleAt = (index: number): number =>
      envs.observations.subarray(index * 400 + 90, index * 400 + 100).indexOf(1)
    // Before the first action, the last one counts as none: an env that repeats it does not move its paddle.
    envs.step(new Int32Array(1000).fill(2))
    const stuck = Array.from({ length: 1000 }, (_, index) => paddleAt(index)).filter((at) => at === 4).length
    assert.isAbove(stuck, 70)
    assert.isBelow(stuck, 130)
  })

  it("builds a new wall when the last brick is gone and the ball comes down", () => {
    let state = unsticky.reset(stream(1))
    state.fill(0, 9)
    let bricks = 0
    for (let step = 0; step < 40 && bricks === 0; step++) {
      // The paddle is carried under the ball.
      state[1] = state[2]
      state = unsticky.step(state, 0, stream(0)).state
      bricks = readOff(unsticky.observe(state))[5]
    }
    assert.strictEqual(bricks, 2 ** 30 - 1)
  })

  it("draws a state", () => {
    const state = unsticky.reset(stream(1))
    assert.include(unsticky.renderText?.(state) ?? "", "▬")
    assert.include(unsticky.renderSvg?.(state) ?? "", "</svg>")
  })
})
