import * as fc from "fast-check"
import { assert, describe, it } from "vitest"
import * as Batch from "../src/rl/env/Batch.ts"
import { drawAllowed } from "../src/rl/env/internal/rows.ts"
import * as MultiEnv from "../src/rl/env/MultiEnv.ts"
import { box, discrete } from "../src/rl/env/Space.ts"
import { stream } from "../src/base/rng/Rng.ts"
import { tries } from "../test/house/tries.ts"

/**
 * Players take turns and take one to three stones; who takes the last one gets 1 from each of the others. Each turn costs its
 * player a bit, which the others get.
 */
const nim = (players: number, stones: number) =>
  MultiEnv.turns({
    id: "nim",
    agents: Array.from({ length: players }, (_, agent) => `player ${agent}`),
    observationSpace: box(0, 100, [2]),
    actionSpace: discrete(3),
    reset: (random) => ({ left: stones + random.integer(3), turn: random.integer(players) }),
    turn: ({ turn }) => turn,
    observe: ({ left, turn }, agent) => [left, (players + turn - agent) % players],
    actionMask: ({ left }) => [true, left > 1, left > 2],
    step: ({ left, turn }, action) => {
      const next = left - action - 1
      const prize = next === 0 ? 8 : -0.25
      const rewards = Array.from({ length: players }, (_, agent) => (agent === turn ? prize * (players - 1) : -prize))
      return { state: { left: next, turn: (turn + 1) % players }, rewards, terminated: next === 0 }
    },
  })

const inputs = { players: fc.integer({ min: 2, max: 4 }), stones: fc.integer({ min: 1, max: 12 }), seed: fc.nat(1000) }

describe("games of several agents", () => {
  it("have rewards that sum to zero over the rows of a game, if the game is one of zero sum", () => {
    fc.assert(
      fc.property(fc.record(inputs), ({ players, stones, seed }) => {
        const batch = Batch.make(nim(players, stones), players * 3)
        batch.reset(seed)
        const actions = new Int32Array(players * 3)
        for (let step = 0; step < 40; step++) {
          if (batch.observationSpace._tag !== "Masked") return assert.fail("has no masks")
          drawAllowed(batch.observationSpace, batch.observations, stream(seed, "act", step), actions)
          batch.step(actions)
          for (let game = 0; game < 3; game++) {
            const rows = [game * players, (game + 1) * players] as const
            assert.strictEqual(
              batch.rewards.subarray(...rows).reduce((sum, reward) => sum + reward, 0),
              0,
            )
            assert.strictEqual(new Set(batch.terminated.subarray(...rows)).size, 1)
          }
        }
      }),
    )
  })

  it("give a row for each agent, equal to a plain simulation of the game", () => {
    fc.assert(
      fc.property(fc.record(inputs), ({ players, stones, seed }) => {
        const { game, ...env } = nim(players, stones)
        const batch = Batch.make(env, players)
        batch.reset(seed)
        let random = stream(seed, 0, "episode", 0)
        let state = game.reset(random)
        let episode = 0
        for (let step = 0; step < 40; step++) {
          const turn = game.turn?.(state) ?? -1
          const rows = Array.from({ length: players }, (_, agent) => [
            ...Array.from(game.observe(state, agent)),
            ...(agent === turn ? Array.from(game.actionMask?.(state, agent) ?? [], Number) : [1, 0, 0]),
          ])
          assert.deepStrictEqual([...batch.observations], rows.flat())
          const actions = new Int32Array(players)
          if (batch.observationSpace._tag !== "Masked") return assert.fail("has no masks")
          drawAllowed(batch.observationSpace, batch.observations, stream(seed, "act", step), actions)
          batch.step(actions)
          const outcome = game.step(state, [...actions], random)
          assert.deepStrictEqual([...batch.rewards], outcome.rewards)
          assert.strictEqual(batch.terminated[0] === 1, outcome.terminated)
          state = outcome.state
          if (outcome.terminated !== true) continue
          random = stream(seed, 0, "episode", ++episode)
          state = game.reset(random)
        }
      }),
    )
  })

  it("give an agent between its turns the sum of its rewards, whoever moves and whenever the game ends", () => {
    fc.assert(
      fc.property(fc.record(inputs), ({ players, stones, seed }) => {
        const multi = nim(players, stones)
        // Opponents take as much as they can, so a plain simulation knows their moves.
        const greedy = (left: number) => Math.min(3, left) - 1
        const opponent: MultiEnv.Player<typeof multi.actionSpace, typeof multi.observationSpace> = (seen) =>
          greedy(seen[0])
        const env = MultiEnv.against(multi, opponent, { as: "player 1" })
        const random = stream(seed, "play")
        let state = env.reset(random)
        for (let step = 0; step < 10; step++) {
          const own = greedy(env.observe(state)[0])
          let { inner } = state.position
          let expected = 0
          let isOver = false
          let mover = 1
          do {
            const outcome = multi.game.step(
              inner,
              multi.agents.map(() => (mover === 1 ? own : greedy(multi.game.observe(inner, 0)[0]))),
              random,
            )
            expected += outcome.rewards[1]
            inner = outcome.state
            isOver = outcome.terminated === true
            mover = (mover + 1) % players
          } while (!isOver && mover !== 1)
          const next = env.step(state, own, random)
          assert.strictEqual(next.reward, expected)
          assert.strictEqual(next.terminated, isOver)
          assert.deepStrictEqual(next.state.position.inner, inner)
          if (isOver) break
          assert.strictEqual(multi.game.turn?.(next.state.position.inner), 1)
          ;({ state } = next)
        }
      }),
    )
  })

  it("continue from a snapshot with the same bits", () => {
    fc.assert(
      fc.property(fc.record({ ...inputs, before: fc.nat(20) }), ({ players, stones, seed, before }) => {
        for (const env of [nim(players, stones), MultiEnv.against(nim(players, stones))]) {
          const [one, other] = [Batch.make(env, players * 2), Batch.make(env, players * 2)]
          const actions = new Int32Array(players * 2)
          const play = (step: number) => {
            if (one.observationSpace._tag !== "Masked") return assert.fail("has no masks")
            drawAllowed(one.observationSpace, one.observations, stream(seed, "act", step), actions)
            one.step(actions)
          }
          one.reset(seed)
          for (let step = 0; step < before; step++) play(step)
          other.restore(one.snapshot())
          for (let step = before; step < before + 20; step++) {
            play(step)
            other.step(actions)
            assert.deepStrictEqual(other.snapshot(), one.snapshot())
          }
        }
      }),
      { numRuns: tries(30) },
    )
  })
})
