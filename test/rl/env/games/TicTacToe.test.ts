import { assert, describe, it } from "vitest"
import * as TicTacToe from "../../../../src/rl/env/games/TicTacToe.ts"
import { stream } from "../../../../src/base/rng/Rng.ts"

/** Plays whole games with moves that are drawn among the free places; gives how they ended. */
const outcomes = (env: typeof TicTacToe.env, games: number): Readonly<Record<string, number>> => {
  const counts: Record<string, number> = { "1": 0, "0": 0, "-1": 0 }
  for (let game = 0; game < games; game++) {
    const random = stream(game)
    let state = env.reset(random)
    for (;;) {
      const free = Array.from(state.keys()).filter((at) => at > 0 && state[at] === 0)
      const moved = env.step(state, free[random.integer(free.length)] - 1, random)
      if (moved.terminated) {
        counts[String(moved.reward + 0)]++
        break
      }
      assert.strictEqual(moved.reward + 0, 0)
      state = moved.state
    }
  }
  return counts
}

describe("tic-tac-toe", () => {
  it("is a draw when both play perfectly", () => {
    assert.strictEqual(TicTacToe.valueOf([0, 0, 0, 0, 0, 0, 0, 0, 0]), 0)
    assert.strictEqual(TicTacToe.valueOf([1, 1, 0, 2, 2, 0, 0, 0, 0]), 1)
    // One threat can be met, two can't.
    assert.strictEqual(TicTacToe.valueOf([2, 2, 0, 1, 0, 0, 1, 0, 2]), -1)
  })

  it("has an optimal opponent that never loses, and a random one that does", () => {
    assert.strictEqual(outcomes(TicTacToe.optimal, 300)["1"], 0)
    const random = outcomes(TicTacToe.env, 300)
    assert.isAbove(random["1"], 80)
    assert.isAbove(random["-1"], 60)
  })

  it("ends with a loss for a player who chooses a taken place", () => {
    const random = stream(1)
    const state = TicTacToe.selfPlay.reset(random)
    const moved = TicTacToe.selfPlay.step(state, 4, random)
    const again = TicTacToe.selfPlay.step(moved.state, 4, random)
    assert.isTrue(again.terminated)
    assert.strictEqual(again.reward, -1)
  })

  it("shows each side of a self-play the board as its own", () => {
    const { selfPlay } = TicTacToe
    const random = stream(1)
    let state = selfPlay.reset(random)
    const rewards: Array<number> = []
    for (const place of [0, 3, 1, 4, 2]) {
      const seen = Array.from(selfPlay.observe(state))
      const [mine, theirs] = [seen.slice(0, 9), seen.slice(9)].map((plane) => plane.reduce((a, b) => a + b))
      assert.strictEqual(theirs - mine, rewards.length % 2)
      const moved = selfPlay.step(state, place, random)
      rewards.push(moved.reward)
      state = moved.state
    }
    assert.deepEqual(rewards, [0, 0, 0, 0, 1])
  })

  it("passes the board from its own side to a custom opponent", () => {
    const boards: Array<ReadonlyArray<number>> = []
    const env = TicTacToe.make({
      opponent: (board) => {
        boards.push(board)
        return board.indexOf(0)
      },
    })
    const state = new Int32Array(10)
    env.step(state, 8, stream(1))
    assert.deepEqual(boards, [[0, 0, 0, 0, 0, 0, 0, 0, 2]])
  })
})
