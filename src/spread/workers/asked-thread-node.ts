/**
 * Starts a thread that answers questions: each question is a message, and the thread's program (see `answering-node.ts`) answers
 * it with another.
 */
import { Context, Deferred, Effect, Layer, type Scope } from "effect"
import { makeThread, type ThreadOptions } from "./thread-node.ts"
import { WorkerError } from "./WorkerError.ts"

/** A question with its number. */
export interface Asked<Question> {
  readonly id: number
  readonly question: Question
}

/** An answer with the number of its question, or the reason why there is none. */
export type Answered<Answer> =
  | { readonly id: number; readonly answer: Answer }
  | { readonly id: number; readonly failure: string }

interface AskedThread<Question, Answer> {
  /**
   * Sends a question, and returns the Effect that waits for its answer. It fails with `failed` if the thread could not answer
   * this question, and with `lost` if the thread has ended.
   */
  readonly ask: (question: Question) => Effect.Effect<Effect.Effect<Answer, WorkerError>>
  /** Waits until the thread has ended by itself, and fails with the reason. */
  readonly untilLost: Effect.Effect<never, WorkerError>
}

/** Loads the module only when a thread is started, because most programs start none. */
const workerModule = Effect.promise(() => import("effect/workers/Worker"))

/** Starts a thread, which works until the scope closes. */
export const askedThread = Effect.fnUntraced(function* <Question, Answer>(
  options: ThreadOptions,
): Effect.fn.Return<AskedThread<Question, Answer>, never, Scope.Scope> {
  const { WorkerPlatform } = yield* workerModule
  const { platform: layer, untilLost } = yield* makeThread(options)
  const platform = yield* Layer.build(layer)
  const worker = yield* Context.get(platform, WorkerPlatform)
    .spawn<Answered<Answer>, Asked<Question>>(0)
    .pipe(Effect.provideContext(platform), Effect.orDie)
  const open = new Map<number, Deferred.Deferred<Answer, WorkerError>>()
  yield* worker
    .run((answered) =>
      Effect.sync(() => {
        const asked = open.get(answered.id)
        open.delete(answered.id)
        if (asked === undefined) return
        const answer =
          "failure" in answered ? Effect.fail(WorkerError.failed(answered.failure)) : Effect.succeed(answered.answer)
        Deferred.doneUnsafe(asked, answer)
      }),
    )
    // The end of the thread is ignored here, because `untilLost` reports it.
    .pipe(Effect.ignore, Effect.forkScoped)
  let count = 0
  return {
    ask: (question) =>
      Effect.suspend(() => {
        const id = count++
        const answer = Deferred.makeUnsafe<Answer, WorkerError>()
        open.set(id, answer)
        return Effect.as(
          Effect.ignore(worker.send({ id, question })),
          Effect.raceFirst(Deferred.await(answer), untilLost),
        )
      }),
    untilLost,
  }
})
