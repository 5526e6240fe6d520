import { Deferred, Effect, Fiber } from "effect"
import { assert, describe, it } from "vitest"
import { configOf, resultsFolder, runConfig, runFiles, trained, validated } from "./smallTraining.ts"

/** The runs end at different steps: at some interruptions one of them has ended, and the other has not. */
const runs = {
  a: runConfig(1, { ...validated, max_steps: 2 }),
  b: runConfig(2, { ...validated, max_steps: 5 }),
}
const total = 7

/** Starts a training and interrupts it after some updates. Returns the run's folder. */
const interrupted = Effect.fnUntraced(function* (resultsDir: string, updates: number, resume?: string) {
  const reached = yield* Deferred.make<void>()
  let runDir = ""
  const training = trained(configOf(runs), {
    resultsDir,
    ...(resume === undefined ? {} : { resume }),
    onOpen: (directory) => void (runDir = directory),
    onEvent: (event) => {
      if (event._tag === "UpdateApplied" && event.update >= updates) Deferred.doneUnsafe(reached, Effect.void)
    },
  })
  const fiber = yield* Effect.forkChild(training)
  yield* Deferred.await(reached)
  yield* Fiber.interrupt(fiber)
  return runDir
})

describe("an interrupted training that is resumed", () => {
  for (const moments of [[3], [1, 5, total]]) {
    const tags = moments.length === 1 ? [] : "slow"
    it(`ends with the digest of one that was not interrupted, after ${moments.join(" or ")} updates`, { tags }, () =>
      Effect.runPromise(
        Effect.gen(function* () {
          const resultsDir = yield* resultsFolder
          const whole = yield* trained(configOf(runs), { resultsDir })
          for (const updates of moments) {
            const resume = yield* interrupted(resultsDir, updates)
            const resumed = yield* trained(configOf(runs), { resultsDir, resume })
            assert.strictEqual(resumed.runDir, resume)
            assert.strictEqual(resumed.digest, whole.digest, `interrupted after ${updates} updates`)
            assert.strictEqual(resumed.steps, total)
            assert.strictEqual(resumed.episodes, whole.episodes)
            assert.deepStrictEqual(resumed.validation, whole.validation)
            for (const [name, last] of [
              ["a", 2],
              ["b", 5],
            ] as const) {
              const [one, other] = [runFiles(resume, name), runFiles(whole.runDir, name)]
              assert.deepStrictEqual(one.progressAt(last), other.progressAt(last))
              assert.deepStrictEqual(one.weightsAt(last), other.weightsAt(last))
            }
          }
        }).pipe(Effect.scoped),
      ),
    )
  }

  it("trains each sample once, also if it is interrupted again and again", { tags: "slow" }, () =>
    Effect.runPromise(
      Effect.gen(function* () {
        const resultsDir = yield* resultsFolder
        const whole = yield* trained(configOf(runs), { resultsDir })
        let resume = yield* interrupted(resultsDir, 1)
        for (const updates of [3, 4, 6]) resume = yield* interrupted(resultsDir, updates, resume)
        const resumed = yield* trained(configOf(runs), { resultsDir, resume })
        assert.strictEqual(resumed.digest, whole.digest)
        for (let step = 0; step < 5; step++) {
          const file = `rollouts/step_${step}/batch.json`
          assert.strictEqual(runFiles(resume, "b").textOf(file), runFiles(whole.runDir, "b").textOf(file))
        }
        assert.deepStrictEqual(runFiles(resume, "b").progressAt(5), runFiles(whole.runDir, "b").progressAt(5))
        assert.include(runFiles(resume, "b").progressAt(5), { totalSamples: 40 })
      }).pipe(Effect.scoped),
    ),
  )

  it("returns the result of a training that had ended, and trains nothing", { tags: "slow" }, () =>
    Effect.runPromise(
      Effect.gen(function* () {
        const resultsDir = yield* resultsFolder
        const whole = yield* trained(configOf(runs), { resultsDir })
        const again = yield* trained(configOf(runs), {
          resultsDir,
          resume: whole.runDir,
          onEvent: ({ _tag }) => assert.fail(_tag),
        })
        assert.deepStrictEqual(again, whole)
      }).pipe(Effect.scoped),
    ),
  )

  it("makes samples again that were removed, if it resumes from an older checkpoint", { tags: "slow" }, () =>
    Effect.runPromise(
      Effect.gen(function* () {
        const resultsDir = yield* resultsFolder
        const pruned = { checkpoint: { every: 1 }, rollouts: { keep: 1 }, max_steps: 4 }
        const kept = (runDir: string) =>
          [0, 1, 2, 3, 4].filter(
            (step) => runFiles(runDir, "a").textOf(`rollouts/step_${step}/batch.json`) !== undefined,
          )
        const whole = yield* trained(configOf({ a: runConfig(1, { ...pruned, max_steps: 5 }) }), { resultsDir })
        assert.deepStrictEqual(kept(whole.runDir), [4])
        const short = yield* trained(configOf({ a: runConfig(1, pruned) }), { resultsDir })
        assert.deepStrictEqual(kept(short.runDir), [3])
        const config = configOf({ a: runConfig(1, { ...pruned, max_steps: 5, resume_step: 1 }) })
        const resumed = yield* trained(config, { resultsDir, resume: short.runDir })
        assert.deepStrictEqual(runFiles(resumed.runDir, "a").weightsAt(5), runFiles(whole.runDir, "a").weightsAt(5))
        assert.deepStrictEqual(kept(resumed.runDir), [4])
      }).pipe(Effect.scoped),
    ),
  )

  it("goes back to resume_step once, and then on from its own checkpoints", { tags: "slow" }, () =>
    Effect.runPromise(
      Effect.gen(function* () {
        const resultsDir = yield* resultsFolder
        const short = { ...validated, checkpoint: { every: 1, keep: 1 }, max_steps: 5 }
        const faster = { ...short, optimiser: { type: "adamw", lr: 0.03 } }
        const first = yield* trained(configOf({ a: runConfig(1, { ...short, checkpoint: { every: 1 } }) }), {
          resultsDir,
        })
        const resume = first.runDir
        const before = runFiles(resume, "a").weightsAt(5)
        const back = configOf({ a: runConfig(1, { ...faster, resume_step: 2 }) })
        // The same from the step on, but without a run that had gone further before.
        const other = yield* trained(configOf({ a: runConfig(1, { ...short, max_steps: 2, resume_step: 0 }) }), {
          resultsDir,
        })
        const steady = yield* trained(configOf({ a: runConfig(1, faster) }), { resultsDir, resume: other.runDir })
        const resumed = yield* trained(back, { resultsDir, resume })
        assert.deepStrictEqual(runFiles(resume, "a").weightsAt(5), runFiles(steady.runDir, "a").weightsAt(5))
        assert.deepStrictEqual(resumed.validation, steady.validation)
        assert.notDeepEqual(runFiles(resume, "a").weightsAt(5), before)
        assert.strictEqual(runFiles(resume, "a").progressAt(2), null)
        // The step is applied, and its checkpoint is pruned: the same command has nothing left to do.
        assert.deepStrictEqual(
          yield* trained(back, { resultsDir, resume, onEvent: ({ _tag }) => assert.fail(_tag) }),
          resumed,
        )
        const longer = configOf({ a: runConfig(1, { ...faster, resume_step: 2, max_steps: 6 }) })
        const steps: Array<number> = []
        yield* trained(longer, {
          resultsDir,
          resume,
          onEvent: (event) => void (event._tag === "UpdateApplied" && steps.push(event.step)),
        })
        assert.deepStrictEqual([...new Set(steps)], [6])
        assert.strictEqual(runFiles(resume, "a").evicted(), undefined)
      }).pipe(Effect.scoped),
    ),
  )
})
