/**
 * Tries again what fails because the database is gone, as long as it is gone; and gives up on what fails although the
 * database answers, such as an answer that is too large for it.
 */
import { Cause, Context, Effect, Exit } from "effect"
import { type Answer, DispatchError } from "./Dispatcher.ts"
import { reasonOf } from "./reason.ts"

/** Tells whether the database of the cluster answers. Jobs in memory need none, so that by default, it always does. */
export const DatabaseAnswers = Context.Reference<Effect.Effect<boolean>>("effect-rl/cluster/DatabaseAnswers", {
  defaultValue: () => Effect.succeed(true),
})

/** A worker gives up on a step of a job after so many failures while the database answers. */
const mostTries = 5

/** The pause between two tries. */
const pause = "1 second"

/** The job for which something is done. */
interface OfJob {
  readonly job: string
  readonly key: string
}

/**
 * Counts the failures of a step of a job that happened although the database answers. Each call reports one failure, and waits
 * before the next try; the last one fails with an error that names the job and the cause.
 */
export const patience = ({ job, key }: OfJob, step: string, most = mostTries) => {
  let failures = 0
  return Effect.fnUntraced(function* (cause: Cause.Cause<unknown>) {
    if (yield* yield* DatabaseAnswers) failures++
    if (failures >= most) {
      const reason = reasonOf(Cause.squash(cause))
      return yield* new DispatchError({ job, message: `job ${key}: ${step} failed ${most} times: ${reason}` })
    }
    yield* Effect.sleep(pause)
  })
}

/** Does a step of a job until it succeeds, or has failed too often. */
export const persistently = Effect.fnUntraced(function* <A, E, R>(
  of: OfJob,
  step: string,
  effect: Effect.Effect<A, E, R>,
) {
  const failed = patience(of, step)
  for (;;) {
    const exit = yield* Effect.exit(effect)
    if (Exit.isSuccess(exit)) return exit.value
    yield* failed(exit.cause)
  }
})

/**
 * The answer of a job has at most so many characters as JSON. The database keeps it in messages of at most 256 MiB, and a
 * character has at most three bytes.
 */
export const largestAnswer = 64 << 20

/** Fails if the answer of a job is too large to be sent. */
export const checkSize = ({ job, key }: OfJob, answer: Answer): Effect.Effect<void, DispatchError> =>
  Effect.suspend(() => {
    const size = sizeOf(answer)
    if (size <= largestAnswer) return Effect.void
    const shown = size === Infinity ? "more than JavaScript can write" : `${(size / 2 ** 20).toFixed(1)} MiB`
    const message = `job ${key}: its answer is too large: ${shown} as JSON, expected at most ${largestAnswer >> 20} MiB`
    return Effect.fail(new DispatchError({ job, message }))
  })

/** Returns the number of characters of a value as JSON; infinity if JavaScript has no text so long. */
const sizeOf = (value: Answer): number => {
  try {
    return JSON.stringify(value).length
  } catch {
    return Infinity
  }
}
