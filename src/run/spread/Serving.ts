/**
 * Lets a training do jobs for other machines instead of training. A worker runs the training's own Effect with the service
 * `Serving`. When the training is set up, it passes the code of its jobs to this service, and waits until it is interrupted.
 */
import { Context, Deferred, Effect, Exit, type FileSystem, type Scope } from "effect"
import * as Schema from "effect/Schema"
import { WorkerError } from "../../spread/workers/WorkerError.ts"
import { jsonText } from "../../base/text/jsonText.ts"
import type { Handler } from "../../spread/cluster/Dispatcher.ts"
import { keptOpen } from "../../spread/cluster/opened.ts"
import type { Plain } from "../../base/config/Config.ts"
import { readAttachment, type Attachment } from "./Attachment.ts"
import { SentTraining, trainingFields } from "./SentTraining.ts"

/** The jobs that a training can do for other machines. */
interface Served {
  /** The settings on which the results of its jobs depend. */
  readonly identity: Plain
  readonly handlers: ReadonlyArray<Handler>
}

/** The service that a worker provides to the training that it has loaded; undefined if the training should train. */
export const Serving = Context.Reference<
  | {
      readonly offer: (served: Served) => Effect.Effect<never>
      readonly read: (job: string, attachment: Attachment) => Effect.Effect<Uint8Array, WorkerError>
    }
  | undefined
>("effect-rl/run/Serving", { defaultValue: () => undefined })

/** Loads a training that a client describes. The result is the training's Effect, which never ends. */
type LoadTraining<R> = (
  training: SentTraining,
) => Effect.Effect<Effect.Effect<unknown, { readonly message: string }, R>, { readonly message: string }, R>

const fieldsOf = Schema.decodeUnknownEffect(
  Schema.Struct({ training: trainingFields.training, identity: trainingFields.identity }),
)
const parseTraining = Schema.decodeUnknownEffect(jsonText(SentTraining))

/** Makes the code of a worker that does these jobs of trainings. Each training is loaded when its first job arrives. */
export const trainingHandlers = Effect.fnUntraced(function* <R>(
  jobs: ReadonlyArray<string>,
  load: LoadTraining<R>,
): Effect.fn.Return<ReadonlyArray<Handler>, never, R | FileSystem.FileSystem | Scope.Scope> {
  const fs = yield* Effect.context<FileSystem.FileSystem>()
  const needs = yield* Effect.context<R>()
  const read = (job: string, attachment: Attachment) => Effect.provideContext(readAttachment(job, attachment), fs)
  const get = yield* keptOpen((text) =>
    Effect.provideContext(
      Effect.flatMap(parseTraining(text), (sent) => Effect.flatMap(load(sent), (training) => served(training, read))),
      needs,
    ),
  )
  const perform = (job: string) =>
    Effect.fnUntraced(function* (payload: unknown) {
      const { training, identity } = yield* Effect.mapError(fieldsOf(payload), ({ message }) =>
        WorkerError.dispatch(job, `job ${job}: its payload has the wrong form: ${message}`),
      )
      const { handlers } = yield* get(job, JSON.stringify(training), identity)
      const handler = handlers.find(({ name }) => name === job)
      if (handler !== undefined) return yield* handler.perform(payload)
      return yield* WorkerError.dispatch(job, `on a worker of the cluster: this training has no job ${job}`)
    }, Effect.scoped)
  return jobs.map((name) => ({ name, perform: perform(name) }))
})

/** Runs a training until the scope closes, and returns the jobs that it can do. */
const served = Effect.fnUntraced(function* <R>(
  training: Effect.Effect<unknown, { readonly message: string }, R>,
  read: NonNullable<typeof Serving.Service>["read"],
) {
  const offered = yield* Deferred.make<Served, { readonly message: string }>()
  const offer = (one: Served) => Effect.andThen(Deferred.succeed(offered, one), Effect.never)
  yield* training.pipe(
    Effect.provideService(Serving, { offer, read }),
    Effect.onExit((exit) =>
      Exit.isFailure(exit)
        ? Deferred.failCause(offered, exit.cause)
        : Deferred.fail(offered, { message: "expected a training by Train.run or Runtime.run, found another run" }),
    ),
    Effect.forkScoped,
  )
  return yield* Deferred.await(offered)
})
