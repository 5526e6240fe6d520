/**
 * The service that spreads work over machines. A `Job` is a kind of work: its name, Schemas of what goes in and what comes
 * out, and a key that is the same whenever the same work is asked for. `run` does one job. The Layer decides where the job is
 * done:
 *
 * - By default, and with `layerEmbedded`, in this process, as a fiber. Nothing needs to be installed.
 * - With `Cluster.layer` of `cluster-node.ts`, in one of the processes that `effect worker --join postgres://…` started.
 * - With `layerUnreliable` of `unreliable.ts`, in this process, with the faults of a network: for tests.
 *
 * Delivery is at least once: a job whose worker disappears is given to another one, and if the first worker was only
 * frozen, both do it. So the result of a job may depend only on its payload, and a job that writes files must publish them
 * atomically. Then the results are the same wherever, and however often, the jobs are done.
 *
 * @example
 * ```ts
 * const square = Dispatcher.job({
 *   name: "square",
 *   payload: Schema.Struct({ of: Schema.Finite }),
 *   result: Schema.Finite,
 *   failure: Schema.Never,
 *   key: ({ of }) => String(of),
 * })
 * const dispatcher = yield* Dispatcher.Dispatcher
 * const nine = yield* dispatcher.run(square, { of: 3 }, Effect.succeed(3 * 3))
 * ```
 */
import { Context, Effect, Layer, Semaphore } from "effect"
import * as Schema from "effect/Schema"
import { WorkerError } from "../workers/WorkerError.ts"

/** A kind of work that may be done on another machine. */
export interface Job<Payload, Result, Failure> {
  readonly name: string
  readonly payload: Schema.Codec<Payload, unknown>
  readonly result: Schema.Codec<Result, unknown>
  readonly failure: Schema.Codec<Failure, unknown>
  /** Identifies the work: payloads with the same key are done once. The key names the run and the index of the work in it. */
  readonly key: (payload: Payload) => string
}

/** Defines a kind of work. */
export const job = <Payload, Result, Failure>(
  definition: Job<Payload, Result, Failure>,
): Job<Payload, Result, Failure> => definition

export interface DispatcherService {
  /**
   * The number of jobs that the caller should have under way at once. If it is defined, callers group small work into larger
   * jobs. It is undefined if the jobs are done in this process: then the caller decides.
   */
  readonly inFlight: number | undefined
  /**
   * Does one job, and returns its result. `here` is the same job as an Effect of this process; a Layer that sends jobs to
   * other machines sends the payload, and does not run `here`.
   */
  readonly run: <Payload, Result, Failure, R>(
    job: Job<Payload, Result, Failure>,
    payload: Payload,
    here: Effect.Effect<Result, Failure, R>,
  ) => Effect.Effect<Result, Failure | WorkerError, R>
}

/** The service that spreads jobs. By default, they are done in this process, as many at once as the caller starts. */
export const Dispatcher = Context.Reference<DispatcherService>("effect-rl/Dispatcher", {
  defaultValue: () => ({ inFlight: undefined, run: (_job, _payload, here) => here }),
})

/** Does the jobs in this process, at most `concurrency` of them at once. */
export const layerEmbedded = ({ concurrency }: { readonly concurrency: number }): Layer.Layer<never> =>
  Layer.sync(Dispatcher, () => {
    const slots = Semaphore.makeUnsafe(concurrency)
    return { inFlight: undefined, run: (_job, _payload, here) => slots.withPermit(here) }
  })

/** The code of a worker that does one kind of job. `Handler.of` makes it from typed functions. */
export interface Handler {
  readonly name: string
  /** Decodes the payload, does the job, and encodes its result. */
  readonly perform: (payload: unknown) => Effect.Effect<Answer, WorkerError>
}

/** The end of a job as it is sent: it holds the encoded result, or the encoded failure. */
export const Answer = Schema.Union([
  Schema.TaggedStruct("Done", { result: Schema.Unknown }),
  Schema.TaggedStruct("Failed", { failure: Schema.Unknown }),
])
export type Answer = typeof Answer.Type

const done = (result: unknown): Answer => ({ _tag: "Done", result })
const failed = (failure: unknown): Answer => ({ _tag: "Failed", failure })

/** Makes the code of a worker that does jobs of this kind by calling `perform`. */
export const handler = <Payload, Result, Failure>(
  job: Job<Payload, Result, Failure>,
  perform: (payload: Payload) => Effect.Effect<Result, Failure>,
): Handler => ({
  name: job.name,
  perform: (payload) => Effect.flatMap(decodePayload(job, payload), (decoded) => answer(job, perform(decoded))),
})

/** Does a job, and encodes how it ended. */
export const answer = <Payload, Result, Failure, R>(
  job: Job<Payload, Result, Failure>,
  work: Effect.Effect<Result, Failure, R>,
): Effect.Effect<Answer, WorkerError, R> =>
  Effect.matchEffect(work, {
    onSuccess: (result) => Effect.map(encode(job, "result", job.result, result), done),
    onFailure: (failure) => Effect.map(encode(job, "failure", job.failure, failure), failed),
  })

/** Decodes how a job ended: returns its result, or fails with its failure. */
export const settle = <Payload, Result, Failure>(
  job: Job<Payload, Result, Failure>,
  answer: Answer,
): Effect.Effect<Result, Failure | WorkerError> =>
  answer._tag === "Done"
    ? decode(job, "result", job.result, answer.result)
    : Effect.flatMap(decode(job, "failure", job.failure, answer.failure), Effect.fail)

/**
 * The largest number of characters of a payload as JSON. It is limited because the database keeps several copies of a
 * payload.
 */
export const largestPayload = 8 << 20

/** Encodes the payload of a job as JSON. Fails if it is too large to be sent. */
export const encodePayload = <Payload, Result, Failure>(
  job: Job<Payload, Result, Failure>,
  payload: Payload,
): Effect.Effect<unknown, WorkerError> =>
  Effect.tap(encode(job, "payload", job.payload, payload), (encoded) => {
    const { length } = JSON.stringify(encoded)
    if (length <= largestPayload) return Effect.void
    const message = `job ${job.name}: its payload has ${mebibytes(length)} MiB; expected at most ${mebibytes(largestPayload)} MiB; put large parts into files that all machines share`
    return Effect.fail(WorkerError.dispatch(job.name, message))
  })

const mebibytes = (bytes: number): string => (bytes / 2 ** 20).toFixed(1)

const decodePayload = <Payload, Result, Failure>(job: Job<Payload, Result, Failure>, payload: unknown) =>
  decode(job, "payload", job.payload, payload)

type Named = { readonly name: string }

const encode = <A>(job: Named, part: string, schema: Schema.Codec<A, unknown>, value: A) =>
  Effect.mapError(Schema.encodeUnknownEffect(schema)(value), wrong(job, part))

const decode = <A>(job: Named, part: string, schema: Schema.Codec<A, unknown>, value: unknown) =>
  Effect.mapError(Schema.decodeUnknownEffect(schema)(value), wrong(job, part))

const wrong =
  ({ name }: Named, part: string) =>
  ({ message }: Schema.SchemaError): WorkerError =>
    WorkerError.dispatch(name, `job ${name}: its ${part} has the wrong form: ${message}`)
