/** Sends a run to the tracking server of MLflow, for `effect export RUN --to mlflow`. */
import { basename, join } from "node:path"
import { Effect, FileSystem, Option, Redacted } from "effect"
import { exists, mostBytes, readBytes } from "../../config/files.ts"
import { isPlain } from "../../config/plain.ts"
import { variable } from "../../config/variables.ts"
import { type MlflowMetric, type MlflowRun, type MlflowServer, sendRun } from "../../export/mlflow.ts"
import { decode } from "../../formats/tfevents.ts"
import { httpClient } from "../../node.ts"
import * as Checkpoint from "../../run/Checkpoint.ts"
import { unplacedEntry } from "../../run/find/RunEntry.ts"
import { fromPath } from "../../run/identifier.ts"
import * as Layout from "../../run/Layout.ts"
import { settingsOf } from "../../run/record/hparams.ts"
import { over } from "../../run/RunReader.ts"
import { foldersOnDisk, savedAt } from "../../run/savedAt.ts"
import { checkpointOf } from "../evaluate/evaluateRun.ts"
import { warningSource } from "../findRun.ts"
import { usageError, writeError } from "../output/output.ts"

/** Reads the server and the key from the variables that MLflow's own client reads. */
const serverOf = Effect.gen(function* () {
  const uri = yield* variable("MLFLOW_TRACKING_URI")
  if (uri === "") {
    return yield* usageError(
      "--to mlflow: set MLFLOW_TRACKING_URI to the address of the server; mlflow server starts one at http://127.0.0.1:5000",
    )
  }
  const url = URL.parse(uri)
  if (url === null || !/^https?:$/.test(url.protocol) || url.username !== "" || url.password !== "") {
    return yield* usageError(
      "MLFLOW_TRACKING_URI: expected an address such as http://127.0.0.1:5000 without a user, found another text",
    )
  }
  const token = yield* variable("MLFLOW_TRACKING_TOKEN")
  const user = yield* variable("MLFLOW_TRACKING_USERNAME")
  const password = yield* variable("MLFLOW_TRACKING_PASSWORD")
  // The HTTP client's own error for a wrong header would show the token.
  if (!/^[\x21-\x7e]*$/.test(token)) {
    return yield* usageError("MLFLOW_TRACKING_TOKEN: expected visible ASCII characters, found others in it")
  }
  const pair = Buffer.from(`${user}:${password}`).toString("base64")
  const header = token !== "" ? `Bearer ${token}` : user !== "" ? `Basic ${pair}` : undefined
  const server: MlflowServer = {
    url,
    authorization: header === undefined ? undefined : Redacted.make(header),
    secrets: [token, pair, password].map((secret) => Redacted.make(secret)),
  }
  return server
})

/** The files of a run that describe it and its results. */
const described = [Layout.config, Layout.metrics, Layout.returns, Layout.provenance]

const statuses = {
  finished: "FINISHED",
  failed: "FAILED",
  stopped: "KILLED",
} as const satisfies Readonly<Record<string, MlflowRun["status"]>>

/** Sends a run with its newest policy, or that of a checkpoint, and returns the address of its page. */
export const toMlflow = Effect.fnUntraced(function* (run: string, step: Option.Option<number>) {
  const server = yield* serverOf
  const read = over(warningSource)(unplacedEntry(run))
  const state = yield* read.state
  if (state === "running" || state === "waiting") {
    return yield* usageError("--to mlflow: expected a run that has ended, found one that is still running")
  }
  const config = yield* read.config
  const log = yield* read.locate(Layout.tensorBoard)
  if (!(yield* exists(log))) {
    const hint = "the run was made with log_scalars: false"
    return yield* usageError(`--to mlflow: expected the run's metrics in ${log}, found no such file; ${hint}`)
  }
  const { events } = decode(yield* readBytes(log, mostBytes.binary))
  const metrics = events.flatMap(({ wallSeconds, step: at, scalars }) =>
    Object.entries(scalars).map(([key, value]): MlflowMetric => ({
      key,
      value,
      timestamp: Math.round(wallSeconds * 1000),
      step: at,
    })),
  )
  const times = events.map(({ wallSeconds }) => Math.round(wallSeconds * 1000))
  const results = yield* read.metrics
  const identity = fromPath(run)
  const experiment = (yield* variable("MLFLOW_EXPERIMENT_NAME")) || (identity?.name ?? "effect-rl")
  const settings = settingsOf(isPlain(config) ? config : {})
  const about: Readonly<Record<string, unknown>> = {
    "mlflow.source.name": run,
    "mlflow.source.git.commit": identity?.commit,
    "effect_rl.env": settings.env,
    "effect_rl.algorithm": settings["algorithm.name"],
    "effect_rl.digest": results?.digest,
  }
  const files = yield* Effect.forEach(described, (name) =>
    Effect.flatMap(exists(join(run, name)), (isThere) =>
      isThere
        ? Effect.map(readBytes(join(run, name), mostBytes.binary), (bytes) => [[name, bytes] as const])
        : Effect.succeed([]),
    ),
  )
  const content: MlflowRun = {
    experiment,
    name:
      identity === undefined
        ? basename(run)
        : `${identity.time} ${Object.values(identity.population).join(" ")} ${identity.seed}`.replace(/ +/g, " "),
    status: statuses[state],
    startedAtMillis:
      times.length === 0 ? yield* changedAt(join(run, Layout.config)) : Math.min(times[0], times.at(-1) ?? Infinity),
    endedAtMillis: times.length === 0 ? yield* changedAt(log) : Math.max(times[0], times.at(-1) ?? 0),
    params: Object.fromEntries(Object.entries(settings).map(([key, value]) => [key, String(value)])),
    tags: Object.fromEntries(
      Object.entries(about).flatMap(([key, value]) => (typeof value === "string" ? [[key, value]] : [])),
    ),
    metrics,
    artifacts: { ...Object.fromEntries(files.flat()), ...(yield* policyIn(run, step)) },
  }
  const { page, areFilesSent } = yield* sendRun(server, content).pipe(
    Effect.provide(httpClient),
    Effect.mapError(({ message }) => usageError(`--to mlflow: ${message}`)),
  )
  if (!areFilesSent) {
    yield* writeError(
      "without files: the server takes none itself; mlflow server does with --serve-artifacts, its default\n",
    )
  }
  return page
})

/** Returns the time of a file's last change in milliseconds since 1970. */
const changedAt = Effect.fnUntraced(function* (file: string) {
  const { mtime } = yield* (yield* FileSystem.FileSystem).stat(file)
  return Option.match(mtime, { onNone: () => 0, onSome: (time) => time.getTime() })
})

/** Returns the policy of a checkpoint, if it has one: runs of language-model agents have none. */
const policyIn = Effect.fnUntraced(function* (run: string, step: Option.Option<number>) {
  const name = yield* checkpointOf(run, step)
  const { tree } = yield* savedAt(run, yield* foldersOnDisk)
  if ((yield* Checkpoint.names(tree)).length === 0) return {}
  const { files, skipped } = yield* Checkpoint.loadFiles(tree, name, (file) => file === Layout.inCheckpoint.policy)
  for (const { name: damaged, reason } of skipped) yield* writeError(`without the checkpoint ${damaged}: ${reason}\n`)
  const policy = files[Layout.inCheckpoint.policy]
  return policy === undefined ? {} : { [Layout.inCheckpoint.policy]: policy }
})
