import * as fc from "fast-check"
import { assert, describe, it } from "vitest"
import type { Env } from "../../../../src/rl/env/Env.ts"
import * as ApplePicker from "../../../../src/rl/env/grid/ApplePicker.ts"
import * as GridWorld from "../../../../src/rl/env/grid/GridWorld.ts"
import * as KeyDoor from "../../../../src/rl/env/grid/KeyDoor.ts"
import * as PixelMaze from "../../../../src/rl/env/grid/PixelMaze.ts"
import type { BoardEnv } from "../../../../src/rl/env/internal/board.ts"
import { rowOf } from "../../../../src/rl/env/internal/rows.ts"
import { stream } from "../../../../src/base/rng/Rng.ts"

/** The fewest actions that end a game with a reward above `least`, by trying all of them. */
const shortest = (env: BoardEnv, from: Int32Array, actions: number, least: number): number | undefined => {
  const random = stream(0)
  const seen = new Set([from.join()])
  let front = [from]
  for (let steps = 1; front.length > 0; steps++) {
    const next: Array<Int32Array> = []
    for (const state of front) {
      for (let action = 0; action < actions; action++) {
        const moved = env.step(state, action, random)
        if (moved.terminated && moved.reward > least) return steps
        const key = moved.state.join()
        if (moved.terminated || seen.has(key)) continue
        seen.add(key)
        next.push(moved.state)
      }
    }
    front = next
  }
  return undefined
}

const seeds = fc.nat({ max: 2 ** 31 })

describe("KeyDoor", () => {
  it("can always be solved, and never without the key", () => {
    fc.assert(
      fc.property(seeds, fc.integer({ min: 7, max: 9 }), fc.integer({ min: 2, max: 3 }), (seed, size, rooms) => {
        const env = KeyDoor.make({ size, rooms })
        const state = env.reset(stream(seed))
        const steps = shortest(env, state, 4, 0)
        assert.isDefined(steps)
        assert.isAtMost(steps ?? Infinity, env.maxSteps ?? 0)
        const keyless = state.slice()
        // The first key is gone: its place follows those of the walls and of the doors.
        keyless[4 + 2 * (rooms - 1)] = 0
        assert.isUndefined(shortest(env, keyless, 4, 0))
      }),
      { numRuns: 60 },
    )
  })

  it("shows a held key at the agent's place, and the same maze in every episode with a layoutSeed", () => {
    const env = KeyDoor.make({ size: 6, layoutSeed: 1 })
    const first = env.reset(stream(1))
    assert.deepEqual(first, env.reset(stream(2)))
    const keysOf = (state: Int32Array) => Array.from(env.observe(state)).slice(3 * 36, 4 * 36)
    const [, agent, , , , , key] = first
    const places = keysOf(first).flatMap((mark, place) => (mark === 1 ? [place] : []))
    assert.deepEqual(places, [key])
    const holding = first.slice()
    holding[3] = 1
    holding[6] = 0
    assert.deepEqual(
      keysOf(holding).flatMap((mark, place) => (mark === 1 ? [place] : [])),
      [agent],
    )
  })

  it("refuses a field that is too small", () => {
    assert.throws(() => KeyDoor.make({ size: 4 }), /size 4; for 2 rooms it must be a whole number of at least 5/)
    assert.throws(() => KeyDoor.make({ rooms: 1 }), /1 rooms; it must be a whole number of at least 2/)
  })
})

describe("GridWorld", () => {
  it("has a way, with the length of the distances, that the optimal actions take", () => {
    fc.assert(
      fc.property(seeds, fc.integer({ min: 5, max: 12 }), (seed, size) => {
        const env = GridWorld.make({ size })
        let state = env.reset(stream(seed))
        const away = GridWorld.distances(state)[state[1]]
        assert.isAbove(away, 1)
        assert.deepEqual(GridWorld.stateOf(env.observe(state)), state)
        let total = 0
        for (let step = 1; step <= away; step++) {
          const moved = env.step(state, GridWorld.optimalAction(state), stream(0))
          total += moved.reward
          assert.strictEqual(moved.terminated, step === away)
          state = moved.state
        }
        assert.closeTo(total, 1 - 0.01 * (away - 1), 1e-9)
      }),
      { numRuns: 100 },
    )
  })

  it("leaves an agent that walks into an obstacle in place, at a cost", () => {
    const env = GridWorld.make({ size: 5, density: 0 })
    const state = env.reset(stream(1))
    let at = state
    for (let step = 0; step < 4; step++) at = env.step(at, 0, stream(0)).state
    const moved = env.step(at, 0, stream(0))
    assert.strictEqual(moved.reward, -0.1)
    assert.deepEqual(moved.state, at)
  })
})

