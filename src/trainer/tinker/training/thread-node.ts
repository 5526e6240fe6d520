/**
 * Computes a Tinker server's gradients in a thread of its own, so that meanwhile the server answers requests and its engine
 * generates on another core. The results are the same bits as in the server's thread.
 */
import { Effect, Schema, type Scope } from "effect"
import { programBeside } from "../../../base/files/programBeside.ts"
import { askedThread } from "../../../spread/workers/asked-thread-node.ts"
import type { WorkerError } from "../../../spread/workers/WorkerError.ts"
import { BackendError } from "../../../tensor/backend/Backend.ts"
import { backendNames } from "../../../tensor/backend/names.ts"
import type { TrainingPrograms } from "./TrainingPrograms.ts"
import { type WindowBatch, windowSizes } from "./windows.ts"
import type { Answer, Question } from "./messages.ts"

const program = programBeside(import.meta.url, "training-node")

/** The data that the thread starts with. */
export const TrainingTask = Schema.Struct({
  /** The folder of the base model. */
  folder: Schema.String,
  /** The largest rank of an adapter. */
  maxRank: Schema.Int,
  /** The most tokens of an example. */
  maxLength: Schema.Int,
  backend: Schema.Literals(backendNames),
  /** The number of threads that compute in this thread. */
  threads: Schema.Union([Schema.Int, Schema.Literal("auto")]),
})
export type TrainingTask = typeof TrainingTask.Type

interface TrainingThread {
  /** The programs. If the thread is lost, their computations never end: the server has to end then, and to be started again. */
  readonly programs: TrainingPrograms
  /** Waits until the thread has ended by itself, and fails with the reason. */
  readonly untilLost: Effect.Effect<never, WorkerError>
}

/** Returns the examples of a batch, and the batch with their new indices, so that only they are sent. */
const onlyPlaced = <A>({ size, placed }: WindowBatch, data: ReadonlyArray<A>) => ({
  batch: { size, placed: placed.map(({ start }, index) => ({ index, start })) },
  data: placed.map(({ index }) => data[index]),
})

/** Starts the thread, and waits until its programs are compiled. It works until the scope closes. */
export const startTrainingThread = Effect.fnUntraced(function* (
  task: TrainingTask,
): Effect.fn.Return<TrainingThread, WorkerError, Scope.Scope> {
  const data = yield* Effect.orDie(Schema.encodeUnknownEffect(TrainingTask)(task))
  const { ask, untilLost } = yield* askedThread<Question, Answer>({ name: "training", program, data })
  yield* Effect.flatten(ask({ kind: "open" }))
  const answerTo = (question: Question): Effect.Effect<Answer, BackendError> =>
    Effect.catch(Effect.flatten(ask(question)), ({ reason, message }) =>
      reason === "lost"
        ? Effect.never
        : Effect.fail(new BackendError({ backend: task.backend, program: `tinker.${question.kind}`, message })),
    )
  const programs: TrainingPrograms = {
    sizes: windowSizes(task.maxLength),
    forward: (batch, all, adapter) => {
      const { batch: own, data } = onlyPlaced(batch, all)
      const sent = data.map(({ tokens, targets }) => ({ tokens, targets }))
      const answer = answerTo({ kind: "forward", batch: own, data: sent, adapter })
      return Effect.map(answer, ({ logProbabilities }) => logProbabilities)
    },
    gradient: (batch, request, adapter) => {
      const { batch: own, data } = onlyPlaced(batch, request.data)
      return answerTo({ kind: "gradient", batch: own, request: { ...request, data }, adapter })
    },
    distribution: (tokens, adapter) =>
      Effect.map(answerTo({ kind: "distribution", tokens, adapter }), ({ logProbabilities }) => logProbabilities),
  }
  return { programs, untilLost }
})
