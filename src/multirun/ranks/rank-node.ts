/** The program of a rank's process; `processes-node.ts` starts it, and tells how they talk. */
import { createInterface } from "node:readline"
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import * as NodePath from "@effect/platform-node/NodePath"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Effect, Layer, Logger, References, Schema } from "effect"
import { backend } from "../../backend/named-node.ts"
import { lineOf } from "../../run/record/logging.ts"
import { Failure, Start } from "./messages-node.ts"
import { redisStores } from "./processes-node.ts"
import { RankFailed } from "./RankProcesses.ts"
import { trainAsRank } from "./trainAsRank.ts"

const start = Effect.callback<typeof Start.Type>((resume) => {
  const lines = createInterface({ input: process.stdin })
  lines.once("line", (line) => resume(Effect.orDie(Schema.decodeEffect(Start)(line))))
  // The master has ended. There is nothing to save.
  lines.once("close", () => process.exit())
})

const files = Layer.merge(NodeFileSystem.layer, NodePath.layer)
const stderr = Logger.layer([Logger.make((logged) => void process.stderr.write(`${lineOf(logged)}\n`))])

/** Prints why the rank ends, and ends the process. */
const report = (failure: typeof Failure.Type): Effect.Effect<never> =>
  Effect.callback(() => {
    process.stdout.write(`${Schema.encodeSync(Failure)(failure)}\n`, () => process.exit(1))
  })

start.pipe(
  Effect.flatMap(({ task, backend: name, threads }) =>
    trainAsRank(task).pipe(
      Effect.provide(Layer.mergeAll(backend(name, { threads }), files, redisStores)),
      Effect.catchTag("BackendUnavailable", ({ message }) => Effect.fail(new RankFailed({ message }))),
    ),
  ),
  Effect.catch(report),
  Effect.provideService(References.MinimumLogLevel, "Warn"),
  Effect.provide(stderr),
  NodeRuntime.runMain,
)
