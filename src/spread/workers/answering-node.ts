/** Answers the questions of another thread, which has started this one by `askedThread`. */
import { Effect, type Scope, Semaphore } from "effect"
import * as WorkerRunner from "effect/workers/WorkerRunner"
import type { Answered, Asked } from "./asked-thread-node.ts"

/** An answer, and the buffers in it that are moved to the other thread instead of copied. */
interface Answering<Answer> {
  readonly answer: Answer
  readonly moved: ReadonlyArray<ArrayBuffer>
}

/** Answers one question after another, in the order in which they were asked, until the scope closes. */
export const answering = Effect.fnUntraced(function* <Question, Answer>(
  answerTo: (question: Question) => Effect.Effect<Answering<Answer>, { readonly message: string }>,
): Effect.fn.Return<void, { readonly message: string }, Scope.Scope | WorkerRunner.WorkerRunnerPlatform> {
  const one = yield* Semaphore.make(1)
  const runner = yield* (yield* WorkerRunner.WorkerRunnerPlatform).start<Answered<Answer>, Asked<Question>>()
  yield* runner.run((port, { id, question }) =>
    Effect.match(answerTo(question), {
      onSuccess: ({ answer, moved }) => runner.sendUnsafe(port, { id, answer }, moved),
      onFailure: ({ message }) => runner.sendUnsafe(port, { id, failure: message }),
    }).pipe(one.withPermits(1)),
  )
})
