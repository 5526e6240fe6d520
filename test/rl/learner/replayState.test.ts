import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { Algorithm } from "../../../src/rl/learner/Algorithm.ts"
import type { NamedArrays } from "../../../src/tensor/graph/Parameters.ts"
import * as Dqn from "../../../src/rl/algorithms/replay/Dqn.ts"
import { makePriorities } from "../../../src/rl/learner/replay/Priorities.ts"
import { makeReplay } from "../../../src/rl/learner/replay/Replay.ts"
import * as Sac from "../../../src/rl/algorithms/replay/Sac.ts"
import * as Unreal from "../../../src/rl/algorithms/rollouts/Unreal.ts"
import * as Batch from "../../../src/rl/env/Batch.ts"
import * as CartPole from "../../../src/rl/env/classic/CartPole.ts"
import * as Pendulum from "../../../src/rl/env/classic/Pendulum.ts"
import type { Env } from "../../../src/rl/env/Env.ts"
import * as KeyDoor from "../../../src/rl/env/grid/KeyDoor.ts"
import { keep } from "../train/inMemory.ts"

const maze = KeyDoor.make({ size: 6, maxSteps: 40 })

const replayFileOf = (env: Env, algorithm: Algorithm, totalSteps: number) =>
  Effect.map(keep({ env, algorithm, totalSteps, numEnvs: 2, checkpoint: { everySteps: 0 } }), ({ files }) => {
    const found = [...files].find(([path]) => path.endsWith("/replay.safetensors"))
    return found?.[1].length ?? NaN
  })

describe("the saved file of a replay buffer", () => {
  it.effect(
    "is as large as the filled part, not as the whole buffer",
    () =>
      Effect.gen(function* () {
        const small = { hidden: [8], batchSize: 8, learningStarts: 40 }
        // 101 steps of two envs, each 4 + 2 float32, are 4,848 bytes; a million would be 24 MB.
        assert.isBelow(yield* replayFileOf(Pendulum.env, Sac.make(small), 200), 8_000)
        const byPriority = Dqn.make({ ...small, prioritised: {}, bufferSize: 100_000 })
        assert.isBelow(yield* replayFileOf(CartPole.env, byPriority, 200), 12_000)
        const ofImages = Dqn.make({ ...small, bufferSize: 50_000 })
        const pixels = maze.observationSpace.shape.reduce((product, size) => product * size, 1)
        assert.isBelow(yield* replayFileOf(maze, ofImages, 200), 206 * (pixels + 40))
        const sequences = Unreal.make({ hidden: [8], nsteps: 8, replaySize: 20_000, replaySteps: 8, cell: 2 })
        assert.isBelow(yield* replayFileOf(maze, sequences, 160), 170 * (pixels + 40))
      }),
    { tags: "slow" },
  )
})

const options = { numEnvs: 2, observationSize: 4, actionSize: 1, capacity: 40, gamma: 0.9 }

const played = (steps: number) => {
  const envs = Batch.make(CartPole.env, 2)
  envs.reset(1)
  const replay = makeReplay(options)
  replay.begin(envs)
  const actions = new Int32Array(2)
  for (let step = 0; step < steps; step++) {
    actions.fill(step % 2)
    envs.step(actions)
    replay.add(actions, envs)
  }
  return replay
}

const numbersIn = (arrays: NamedArrays): Record<string, ReadonlyArray<number>> =>
  Object.fromEntries(Object.entries(arrays).map(([name, { data }]) => [name, [...data]]))

describe("a replay buffer", () => {
  it("is restored over a buffer that was fuller", () => {
    const [few, many] = [played(7), played(90)]
    const before = numbersIn(few.state())
    many.restore(structuredClone(few.state()))
    assert.deepEqual(numbersIn(many.state()), before)
    assert.strictEqual(many.size(), few.size())
  })

  it("rejects arrays that are not saved by env", () => {
    const { "rows.0": rows, "rows.1": _, ...others } = played(90).state()
    assert.throws(() => makeReplay(options).restore({ ...others, rows }), `"rows.0" is missing`)
  })

  it("rejects a position that is impossible", () => {
    const arrays = { ...played(7).state(), position: { shape: [2], data: Int32Array.of(3, 7) } }
    assert.throws(() => makeReplay(options).restore(arrays), `"position" is [3, 7]`)
  })
})

describe("priorities", () => {
  it("of a partly filled buffer are saved for that part, and replace all priorities when restored", () => {
    const filled = { numEnvs: 2, capacity: 50, used: 3 }
    const [first, second] = [makePriorities(100), makePriorities(100)]
    for (const place of [0, 2, 51]) first.set(place, place + 1)
    for (let place = 0; place < 100; place++) second.set(place, 7)
    const state = first.state(filled)
    assert.deepEqual([...state["priorities.0"].data], [1, 0, 3])
    assert.deepEqual([...state["priorities.1"].data], [0, 52, 0])
    second.restore(structuredClone(state), filled)
    assert.strictEqual(second.total(), 56)
    assert.strictEqual(second.get(51), 52)
    assert.strictEqual(second.get(80), 0)
  })
})
