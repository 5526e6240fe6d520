import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Sac from "../../../src/rl/algorithms/replay/Sac.ts"
import * as Pendulum from "../../../src/rl/env/classic/Pendulum.ts"
import * as Env from "../../../src/rl/env/Env.ts"
import * as Space from "../../../src/rl/env/Space.ts"
import { resumable } from "./resumable.ts"

const zeros = Array.from({ length: 100_000 }, () => 0)
const ones = zeros.map(() => 1)

/** A moment of it takes 400 KB: after 90 of them, a checkpoint holds more than 32 MB. */
const wide = Env.make({
  id: "wide",
  observationSpace: Space.box(zeros, ones),
  actionSpace: Pendulum.env.actionSpace,
  maxSteps: 30,
  reset: () => ({ at: 0 }),
  observe: ({ at }) => new Float32Array(100_000).fill(at / 37),
  step: ({ at }) => ({ state: { at: at + 1 }, reward: at, terminated: false }),
})

describe("a replay buffer too large for a copy of itself", () => {
  it.effect("is saved straight from its arrays, and resumed from", () =>
    Effect.gen(function* () {
      const algorithm = Sac.make({ hidden: [2], batchSize: 4, learningStarts: 92, bufferSize: 100 })
      const { whole, resumed } = yield* resumable({ env: wide, numEnvs: 1, algorithm, totalSteps: 96 }, 90)
      assert.strictEqual(resumed.digest, whole.digest)
    }),
  )
})
