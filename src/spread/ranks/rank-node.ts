/** The program of a rank's process, which computes slices until its training ends. `ranks-node.ts` starts it. */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Context, Effect, Layer, References, Schema } from "effect"
import { isLost } from "../workers/WorkerError.ts"
import { jsonText } from "../../base/text/jsonText.ts"
import { Backend, BackendUnavailable } from "../../tensor/backend/Backend.ts"
import { backend } from "../../tensor/backend/named-node.ts"
import { backendNames } from "../../tensor/backend/names.ts"
import { reportFailure, taskLine } from "../workers/process-node.ts"
import { type BackendOf, serveSlices } from "./serveSlices.ts"
import { SliceTask } from "./SliceTask.ts"
import { connect } from "./tcp-node.ts"

const backendOf =
  (threads: number): BackendOf =>
  (device) => {
    const name = backendNames.find((one) => one === device)
    const remedy = "Choose another one by --backend."
    return name === undefined
      ? Effect.fail(new BackendUnavailable({ backend: device, missing: "ranks cannot compute on it", remedy }))
      : Effect.map(Layer.build(backend(name, { threads })), Context.get(Backend))
  }

taskLine.pipe(
  Effect.flatMap((line) => Effect.orDie(Schema.decodeEffect(jsonText(SliceTask))(line))),
  Effect.flatMap(
    Effect.fnUntraced(function* ({ rank, threads, place }) {
      const channel = yield* connect(place, rank)
      // The connection closes when the training has ended, or when the master no longer waits for this rank.
      return yield* Effect.catchIf(serveSlices(channel, backendOf(threads)), isLost, () => Effect.void)
    }, Effect.scoped),
  ),
  Effect.catch(reportFailure),
  // The process must exit explicitly, because its open standard input would keep it alive.
  Effect.andThen(Effect.sync(() => process.exit())),
  Effect.provideService(References.MinimumLogLevel, "None"),
  NodeRuntime.runMain,
)
