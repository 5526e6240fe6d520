/** The program of the thread that trains for a Tinker server. `thread-node.ts` starts it. */
import { workerData } from "node:worker_threads"
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import * as NodePath from "@effect/platform-node/NodePath"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeWorkerRunner from "@effect/platform-node/NodeWorkerRunner"
import { Effect, Layer, Schema } from "effect"
import * as Decoder from "../../../decoder/networks/Decoder.ts"
import { answering } from "../../../spread/workers/answering-node.ts"
import { backend } from "../../../tensor/backend/named-node.ts"
import { type BackendError, improving } from "../../../tensor/backend/Backend.ts"
import { openBaseModel } from "../../baseModel.ts"
import { makeTrainingPrograms, type TrainingPrograms } from "./TrainingPrograms.ts"
import type { Answer, Question } from "./messages.ts"
import { TrainingTask } from "./thread-node.ts"

const task = Schema.decodeUnknownSync(TrainingTask)(workerData)

const compiled = Effect.flatMap(
  openBaseModel({ type: "folder", path: task.folder }, { baseDir: ".", seed: 0 }),
  ({ decoder, weights }) =>
    makeTrainingPrograms({
      config: decoder,
      weights,
      shape: { rank: task.maxRank, targets: Decoder.projections },
      maxLength: task.maxLength,
    }),
)

const none = (): Float32Array<ArrayBuffer> => new Float32Array(0)

/** Computes an answer. Its arrays are copies, because the next computation overwrites the results of a program. */
const answerOf = (programs: TrainingPrograms, question: Question): Effect.Effect<Answer, BackendError> => {
  const only = (numbers: Float32Array): Answer => ({ logProbabilities: Float32Array.from(numbers), gradient: none() })
  switch (question.kind) {
    case "open":
      return Effect.succeed({ logProbabilities: none(), gradient: none() })
    case "forward":
      return Effect.map(programs.forward(question.batch, question.data, question.adapter), only)
    case "gradient":
      return Effect.map(
        programs.gradient(question.batch, question.request, question.adapter),
        ({ logProbabilities, gradient }) => ({
          logProbabilities: Float32Array.from(logProbabilities),
          gradient: Float32Array.from(gradient),
        }),
      )
    case "distribution":
      return Effect.map(programs.distribution(question.tokens, question.adapter), only)
  }
}

Effect.gen(function* () {
  const programs = yield* compiled
  yield* improving
  yield* answering<Question, Answer>((question) =>
    Effect.map(answerOf(programs, question), (answer) => ({
      answer,
      moved: [answer.logProbabilities.buffer, answer.gradient.buffer],
    })),
  )
}).pipe(
  Effect.scoped,
  Effect.provide(
    Layer.mergeAll(
      backend(task.backend, { threads: task.threads }),
      NodeFileSystem.layer,
      NodePath.layer,
      NodeWorkerRunner.layer,
    ),
  ),
  NodeRuntime.runMain,
)
