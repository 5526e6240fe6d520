import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { below, folderOf, history, type Input, keep, lasting, runIn, tasks } from "./support.ts"

const input: Input = {
  agent: history,
  train: tasks(4),
  validation: tasks(2),
  seed: 3,
  runtime: { validationFreq: 2, runValidationAtStart: true, checkpointEveryEpisodes: 3 },
  output: { saveMemoryEvery: 1, saveRollouts: true },
}

/** Holds the run up at its nth batch of events until somebody has begun to stop it. */
const stoppedAt = (batch: number) =>
  Effect.gen(function* () {
    const reached = yield* Deferred.make<void>()
    const goOn = yield* Deferred.make<void>()
    let emitted = 0
    const first = runIn(
      {
        sinks: [
          () =>
            Effect.succeed({
              emit: () =>
                Effect.suspend(() =>
                  ++emitted === batch
                    ? Effect.andThen(Deferred.succeed(reached, undefined), Deferred.await(goOn))
                    : Effect.void,
                ),
              flush: Effect.void,
            }),
        ],
      },
      input,
    )
    const fiber = yield* Effect.forkChild(Effect.exit(first.effect))
    yield* Effect.race(Deferred.await(reached), Fiber.await(fiber))
    const stopping = yield* Effect.forkChild(Fiber.interrupt(fiber))
    yield* Effect.yieldNow
    yield* Deferred.succeed(goOn, undefined)
    yield* Fiber.await(stopping)
    return { files: first.files, events: first.events }
  })

describe("a run that is stopped while it tells of something", () => {
  it.effect("goes on as if it had not been, whatever that was", () =>
    Effect.gen(function* () {
      const whole = yield* keep(input)
      let batch = 0
      while (true) {
        const { files, events } = yield* stoppedAt(++batch)
        const folder = folderOf(files)
        if (below(files, `${folder}/`).has("return.json")) break
        const resumed = yield* keep(input, { files, resume: folder })
        assert.deepEqual(lasting(resumed.files), lasting(whole.files), `stopped at batch ${batch} of ${events.length}`)
      }
      // More than there are episodes, validations and checkpoints.
      assert.isAbove(batch, 20)
    }),
  )
})
