/**
 * The program of the reference model's thread. `thread-node.ts` starts it, and `messages.ts` declares the messages between
 * both.
 */
import { workerData } from "node:worker_threads"
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import * as NodePath from "@effect/platform-node/NodePath"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeWorkerRunner from "@effect/platform-node/NodeWorkerRunner"
import { Effect, Layer, Schema } from "effect"
import { answering } from "../../spread/workers/answering-node.ts"
import { improving } from "../../tensor/backend/Backend.ts"
import { backend } from "../../tensor/backend/named-node.ts"
import { openBaseModel } from "../baseModel.ts"
import { replayedExperts } from "../batches/routerReplay.ts"
import { compileReference } from "./compileReference.ts"
import type { Answer, Question } from "./messages.ts"
import { Start } from "./thread-node.ts"

const { task, name, threads } = Schema.decodeUnknownSync(Start)(workerData)
const { model, trainer, seed, baseDir } = task

const compiled = Effect.flatMap(openBaseModel(model, { baseDir, seed }), (base) =>
  compileReference({ ...trainer, replayed: replayedExperts(trainer, base.decoder) }, base),
)

Effect.gen(function* () {
  const logProbabilitiesOf = yield* compiled
  yield* improving
  yield* answering<Question, Answer>((microBatch) =>
    Effect.map(logProbabilitiesOf(microBatch), (answer) => ({ answer, moved: [answer.buffer] })),
  )
}).pipe(
  Effect.scoped,
  Effect.provide(
    Layer.mergeAll(backend(name, { threads }), NodeFileSystem.layer, NodePath.layer, NodeWorkerRunner.layer),
  ),
  NodeRuntime.runMain,
)
