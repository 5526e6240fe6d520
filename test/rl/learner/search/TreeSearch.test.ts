import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Env from "../../../../src/rl/env/Env.ts"
import * as TicTacToe from "../../../../src/rl/env/games/TicTacToe.ts"
import { box, discrete } from "../../../../src/rl/env/Space.ts"
import { drive } from "../../../../src/rl/learner/drive.ts"
import {
  type Evaluator,
  type Roots,
  type SearchOptions,
  treeSearch,
} from "../../../../src/rl/learner/search/TreeSearch.ts"
import { stream } from "../../../../src/base/rng/Rng.ts"

const paper = { exploration: 1.25, explorationBase: 19_652 }

/** Makes an evaluator of `rows` states from a function of an observation's row. */
const evaluatorBy = (
  rows: number,
  width: number,
  actions: number,
  evaluated: (seen: Float32Array) => { readonly priors: ReadonlyArray<number>; readonly value: number },
): Evaluator & { readonly calls: () => number } => {
  const observations = new Float32Array(rows * width)
  const priors = new Float32Array(rows * actions)
  const values = new Float32Array(rows)
  let calls = 0
  const runSync = (): void => {
    calls++
    for (let row = 0; row < rows; row++) {
      const { priors: chances, value } = evaluated(observations.subarray(row * width, (row + 1) * width))
      priors.set(chances, row * actions)
      values[row] = value
    }
  }
  return { program: { runSync, run: Effect.sync(runSync) }, observations, priors, values, calls: () => calls }
}

const randomOf = (row: number) => stream(1, "search", row)

/** Searches, and returns the visits of each row and the values. */
const searched = Effect.fnUntraced(function* (
  evaluator: Evaluator,
  options: SearchOptions,
  roots: Partial<Roots> = {},
) {
  const search = treeSearch(evaluator, options)
  const random = stream(1)
  const stateAt = (): unknown => options.env.reset(random)
  yield* drive(() => search.run({ first: 0, count: options.rows, stateAt, randomOf, ...roots }))
  const actions = search.visits.length / options.rows
  const visits = Array.from({ length: options.rows }, (_, row) =>
    Array.from(search.visits.subarray(row * actions, (row + 1) * actions)),
  )
  return { visits, values: [...search.values], best: Array.from(visits, (_, row) => search.best(row)) }
})

/** Two steps, each to the left (0) or the right (1); only left and then right is worth 1. */
const fork = Env.make({
  id: "fork",
  observationSpace: box(0, 3, [2]),
  actionSpace: discrete(2),
  reset: () => ({ depth: 0, at: 0 }),
  observe: ({ depth, at }) => [depth, at],
  step: ({ depth, at }, action) => {
    const next = { depth: depth + 1, at: 2 * at + action }
    return { state: next, reward: next.depth === 2 && next.at === 1 ? 1 : 0, terminated: next.depth === 2 }
  },
})

