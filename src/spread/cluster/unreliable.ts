/**
 * Does jobs in this process with the faults of an unreliable network, for tests: a job may be done several times, its answer
 * may be lost, repeated or late, and answers may overtake each other. Payloads and answers are sent as JSON. The faults
 * depend only on the seed, and on the keys of the jobs.
 *
 * @example
 * ```ts
 * const same = Effect.provide(evaluation, layerUnreliable({ seed: 1, handlers: [] }))
 * ```
 */
import { Effect, Layer, Schema } from "effect"
import { WorkerError } from "../workers/WorkerError.ts"
import { parsedJson } from "../../base/text/text.ts"
import * as Rng from "../../base/rng/Rng.ts"
import { Answer, answer, Dispatcher, encodePayload, type Handler, type Job, settle } from "./Dispatcher.ts"

interface Unreliable {
  readonly seed: number
  /** The number of jobs that callers have under way at once. */
  readonly inFlight?: number
  /** The code of workers. A job without a handler is done by the caller's own code. */
  readonly handlers: ReadonlyArray<Handler>
}

/** The largest number of attempts of one job whose answers are lost. */
const mostLost = 3
/** The largest number of scheduler turns before an answer arrives. */
const mostLate = 20

/** Does jobs in this process with faults, which depend only on `seed`. */
export const layerUnreliable = ({ seed, inFlight = 8, handlers }: Unreliable): Layer.Layer<never> => {
  const byName = new Map(handlers.map((one) => [one.name, one]))
  return Layer.succeed(Dispatcher, {
    inFlight,
    run: Effect.fnUntraced(function* <Payload, Result, Failure, R>(
      job: Job<Payload, Result, Failure>,
      payload: Payload,
      here: Effect.Effect<Result, Failure, R>,
    ) {
      const random = Rng.stream(seed, "unreliable", `${job.name} ${job.key(payload)}`)
      const sent = overTheWire(yield* encodePayload(job, payload))
      const handler = byName.get(job.name)
      const attempt = handler === undefined ? answer(job, here) : handler.perform(sent)
      const late = turns(random.integer(mostLate))
      // Some attempts do the work, but their answers are lost.
      for (let lost = random.integer(mostLost + 1); lost > 0; lost--) yield* Effect.exit(attempt)
      yield* late
      // Sometimes two workers do the job. Both answers arrive, in either order.
      const twice = random.integer(2) === 1
      const answers = yield* Effect.all(twice ? [Effect.andThen(late, attempt), attempt] : [attempt], {
        concurrency: "unbounded",
      })
      yield* late
      const chosen = answers[random.integer(answers.length)]
      return yield* settle(job, yield* received(job.name, chosen))
    }),
  })
}

const isAnswer = Schema.is(Answer)

/** Lets other fibers run for some turns. */
const turns = (count: number): Effect.Effect<void> =>
  Effect.forEach(Array.from({ length: count }), () => Effect.yieldNow, { discard: true })

/** Returns the value as it arrives: as JSON text that is parsed again. */
const overTheWire = (value: unknown): unknown => parsedJson(JSON.stringify(value))

const received = (job: string, value: Answer): Effect.Effect<Answer, WorkerError> => {
  const sent = overTheWire(value)
  return isAnswer(sent)
    ? Effect.succeed(sent)
    : Effect.fail(WorkerError.dispatch(job, `job ${job}: its answer is not JSON`))
}
