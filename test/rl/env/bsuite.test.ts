/** Compares DeepSea and MemoryChain with episodes that bsuite's own code played, in `data/bsuite.jsonl`. */
import { readFileSync } from "node:fs"
import { assert, describe, it } from "vitest"
import * as Batch from "../../../src/rl/env/Batch.ts"
import { check } from "../../../src/rl/env/check.ts"
import * as MemoryChain from "../../../src/rl/env/games/MemoryChain.ts"
import * as DeepSea from "../../../src/rl/env/grid/DeepSea.ts"
import { stream } from "../../../src/base/rng/Rng.ts"
import { envError } from "./errors.ts"

interface Played {
  readonly env: string
  readonly actions: ReadonlyArray<number>
  readonly rewards: ReadonlyArray<number>
  readonly terminated: ReadonlyArray<boolean>
}

interface DeepSeaEpisode extends Played {
  readonly env: "deep_sea"
  readonly size: number
  readonly moveCost: number
  /** The action that swims right, for each place. */
  readonly mapping: ReadonlyArray<number>
  /** The number of the place in each observation; −1 if there is none. */
  readonly places: ReadonlyArray<number>
}

interface MemoryEpisode extends Played {
  readonly env: "memory_chain"
  readonly length: number
  readonly bits: number
  readonly context: ReadonlyArray<number>
  readonly query: number
  readonly observations: ReadonlyArray<ReadonlyArray<number>>
}

interface StochasticSea {
  readonly env: "deep_sea_stochastic"
  readonly size: number
  readonly mean: number
  readonly deviation: number
  readonly columns: ReadonlyArray<number>
}

const mean = (numbers: ReadonlyArray<number>): number =>
  numbers.reduce((sum, number) => sum + number, 0) / numbers.length

const [, ...lines] = readFileSync(new URL("data/bsuite.jsonl", import.meta.url), "utf8")
  .trimEnd()
  .split("\n")
const episodes = lines.map((line): DeepSeaEpisode | MemoryEpisode | StochasticSea => JSON.parse(line))

describe("DeepSea", () => {
  it("moves, shows and rewards as bsuite's deep_sea", () => {
    const seas = episodes.filter((episode) => episode.env === "deep_sea")
    assert.lengthOf(seas, 24)
    for (const { size, moveCost, mapping, places, actions, rewards, terminated } of seas) {
      const env = DeepSea.make({ size, moveCost })
      const ours = DeepSea.mappingOf(size, 42)
      const random = stream(1)
      let state = env.reset(random)
      for (const [step, action] of actions.entries()) {
        const place = places[step]
        assert.strictEqual(
          Array.from(env.observe(state)).findIndex((number) => number === 1),
          place,
        )
        // Where bsuite's mapping swims right, ours must, too.
        const isRight = action === mapping[place]
        const next = env.step(state, isRight ? ours[place] : 1 - ours[place], random)
        assert.deepStrictEqual([Math.fround(next.reward), next.terminated], [rewards[step], terminated[step]])
        state = next.state
      }
      assert.isTrue(Array.from(env.observe(state)).every((number) => number === 0))
      assert.strictEqual(places.at(-1), -1)
    }
  })

  it("has failing swims and noisy ends as often as bsuite's stochastic one", () => {
    for (const sea of episodes.filter((episode) => episode.env === "deep_sea_stochastic")) {
      const env = DeepSea.make({ size: sea.size, stochastic: true })
      const mapping = DeepSea.mappingOf(sea.size, 42)
      const random = stream(2)
      const ends = new Float64Array(sea.size)
      const count = 20_000
      const returns = Array.from({ length: count }, () => {
        let state = env.reset(random)
        let sum = 0
        while (state[0] === 0) {
          const next = env.step(state, mapping[state[1] * sea.size + state[2]], random)
          sum += next.reward
          state = next.state
        }
        ends[state[2]] += 1 / count
        return sum
      })
      assert.closeTo(mean(returns), sea.mean, 0.03)
      assert.closeTo(Math.sqrt(mean(returns.map((value) => value * value)) - mean(returns) ** 2), sea.deviation, 0.03)
      ends.forEach((share, column) => assert.closeTo(share, sea.columns[column], 0.015))
    }
  })

  it("draws the actions that swim right from their seed, for each place", () => {
    assert.notDeepEqual(DeepSea.mappingOf(8, 1), DeepSea.mappingOf(8, 2))
    const swims = (randomActions: boolean): number => {
      const batch = Batch.make(DeepSea.make({ size: 8, randomActions }), 1)
      batch.reset(1)
      for (let step = 0; step < 7; step++) batch.step(Int32Array.of(1))
      return batch.observations.indexOf(1) - 7 * 8
    }
    assert.strictEqual(swims(false), 7)
    assert.isBelow(swims(true), 7)
  })

  it("is a valid env, and refuses a board without rows", () => {
    for (const env of [DeepSea.env, DeepSea.large, DeepSea.stochastic]) assert.deepStrictEqual(check(env), [])
    assert.include(envError(() => DeepSea.make({ size: 1 })).message, "DeepSea: size 1")
  })
})

describe("MemoryChain", () => {
  it("shows, asks and rewards as bsuite's memory_chain", () => {
    const chains = episodes.filter((episode) => episode.env === "memory_chain")
    assert.lengthOf(chains, 20)
    for (const { length, bits, context, query, actions, observations, rewards, terminated } of chains) {
      const env = MemoryChain.make({ length, bits })
      const random = stream(1)
      let state: ReadonlyArray<number> = [0, query, ...context]
      assert.strictEqual(env.reset(random).length, state.length)
      for (const [step, action] of actions.entries()) {
        assert.deepStrictEqual(Array.from(env.observe(state), Math.fround), observations[step])
        const next = env.step(state, action, random)
        assert.deepStrictEqual([next.reward, next.terminated], [rewards[step], terminated[step]])
        state = next.state
      }
      assert.deepStrictEqual(Array.from(env.observe(state), Math.fround), observations.at(-1))
    }
  })

  it("draws bits and questions evenly, and is a valid env", () => {
    const env = MemoryChain.make({ length: 2, bits: 4 })
    assert.deepStrictEqual(check(env), [])
    assert.deepStrictEqual(check(MemoryChain.env), [])
    const random = stream(3)
    const starts = Array.from({ length: 4000 }, () => env.reset(random))
    for (let bit = 0; bit < 4; bit++) {
      assert.closeTo(mean(starts.map((state) => state[2 + bit])), 0.5, 0.04)
      assert.closeTo(starts.filter(([, asked]) => asked === bit).length / 4000, 0.25, 0.04)
    }
  })
})