describe("PixelMaze-v0", () => {
  const { env } = PixelMaze
  const count = (env: Env, state: unknown, plane: number): number => {
    const row = rowOf(env, state)
    return Array.from({ length: 400 }, (_, at) => row[plane * 400 + at]).reduce((a, b) => a + b)
  }

  it("has four apples and a goal, all reachable and two pixels wide", () => {
    for (let seed = 0; seed < 40; seed++) {
      const state = env.reset(stream(seed))
      const [red, green, blue] = [0, 1, 2].map((plane) => count(env, state, plane))
      // Walls are in all three; what one of them has more is goal, apples and agent.
      assert.strictEqual(green - red, 4 * 4 - 4)
      assert.strictEqual(green - blue, 4 * 4 - 4)
      const bare = state.map((what, at) => (at >= 2 && what === 2 ? 0 : what))
      assert.isDefined(shortest(env, bare, 4, 5))
    }
  })

  it("draws its mazes from as many seeds as there are layouts, and the agent's place in each episode", () => {
    const drawn = (layoutSeed: number, layouts?: number): ReadonlySet<string> => {
      const env = PixelMaze.make({ layoutSeed, ...(layouts === undefined ? {} : { layouts }) })
      // A state begins with whether the game is over and the agent's place; then comes the maze.
      return new Set(Array.from({ length: 60 }, (_, seed) => env.reset(stream(seed)).slice(2).join()))
    }
    const single = [7, 8, 9].flatMap((seed) => [...drawn(seed)])
    assert.strictEqual(new Set(single).size, 3)
    assert.sameMembers([...drawn(7, 3)], single)
    assert.isAbove(
      new Set(Array.from({ length: 60 }, (_, seed) => PixelMaze.make({ layoutSeed: 7 }).reset(stream(seed))[1])).size,
      5,
    )
    assert.throws(() => PixelMaze.make({ layouts: 3 }), "3 layouts need a layoutSeed, the seed of the first")
  })

  it("gives 1 for an apple, once, and 10 for the goal", () => {
    const state = env.reset(stream(2))
    const beside = (what: number): Int32Array => {
      const next = state.slice()
      next[1] = 44
      next[2 + 45] = what
      return next
    }
    const taken = env.step(beside(2), 3, stream(0))
    assert.strictEqual(taken.reward, 1)
    assert.strictEqual(env.step(env.step(taken.state, 2, stream(0)).state, 3, stream(0)).reward, 0)
    const goal = env.step(beside(3), 3, stream(0))
    assert.strictEqual(goal.reward, 10)
    assert.isTrue(goal.terminated)
  })
})

describe("ApplePicker", () => {
  it("gives 1 per apple, and ends with the last one", () => {
    const env = ApplePicker.make({ size: 8, apples: 2 })
    for (let seed = 0; seed < 20; seed++) {
      const random = stream(seed)
      let state = env.reset(random)
      assert.strictEqual(
        state.slice(3).reduce((a, b) => a + b),
        2,
      )
      let total = 0
      for (let over = false; !over;) {
        const moved = env.step(state, random.integer(4), random)
        total += moved.reward
        over = moved.terminated
        state = moved.state
      }
      assert.strictEqual(total, 2)
      assert.strictEqual(state[2], 0)
    }
  })

  it("begins all episodes alike if it is deterministic, and differently if not", () => {
    const { env, deterministic } = ApplePicker
    assert.deepEqual(deterministic.reset(stream(1)), deterministic.reset(stream(2)))
    assert.notDeepEqual(env.reset(stream(1)), env.reset(stream(2)))
    assert.deepEqual(env.observationSpace.shape, [3, 84, 84])
    assert.strictEqual(env.reset(stream(1))[2], 100)
    assert.strictEqual(deterministic.reset(stream(1))[2], 20)
  })

  it("refuses more apples than there is room for", () => {
    assert.throws(() => ApplePicker.make({ size: 8, apples: 17 }), /17 apples; there is room for 1 to 16/)
  })
})
