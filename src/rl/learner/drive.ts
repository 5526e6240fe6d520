/**
 * Runs loops, such as rollouts and validations, that alternate between JavaScript, compiled programs, and envs that run
 * elsewhere.
 */
import { Effect } from "effect"
import { BackendError, type Program } from "../../tensor/backend/Backend.ts"
import type { Wait } from "../env/BatchEnv.ts"
import { EnvError } from "../../base/EnvError.ts"
import { attempt } from "../../base/config/attempt.ts"

/** The thing that a loop waits for: a program, or (made by `waitFor`) a batch whose envs run elsewhere. */
export type Awaited = Pick<Program, "runSync"> & { readonly run: Effect.Effect<void, BackendError | EnvError> }

/** A loop that yields each program that has to run next, and continues when the program has run. */
export type Steps<A> = Generator<Awaited, A, void>

/**
 * Makes the value with which a loop waits for a batch. Most batches never need it: they are done when their function
 * returns.
 */
export const waitFor = (wait: Effect.Effect<void, EnvError>): Awaited => ({ run: wait })

/** Calls a function of a batch, and waits until its envs have done their work. */
export const settled = (body: () => Wait): Effect.Effect<void, EnvError> =>
  Effect.flatMap(attempt(body, EnvError), (wait) => wait ?? Effect.void)

/**
 * Runs a loop and each program that it yields, and returns the loop's result. A program with `runSync` runs at once;
 * for any other program, and for envs that run elsewhere, the Effect waits.
 *
 * @example
 * ```ts
 * const batch = Batch.make(CartPole.env, 4)
 * const actions = new Int32Array(4)
 * drive(function* () {
 *   program.feeds.observations.set(batch.observations)
 *   yield program
 *   actions.set(program.results.actions)
 *   batch.step(actions)
 * })
 * ```
 */
export const drive = Effect.fnUntraced(function* <A>(
  steps: () => Steps<A>,
): Effect.fn.Return<A, BackendError | EnvError> {
  const loop = steps()
  while (true) {
    const stop = yield* attempt(
      () => {
        let step = loop.next()
        while (step.done !== true && step.value.runSync !== undefined) {
          step.value.runSync()
          step = loop.next()
        }
        return step
      },
      BackendError,
      EnvError,
    )
    if (stop.done === true) return stop.value
    yield* stop.value.run
  }
})
