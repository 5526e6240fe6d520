/** The program of a rank's process. `processes-node.ts` starts it, and describes how both communicate. */
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import * as NodePath from "@effect/platform-node/NodePath"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Effect, Layer, Logger, References, Schema } from "effect"
import { WorkerError } from "../../spread/workers/WorkerError.ts"
import { backend } from "../../tensor/backend/named-node.ts"
import { reportFailure, taskLine } from "../../spread/workers/process-node.ts"
import { lineOf } from "../../run/record/logging.ts"
import { Start } from "./messages-node.ts"
import { redisStores } from "./processes-node.ts"
import { trainAsRank } from "./trainAsRank.ts"

const files = Layer.merge(NodeFileSystem.layer, NodePath.layer)
const stderr = Logger.layer([Logger.make((logged) => void process.stderr.write(`${lineOf(logged)}\n`))])

taskLine.pipe(
  Effect.flatMap((line) => Effect.orDie(Schema.decodeEffect(Start)(line))),
  Effect.flatMap(({ task, backend: name, threads }) =>
    trainAsRank(task).pipe(
      Effect.provide(Layer.mergeAll(backend(name, { threads }), files, redisStores)),
      Effect.catchTag("BackendUnavailable", ({ message }) => Effect.fail(WorkerError.failed(message))),
    ),
  ),
  Effect.catch(reportFailure),
  Effect.provideService(References.MinimumLogLevel, "Warn"),
  Effect.provide(stderr),
  NodeRuntime.runMain,
)