describe("a search", () => {
  it.effect("visits as worked out by hand", () =>
    Effect.gen(function* () {
      const evaluator = evaluatorBy(1, 2, 2, ([depth]) => ({
        priors: depth === 0 ? [0.4, 0.6] : [0.5, 0.5],
        value: 0.2,
      }))
      const options = { env: fork, rows: 1, gamma: 0.5, ...paper }
      // c is 1.25 here, to three digits. The root is L or R, with N = 1 at first:
      // 1: L 1.25·0.4 = 0.5, R 0.75: R, whose state is evaluated 0.2, so it returns 0.5·0.2 = 0.1.
      // 2: N = 2, √2·1.25 = 1.768: L 0.707, R 0.1 + 1.768·0.6/2 = 0.630: L, which returns 0.1.
      // 3: N = 3, 2.165: L 0.1 + 2.165·0.4/2 = 0.533, R 0.1 + 2.165·0.6/2 = 0.750: R, then its first action, which returns 0.
      // 4: N = 4, 2.5: L 0.1 + 0.5 = 0.6, R 0.05 + 2.5·0.6/3 = 0.55: L, then its first action, which returns 0.
      // 5: N = 5, 2.795: L 0.05 + 2.795·0.4/3 = 0.423, R 0.05 + 2.795·0.6/3 = 0.609: R, then its second action: 0.
      // 6: N = 6, 3.062: L 0.05 + 3.062·0.4/3 = 0.458, R 0.033 + 3.062·0.6/4 = 0.493: R. Both ways there returned 0, so the
      //    first one again: 0.
      // 7: N = 7, 3.307: L 0.05 + 3.307·0.4/3 = 0.491, R 0.025 + 3.307·0.6/5 = 0.422: L. There N = 2: the first action
      //    has 0 + 1.768·0.5/2 and the second one, which was never taken, 1.768·0.5: it ends with 1 and returns 0.5.
      const visitsAfter = Effect.fnUntraced(function* (simulations: number) {
        return (yield* searched(evaluator, { ...options, simulations })).visits[0]
      })
      const all: Array<ReadonlyArray<number>> = []
      for (let simulations = 1; simulations <= 7; simulations++) all.push(yield* visitsAfter(simulations))
      assert.deepStrictEqual(all, [
        [0, 1],
        [1, 1],
        [1, 2],
        [2, 2],
        [2, 3],
        [2, 4],
        [3, 4],
      ])
      const { values } = yield* searched(evaluator, { ...options, simulations: 7 })
      assert.closeTo(values[0], (0.1 + 0.1 + 0.5) / 7, 1e-7)
    }),
  )

  it.effect("finds the only way to a reward, and calls the evaluator once for each simulation of all rows", () =>
    Effect.gen(function* () {
      const evaluator = evaluatorBy(3, 2, 2, () => ({ priors: [0.1, 0.9], value: 0 }))
      const { best, visits } = yield* searched(evaluator, { env: fork, rows: 3, simulations: 100, gamma: 1, ...paper })
      assert.deepStrictEqual(best, [0, 0, 0])
      assert.deepStrictEqual(visits[1], visits[0])
      assert.strictEqual(evaluator.calls(), 101)
    }),
  )

  it.effect("never takes an action that the mask forbids", () =>
    Effect.gen(function* () {
      const masked = Env.make({ ...fork, actionMask: ({ depth }: { depth: number }) => [depth > 0, true] })
      const evaluator = evaluatorBy(1, 4, 2, () => ({ priors: [0.9, 0.1], value: 0 }))
      const { visits } = yield* searched(evaluator, { env: masked, rows: 1, simulations: 50, gamma: 1, ...paper })
      assert.deepStrictEqual(visits, [[0, 50]])
    }),
  )
})

interface PlainNode {
  readonly state: Int32Array
  readonly reward: number
  readonly isEnd: boolean
  readonly children: Map<number, PlainNode>
  readonly priors: ReadonlyArray<number>
  readonly value: number
  visits: number
  total: number
}

/** The same search as a recursive function over objects. */
const plainVisits = (
  start: Int32Array,
  evaluated: (state: Int32Array) => { readonly priors: ReadonlyArray<number>; readonly value: number },
  simulations: number,
  gamma: number,
): ReadonlyArray<number> => {
  const env = TicTacToe.selfPlay
  const unused = stream(0)
  const node = (state: Int32Array, reward: number, isEnd: boolean): PlainNode => {
    const { priors, value } = evaluated(state)
    return { state, reward, isEnd, children: new Map(), priors, value: isEnd ? 0 : value, visits: 0, total: 0 }
  }
  const root = node(start, 0, false)
  const childOf = (parent: PlainNode, action: number): PlainNode => {
    const known = parent.children.get(action)
    if (known !== undefined) return known
    const { state, reward, terminated } = env.step(parent.state, action, unused)
    const child = node(state, reward, terminated)
    parent.children.set(action, child)
    return child
  }
  /** Simulates from a node; returns the return from there. */
  const simulate = (at: PlainNode): number => {
    if (at.isEnd) return 0
    const count = 1 + [...at.children.values()].reduce((sum, child) => sum + child.visits, 0)
    const c = Math.log((1 + count + paper.explorationBase) / paper.explorationBase) + paper.exploration
    const scores = at.priors.map((prior, action) => {
      const { visits = 0, total = 0 } = at.children.get(action) ?? {}
      return (visits === 0 ? 0 : total / visits) + (c * prior * Math.sqrt(count)) / (1 + visits)
    })
    const action = scores.indexOf(Math.max(...scores))
    const isNew = !at.children.has(action)
    const child = childOf(at, action)
    const result = child.reward + gamma * (isNew ? child.value : simulate(child))
    child.visits++
    child.total += result
    return result
  }
  for (let count = 0; count < simulations; count++) simulate(root)
  return Array.from({ length: 9 }, (_, action) => root.children.get(action)?.visits ?? 0)
}

