import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import * as A2c from "../../../src/rl/algorithms/rollouts/A2c.ts"
import * as Ppo from "../../../src/rl/algorithms/rollouts/Ppo.ts"
import { backend } from "../../../src/tensor/backend/named-node.ts"
import type { BackendName } from "../../../src/tensor/backend/names.ts"
import * as CartPole from "../../../src/rl/env/classic/CartPole.ts"
import * as Wrapper from "../../../src/rl/env/Wrapper.ts"
import { Ranks } from "../../../src/spread/ranks/Ranks.ts"
import { keep } from "../../rl/train/inMemory.ts"
import { resumable } from "../../rl/train/resumable.ts"
import { hubWithFibers, type TestRank } from "./fibers.ts"

const hidden = [16]
const blind = Wrapper.keepObservations(CartPole.env, [0, 2])
const ppo = { env: CartPole.env, algorithm: Ppo.make({ hidden, nsteps: 32, slices: 4 }), totalSteps: 1024 }
const trainings = {
  PPO: ppo,
  "PPO with a KL limit": {
    ...ppo,
    algorithm: Ppo.make({ hidden, nsteps: 32, slices: 4, learningRate: 1e-2, targetKl: 0.002 }),
  },
  "PPO with a memory": {
    env: blind,
    algorithm: Ppo.make({ hidden, nsteps: 32, slices: 4, lstm: 8, sequence: 8 }),
    totalSteps: 768,
  },
  A2C: { env: CartPole.env, algorithm: A2c.make({ hidden, slices: 4 }), totalSteps: 400 },
}

/** Trains on some ranks, and counts the answers of all but the master. */
const trained = (
  ranks: number,
  input: Parameters<typeof keep>[0],
  device: BackendName = "wasm",
  disturb: (rank: TestRank, answer: number) => Effect.Effect<Uint8Array | void> = () => Effect.void,
) =>
  Effect.gen(function* () {
    let answers = 0
    const hub = yield* hubWithFibers(ranks - 1, (rank) => Effect.suspend(() => disturb(rank, ++answers)))
    const { result, events } = yield* keep(input, backend(device)).pipe(Effect.provideService(Ranks, hub))
    return { digest: result.digest, answers: answers, log: JSON.stringify(events) }
  }).pipe(Effect.scoped)

describe("a training whose minibatches have slices", () => {
  for (const [name, input] of Object.entries(trainings))
    for (const device of name === "PPO" ? (["wasm", "cpu"] as const) : (["wasm"] as const))
      it.effect(
        `has the same digest on 1, 2 and 4 ranks: ${name} on ${device}`,
        () =>
          Effect.gen(function* () {
            const alone = yield* trained(1, input, device)
            assert.strictEqual(alone.answers, 0)
            for (const ranks of [2, 4]) {
              const { digest, answers } = yield* trained(ranks, input, device)
              assert.strictEqual(digest, alone.digest)
              assert.isAtLeast(answers, ranks)
              assert.strictEqual(answers % (ranks - 1), 0)
            }
          }),
        // PPO on wasm, whose slices the others have, too, stays quick.
        { tags: name === "PPO" && device === "wasm" ? [] : "slow" },
      )

  it.effect("has the same digest if ranks are lost before their answers arrive", () =>
    Effect.gen(function* () {
      const alone = yield* trained(1, ppo)
      const disturbed = yield* trained(4, ppo, "wasm", ({ rank, cut }, answer) =>
        Effect.sync(() => {
          if ((rank === 2 && answer > 5) || (rank === 1 && answer > 20)) cut(`rank ${rank} was killed by the test`)
        }),
      )
      assert.strictEqual(disturbed.digest, alone.digest)
      assert.isBelow(disturbed.answers, 3 * 4 * 4 * 4)
      assert.isAbove(disturbed.answers, 4 * 4 * 4)
    }),
  )

  it.effect("has the same digest if a rank answers too late, and does without it", () =>
    Effect.gen(function* () {
      const alone = yield* trained(1, ppo)
      const late = yield* trained(3, ppo, "wasm", ({ rank }, answer) =>
        rank === 1 && answer > 4 ? Effect.andThen(TestClock.adjust("10 seconds"), Effect.never) : Effect.void,
      )
      assert.strictEqual(late.digest, alone.digest)
      assert.isBelow(late.answers, 2 * 4 * 4 * 4)
    }),
  )

  it.effect("has the same digest if a rank sends results of a wrong size, and does without it", () =>
    Effect.gen(function* () {
      const alone = yield* trained(1, ppo)
      const wrong = yield* trained(2, ppo, "wasm", (_, answer) => Effect.succeed(new Uint8Array(answer)))
      assert.deepStrictEqual([wrong.digest, wrong.answers], [alone.digest, 1])
    }),
  )

  it.effect("leaves the slices of a second program to the master", () =>
    Effect.gen(function* () {
      const two = Effect.gen(function* () {
        const answers = { count: 0 }
        const hub = yield* hubWithFibers(1, () => Effect.sync(() => void answers.count++))
        const digests: Array<string> = []
        for (const seed of [1, 2]) {
          const input = { ...ppo, seed, totalSteps: 256 }
          const { result } = yield* keep(input, backend("wasm")).pipe(Effect.provideService(Ranks, hub))
          digests.push(result.digest, (yield* trained(1, input)).digest, String(answers.count))
        }
        return digests
      })
      const [first, firstAlone, answers, second, secondAlone, later] = yield* Effect.scoped(two)
      assert.strictEqual(first, firstAlone)
      assert.strictEqual(second, secondAlone)
      assert.strictEqual(later, answers)
    }),
  )

  it.effect("resumes on another number of ranks, bit for bit", () =>
    Effect.gen(function* () {
      let opened = 0
      const many = yield* hubWithFibers(3)
      const few = yield* hubWithFibers(1)
      const ranks = Ranks.of({
        open: (spec, program) => (opened++ === 0 ? many : few).open(spec, program),
      })
      const { whole, resumed, stoppedAt } = yield* resumable({ ...ppo, totalSteps: 1024 }, 256).pipe(
        Effect.provideService(Ranks, ranks),
      )
      assert.strictEqual(opened, 2)
      assert.isBelow(stoppedAt, 1024)
      assert.strictEqual(resumed.digest, whole.digest)
    }).pipe(Effect.scoped),
  )
})
