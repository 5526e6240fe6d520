/**
 * Tries the steps of a job again while the database is gone, without a limit. Gives up on a step that keeps failing although
 * the database answers, for example because an answer is too large for it.
 */
import { Cause, Context, Effect, Exit } from "effect"
import { WorkerError } from "../workers/WorkerError.ts"
import type { Answer } from "./Dispatcher.ts"
import { reasonOf } from "./reason.ts"

/** Tells whether the database of the cluster answers. By default it always does, because jobs in memory need no database. */
export const DatabaseAnswers = Context.Reference<Effect.Effect<boolean>>("effect-rl/cluster/DatabaseAnswers", {
  defaultValue: () => Effect.succeed(true),
})

/** A worker gives up on a step that has failed this often although the database answered. */
const mostTries = 5

/** The pause between two tries. */
const pause = "1 second"

/** Names a job in messages. */
interface OfJob {
  readonly job: string
  readonly key: string
}

/**
 * Makes a counter of a step's failures while the database answers. Each call of it reports one failure, and waits before the
 * next try. After `most` failures it fails with an error that names the job and the cause.
 */
export const patience = ({ job, key }: OfJob, step: string, most = mostTries) => {
  let failures = 0
  return Effect.fnUntraced(function* (cause: Cause.Cause<unknown>) {
    if (yield* yield* DatabaseAnswers) failures++
    if (failures >= most) {
      const reason = reasonOf(Cause.squash(cause))
      return yield* WorkerError.dispatch(job, `job ${key}: ${step} failed ${most} times: ${reason}`)
    }
    yield* Effect.sleep(pause)
  })
}

/** Runs a step of a job until it succeeds, or has failed too often while the database answers. */
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
 * The largest number of characters of an answer as JSON. The database keeps an answer in messages of at most 256 MiB, and a
 * character has at most three bytes.
 */
export const largestAnswer = 64 << 20

/** Fails if the answer of a job is too large to be sent. */
export const checkSize = ({ job, key }: OfJob, answer: Answer): Effect.Effect<void, WorkerError> =>
  Effect.suspend(() => {
    const size = sizeOf(answer)
    if (size <= largestAnswer) return Effect.void
    const shown = size === Infinity ? "more than JavaScript can write" : `${(size / 2 ** 20).toFixed(1)} MiB`
    const message = `job ${key}: its answer is too large: ${shown} as JSON, expected at most ${largestAnswer >> 20} MiB`
    return Effect.fail(WorkerError.dispatch(job, message))
  })

/** Returns the number of characters of a value as JSON; infinity if the text would be longer than JavaScript allows. */
const sizeOf = (value: Answer): number => {
  try {
    return JSON.stringify(value).length
  } catch {
    return Infinity
  }
}