/** The board, from the player whose turn it is, in an observation of tic-tac-toe. */
const boardOf = (seen: ArrayLike<number>): ReadonlyArray<number> =>
  Array.from({ length: 9 }, (_, place) => seen[place] + 2 * seen[9 + place])

/** Evaluators that give each board other numbers, which fit in float32. */
const arbitrary = (board: ReadonlyArray<number>) => {
  const random = stream(7, board.join(""))
  const draws = Array.from({ length: 9 }, () => random.uniform() + 0.05)
  const sum = draws.reduce((total, draw) => total + draw, 0)
  return { priors: draws.map((draw) => Math.fround(draw / sum)), value: Math.fround(2 * random.uniform() - 1) }
}

describe("a search of tic-tac-toe", () => {
  const env = TicTacToe.selfPlay
  const observe = (state: Int32Array): ReadonlyArray<number> => boardOf(Array.from(env.observe(state)))

  it.effect("visits as a plain recursive search does", () =>
    Effect.gen(function* () {
      const states: Array<Int32Array> = []
      let state = env.reset(stream(0))
      for (const place of [4, 0, 8]) {
        states.push(state)
        state = env.step(state, place, stream(0)).state
      }
      states.push(state)
      for (const simulations of [1, 10, 200]) {
        const evaluator = evaluatorBy(states.length, 18, 9, (seen) => arbitrary(boardOf(seen)))
        const options = { env, rows: states.length, simulations, gamma: -1, ...paper }
        const { visits } = yield* searched(evaluator, options, { stateAt: (row) => states[row] })
        const expected = states.map((start) => plainVisits(start, (at) => arbitrary(observe(at)), simulations, -1))
        assert.deepStrictEqual(visits, expected)
      }
    }),
  )

  it.effect("with perfect values loses no game, and wins some from a player at random", () =>
    Effect.gen(function* () {
      const rows = 24
      const random = stream(3, "opponent")
      const evaluator = evaluatorBy(rows, 18, 9, (seen) => ({
        priors: Array.from({ length: 9 }, () => 1 / 9),
        value: TicTacToe.valueOf(boardOf(seen)),
      }))
      const search = treeSearch(evaluator, { env, rows, simulations: 100, gamma: -1, ...paper })
      const games = Array.from({ length: rows }, () => ({ state: env.reset(random), result: 0, isOver: false }))
      // In odd rows the other player begins. Half of the others play at random, half as well as possible.
      for (let turn = 0; turn < 10; turn++) {
        yield* drive(() => search.run({ first: 0, count: rows, stateAt: (row) => games[row].state, randomOf }))
        games.forEach((game, row) => {
          if (game.isOver) return
          const isMine = turn % 2 === row % 2
          const reply = row % 4 < 2 ? TicTacToe.playRandomly : TicTacToe.playOptimally
          const action = isMine ? search.best(row) : reply(observe(game.state), random)
          const { state, reward, terminated } = env.step(game.state, action, random)
          game.state = state
          game.result = isMine ? reward : -reward
          game.isOver = terminated
        })
      }
      assert.isTrue(games.every(({ isOver }) => isOver))
      assert.strictEqual(Math.min(...games.map(({ result }) => result)), 0)
      assert.isAbove(games.filter(({ result }) => result === 1).length, rows / 4)
    }),
  )

  it.effect("is the same again, and in any batch of trees", () =>
    Effect.gen(function* () {
      const dice = TicTacToe.env
      const state = dice.reset(stream(2))
      const evaluator = evaluatorBy(3, 18, 9, (seen) => arbitrary(boardOf(seen)))
      const options = { env: dice, rows: 3, simulations: 60, gamma: 1, ...paper }
      const first = yield* searched(evaluator, options, { stateAt: () => state })
      const again = yield* searched(evaluator, options, { stateAt: () => state })
      assert.deepStrictEqual(again, first)
      const alone = yield* searched(evaluator, options, { stateAt: () => state, first: 2, count: 1 })
      assert.deepStrictEqual(alone.visits[2], first.visits[2])
      // Each tree has a stream of its own for the opponent's moves.
      assert.notDeepEqual(first.visits[1], first.visits[0])
    }),
  )
})
