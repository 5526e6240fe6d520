import { Deferred, Effect, type Fiber, type Scope } from "effect"
import {
  type Answer,
  type DispatcherService,
  encodePayload,
  type Handler,
  settle,
} from "../../../src/spread/cluster/Dispatcher.ts"

/** A job that a worker has taken. */
interface Taken {
  readonly job: string
  readonly fiber: Fiber.Fiber<void>
  /** Gives the job to another worker, as after the loss of the first one. */
  readonly redeliver: Effect.Effect<void>
}

/**
 * A dispatcher that delivers jobs as a queue of a cluster does: the first answer of a job counts, and the job goes on when
 * its client is gone. `jobs` are those that workers took, in their order: a test can interrupt and redeliver them.
 */
export const makeQueue = Effect.fnUntraced(function* (
  handlers: ReadonlyArray<Handler>,
): Effect.fn.Return<DispatcherService & { readonly jobs: ReadonlyArray<Taken> }, never, Scope.Scope> {
  const scope = yield* Effect.scope
  const jobs: Array<Taken> = []
  return {
    inFlight: undefined,
    jobs,
    run: Effect.fnUntraced(function* (job, payload) {
      const handler = handlers.find(({ name }) => name === job.name)
      if (handler === undefined) throw new Error(`no worker has code for ${job.name}`)
      const sent: unknown = JSON.parse(JSON.stringify(yield* encodePayload(job, payload)))
      const answered = yield* Deferred.make<Answer>()
      const work: Effect.Effect<void> = handler.perform(sent).pipe(
        Effect.flatMap((answer) => Deferred.succeed(answered, answer)),
        Effect.orDie,
        Effect.asVoid,
      )
      const deliver: Effect.Effect<void> = Effect.map(Effect.forkIn(work, scope), (fiber) => {
        jobs.push({ job: job.name, fiber, redeliver: deliver })
      })
      yield* deliver
      return yield* settle(job, yield* Deferred.await(answered))
    }),
  }
})
