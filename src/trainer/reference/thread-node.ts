/** Implements `ReferenceThreads` with Node's worker threads, whose program is `reference-node.ts`. */
import { Effect, Layer, Schema, type Scope } from "effect"
import { backendNames } from "../../tensor/backend/names.ts"
import { programBeside } from "../../base/files/programBeside.ts"
import { askedThread } from "../../spread/workers/asked-thread-node.ts"
import type { Answer, Question } from "./messages.ts"
import { ReferenceTask, type ReferenceThread, ReferenceThreads } from "./ReferenceThreads.ts"

const program = programBeside(import.meta.url, "reference-node")

/** The data that the thread starts with. */
export const Start = Schema.Struct({
  task: ReferenceTask,
  name: Schema.Literals(backendNames),
  threads: Schema.Int,
})

/** Starts threads for reference models. `threads` is the number of threads that compute in each of them. */
export const layer = ({ threads = 1 }: { readonly threads?: number }): Layer.Layer<ReferenceThreads> =>
  Layer.succeed(ReferenceThreads, {
    start: Effect.fnUntraced(function* (task): Effect.fn.Return<ReferenceThread, never, Scope.Scope> {
      const data = yield* Effect.orDie(Schema.encodeUnknownEffect(Start)({ task, name: task.device, threads }))
      const { ask } = yield* askedThread<Question, Answer>({ name: "reference", program, data })
      return { compute: ask }
    }),
  })
