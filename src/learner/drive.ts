import { Effect } from "effect"
import { BackendError, type Program } from "../backend/Backend.ts"
import { EnvError } from "../env/EnvError.ts"
import { attempt } from "../config/attempt.ts"

/** A loop that is plain code but for the programs that it needs run: it yields each of them, and goes on when it was. */
export type Steps<A> = Generator<Program, A, void>

/**
 * Runs such a loop: in one go where its programs answer synchronously, else waiting for each of them.
 *
 * @example
 * ```ts
 * drive(function* () {
 *   act.feeds.observations.set(envs.observations)
 *   yield act
 *   envs.step(act.results.actions)
 * })
 * ```
 */
export const drive = Effect.fnUntraced(function* <A>(
  steps: () => Steps<A>,
): Effect.fn.Return<A, BackendError | EnvError> {
  const going = steps()
  while (true) {
    const pause = yield* attempt(
      () => {
        let step = going.next()
        while (step.done !== true && step.value.runSync !== undefined) {
          step.value.runSync()
          step = going.next()
        }
        return step
      },
      BackendError,
      EnvError,
    )
    if (pause.done === true) return pause.value
    yield* pause.value.run
  }
})
