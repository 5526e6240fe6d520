import { assert, it } from "@effect/vitest"
import { Effect, Logger } from "effect"
import { describe } from "vitest"
import { WorkerError } from "../../../src/spread/workers/WorkerError.ts"
import { resumeLost } from "../../../src/trainer/ranks/resumeLost.ts"
import { ranksMissing } from "../../../src/trainer/store/Store.ts"

const lost = WorkerError.lost("rank 1 was lost")

/** Runs a training whose starts do these numbers of steps and then lose a rank; the start after them succeeds. */
const trainingOf = (stepsOfStarts: ReadonlyArray<number>, error: { readonly message: string } = lost) =>
  Effect.gen(function* () {
    let steps = 0
    let starts = 0
    const training = Effect.suspend(() => {
      const done = stepsOfStarts[starts++]
      steps += done ?? 0
      return done === undefined ? Effect.succeed("trained") : Effect.fail(error)
    })
    const outcome = yield* Effect.match(
      resumeLost(training, () => steps),
      { onSuccess: (value) => value, onFailure: ({ message }) => message },
    )
    return { outcome, starts }
  }).pipe(Effect.provide(Logger.layer([])))

describe("a training that loses ranks", () => {
  it.effect("starts again up to five times without a step in between", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* trainingOf([0, 0, 0, 0, 0]), { outcome: "trained", starts: 6 })
      const { outcome, starts } = yield* trainingOf([0, 0, 0, 0, 0, 0])
      assert.match(outcome, /^rank 1 was lost; .*without a step in between/)
      assert.strictEqual(starts, 6)
    }),
  )

  it.effect("starts again as often as needed while it does steps", () =>
    Effect.gen(function* () {
      assert.strictEqual((yield* trainingOf([1, 0, 0, 0, 0, 2, 0, 0, 0, 0, 1, 1, 1, 1])).outcome, "trained")
    }),
  )

  it.effect("starts again if a rank does not answer, but not after another failure", () =>
    Effect.gen(function* () {
      const silent = ranksMissing({ name: "gradients/3", ranks: 2, deadline: "10 minutes" }, [1])
      assert.strictEqual((yield* trainingOf([0], silent)).outcome, "trained")
      const failed = WorkerError.failed("rank 1: the model's folder is missing")
      assert.deepStrictEqual(yield* trainingOf([0], failed), { outcome: failed.message, starts: 1 })
    }),
  )
})
