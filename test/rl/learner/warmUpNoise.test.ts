import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Ddpg from "../../../src/rl/algorithms/replay/Ddpg.ts"
import * as Td3 from "../../../src/rl/algorithms/replay/Td3.ts"
import * as Env from "../../../src/rl/env/Env.ts"
import { box } from "../../../src/rl/env/Space.ts"
import type { Algorithm } from "../../../src/rl/learner/Algorithm.ts"
import { keep } from "../train/inMemory.ts"

const steps = 600
const [low, high] = [-2, 6]

/** Returns the actions of a run that is a warm-up as a whole. */
const actionsOf = (make: (options: Td3.DeterministicOptions) => Algorithm, options: Td3.DeterministicOptions) =>
  Effect.gen(function* () {
    const taken: Array<number> = []
    const env = Env.make({
      id: "recording",
      observationSpace: box(0, 1),
      actionSpace: box(low, high),
      reset: () => 0,
      observe: () => [0],
      step: (count: number, action) => {
        taken.push(action[0])
        return { state: count + 1, reward: 0, terminated: false, truncated: count === 299 }
      },
    })
    const algorithm = make({ hidden: [4], bufferSize: 1000, learningStarts: steps, ...options })
    yield* keep({ env, numEnvs: 1, algorithm, totalSteps: steps })
    return taken
  })

const within = (value: number) => Math.min(Math.max(value, low), high)

describe("noise on the random actions before learning", () => {
  it.effect("has the deviation of the exploration, and is clipped to the bounds", () =>
    Effect.gen(function* () {
      const plain = yield* actionsOf(Td3.make, {})
      const noisy = yield* actionsOf(Td3.make, { warmUpNoise: true, explorationNoise: 0.25 })
      const inside = noisy.flatMap((action, at) => (action > low && action < high ? [action - plain[at]] : []))
      assert.isAtLeast(noisy.filter((action) => action === low || action === high).length, 40)
      assert.isTrue(noisy.every((action) => action >= low && action <= high))
      // A quarter of half the range of 8 is a deviation of 1; actions near the bounds keep only the noise that leads inside.
      const deviation = Math.sqrt(inside.reduce((sum, value) => sum + value ** 2, 0) / inside.length)
      assert.closeTo(deviation, 0.93, 0.1)
    }),
  )

  it.effect("is the process of Ornstein and Uhlenbeck, which moves once in as many steps as the noise repeats", () =>
    Effect.gen(function* () {
      const process = { noiseType: "ornstein-uhlenbeck", noiseRepeat: 10 } as const
      const plain = yield* actionsOf(Ddpg.make, process)
      const noisy = yield* actionsOf(Ddpg.make, { ...process, warmUpNoise: true, explorationNoise: 0.5 })
      const noise = noisy.map((action, at) => (action > low && action < high ? action - plain[at] : undefined))
      const changes = noise.flatMap((value, at) => {
        const before = noise[at - 1]
        return value === undefined || before === undefined || at % 300 === 0 ? [] : [{ at, by: value - before }]
      })
      for (const { at, by } of changes) assert.strictEqual(Math.abs(by) > 1e-5, at % 10 === 0, `step ${at}`)
      // √dt of 0.1, times half of half the range.
      const moves = changes.filter(({ at }) => at % 10 === 0).map(({ by }) => by)
      assert.closeTo(Math.sqrt(moves.reduce((sum, by) => sum + by ** 2, 0) / moves.length), 0.2, 0.06)
    }),
  )

  it.effect("is not there by default, and falls with the exploration", () =>
    Effect.gen(function* () {
      const plain = yield* actionsOf(Td3.make, {})
      assert.deepEqual(yield* actionsOf(Td3.make, { explorationNoise: 0.5 }), plain)
      const falling = yield* actionsOf(Td3.make, { warmUpNoise: true, explorationNoise: "lin_0.2" })
      const moved = falling.map((action, at) => Math.abs(action - within(plain[at])))
      const mean = (values: ReadonlyArray<number>) => values.reduce((sum, value) => sum + value, 0) / values.length
      assert.isAbove(mean(moved.slice(0, 200)), 2 * mean(moved.slice(400)))
    }),
  )
})
