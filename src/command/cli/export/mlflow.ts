/** Sends a run to the tracking server of MLflow, for `effect export RUN --to mlflow`. */
import { Effect, type Option, Redacted } from "effect"
import { variable } from "../../../base/config/variables.ts"
import { type MlflowRun, type MlflowServer, sendRun } from "../../trackers/mlflow.ts"
import { httpClient } from "../../../node.ts"
import { byPath } from "../../../run/record/hparams.ts"
import { usageError, writeError } from "../output/output.ts"
import { trackedRun } from "./trackedRun.ts"
import { CommandError } from "../../CommandError.ts"

/** Reads the server and the access token from the variables that MLflow's own client reads. */
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

const statuses = {
  finished: "FINISHED",
  failed: "FAILED",
  stopped: "KILLED",
} as const satisfies Readonly<Record<string, MlflowRun["status"]>>

/** Sends a run with its newest policy, or with the policy of a checkpoint, and returns the address of the run's page. */
export const toMlflow = Effect.fnUntraced(function* (path: string, step: Option.Option<number>) {
  const server = yield* serverOf
  const run = yield* trackedRun(path, step, "mlflow")
  const settings = byPath(run.settings)
  const about: Readonly<Record<string, unknown>> = {
    "mlflow.source.name": path,
    "mlflow.source.git.commit": run.commit,
    "effect_rl.env": settings.env,
    "effect_rl.algorithm": settings["algorithm.name"],
    "effect_rl.digest": run.digest,
  }
  const content: MlflowRun = {
    experiment: (yield* variable("MLFLOW_EXPERIMENT_NAME")) || run.experiment,
    name: run.name,
    status: statuses[run.state],
    startedAtMillis: run.startedAtMillis,
    endedAtMillis: run.endedAtMillis,
    params: Object.fromEntries(Object.entries(settings).map(([key, value]) => [key, String(value)])),
    tags: Object.fromEntries(
      Object.entries(about).flatMap(([key, value]) => (typeof value === "string" ? [[key, value]] : [])),
    ),
    metrics: run.events.flatMap(({ step: at, wallSeconds, metrics }) =>
      Object.entries(metrics).map(([key, value]) => ({
        key,
        value,
        timestamp: Math.round(wallSeconds * 1000),
        step: at,
      })),
    ),
    artifacts: run.files,
  }
  yield* writeError(`sending ${path} to ${server.url.origin}\n`)
  const { page, areFilesSent } = yield* sendRun(server, content).pipe(
    Effect.provide(httpClient),
    Effect.mapError(({ message }) => CommandError.failed(`--to mlflow: ${message}`)),
  )
  if (!areFilesSent) {
    yield* writeError(
      "without files: the server takes none itself; mlflow server does with --serve-artifacts, its default\n",
    )
  }
  return page
})
