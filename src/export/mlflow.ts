/**
 * Sends a finished or stopped run to the tracking server of MLflow by its HTTP API, which all versions and all of its
 * stores have: settings as parameters, metrics with their steps and times, tags and files.
 */
import { Effect, Redacted, Schema } from "effect"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import * as UrlParams from "effect/http/UrlParams"
import { innermostCause, oneLine, parsedJson, shortened } from "../config/text.ts"

/** The error of a server that cannot be reached or refuses a request. The message is one line for people. */
export class MlflowError extends Schema.TaggedError<MlflowError>()("MlflowError", { message: Schema.String }) {}

/** A tracking server. The authorization is the value of the HTTP header, for servers that ask for one. */
export interface MlflowServer {
  readonly url: URL
  readonly authorization: Redacted.Redacted | undefined
}

export interface MlflowMetric {
  readonly key: string
  readonly value: number
  /** Milliseconds since 1970. */
  readonly timestamp: number
  readonly step: number
}

export interface MlflowRun {
  /** The name of the experiment, which is made if there is none. */
  readonly experiment: string
  readonly name: string
  readonly status: "RUNNING" | "FINISHED" | "FAILED" | "KILLED"
  readonly startedAtMillis: number
  readonly endedAtMillis: number
  readonly params: Readonly<Record<string, string>>
  readonly tags: Readonly<Record<string, string>>
  readonly metrics: ReadonlyArray<MlflowMetric>
  /** Files by their names. They are sent only to a server that takes files itself (`--serve-artifacts`, its default). */
  readonly artifacts: Readonly<Record<string, Uint8Array>>
}

/** The most metrics, and the most parameters, in one request. */
const most = { metrics: 1000, params: 100 }

/** The longest name and the longest value of a parameter that all versions of MLflow take. */
const longest = { name: 250, value: 500 }

/** Returns a name that MLflow takes, which knows letters, digits, `_`, `-`, `.`, spaces and `/`. */
const nameOf = (name: string): string => name.replace(/[^\w.\- /]/g, "_").slice(0, longest.name)

const Answer = {
  Experiment: Schema.Struct({
    experiment: Schema.Struct({ experiment_id: Schema.String, lifecycle_stage: Schema.optional(Schema.String) }),
  }),
  Created: Schema.Struct({ experiment_id: Schema.String }),
  Run: Schema.Struct({
    run: Schema.Struct({
      info: Schema.Struct({ run_id: Schema.String, artifact_uri: Schema.optional(Schema.NullOr(Schema.String)) }),
    }),
  }),
  Nothing: Schema.Struct({}),
}

/** Sends a request, and returns the status and the text of the answer. The messages contain no part of the header. */
const exchange = Effect.fnUntraced(function* (server: MlflowServer, request: HttpClientRequest.HttpClientRequest) {
  const client = yield* HttpClient.HttpClient
  const at = `${server.url.origin}${URL.parse(request.url)?.pathname ?? ""}`
  const unreachable = Effect.mapError(
    (error: { readonly reason: { readonly _tag: string; readonly cause?: unknown } }) =>
      new MlflowError({
        message: `${at} cannot be reached: ${innermostCause(error.reason.cause) || error.reason._tag}`,
      }),
  )
  const { authorization } = server
  const response = yield* client
    .execute(
      authorization === undefined
        ? request
        : HttpClientRequest.setHeader(request, "authorization", Redacted.value(authorization)),
    )
    .pipe(
      Effect.provideService(UrlParams.CurrentRedactedNames, [/^/]),
      Effect.provideService(HttpClient.TracerPropagationEnabled, false),
      unreachable,
    )
  const text = yield* unreachable(response.text)
  return { at, status: response.status, text }
})

const refusal = (at: string, status: number, text: string): MlflowError => {
  const { message }: { readonly message?: unknown } = Object(parsedJson(text))
  const problem = shortened(oneLine(typeof message === "string" ? message : text.replace(/<[^>]*>/g, " ")).trim(), 300)
  const hint =
    status === 401 || status === 403
      ? "; check MLFLOW_TRACKING_TOKEN, or MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD"
      : ""
  return new MlflowError({ message: `${at} answered ${status}${problem === "" ? "" : `: ${problem}`}${hint}` })
}

const addressOf = ({ url }: MlflowServer, path: string): string =>
  `${url.origin}${url.pathname.replace(/\/$/, "")}/api/2.0/${path}`

/** Asks the server, and decodes its answer. */
const ask = Effect.fnUntraced(function* <S extends Schema.Codec<unknown, unknown>>(
  server: MlflowServer,
  schema: S,
  path: string,
  body: unknown,
) {
  const request = HttpClientRequest.post(addressOf(server, `mlflow/${path}`))
  const { at, status, text } = yield* exchange(server, HttpClientRequest.bodyJsonUnsafe(request, body))
  if (status !== 200) return yield* refusal(at, status, text)
  return yield* decoded(schema, at, text)
})

const decoded = <S extends Schema.Codec<unknown, unknown>>(schema: S, at: string, text: string) =>
  Effect.mapError(
    Schema.decodeUnknownEffect(schema)(parsedJson(text)),
    (error) => new MlflowError({ message: `${at}: cannot read the answer: ${oneLine(error.message)}` }),
  )

/** Returns the id of the experiment, which is made if there is none of this name. */
const experimentOf = Effect.fnUntraced(function* (server: MlflowServer, name: string) {
  const query = `?experiment_name=${encodeURIComponent(name)}`
  const request = HttpClientRequest.get(`${addressOf(server, "mlflow/experiments/get-by-name")}${query}`)
  const { at, status, text } = yield* exchange(server, request)
  if (status === 200) {
    const { experiment } = yield* decoded(Answer.Experiment, at, text)
    if (experiment.lifecycle_stage !== "deleted") return experiment.experiment_id
    const message = `${at}: the experiment "${name}" is deleted; restore it, or name another one in MLFLOW_EXPERIMENT_NAME`
    return yield* new MlflowError({ message })
  }
  const { error_code: code }: { readonly error_code?: unknown } = Object(parsedJson(text))
  if (code !== "RESOURCE_DOES_NOT_EXIST") return yield* refusal(at, status, text)
  return (yield* ask(server, Answer.Created, "experiments/create", { name })).experiment_id
})

const chunksOf = <A>(items: ReadonlyArray<A>, size: number): ReadonlyArray<ReadonlyArray<A>> =>
  Array.from({ length: Math.ceil(items.length / size) }, (_, index) => items.slice(index * size, (index + 1) * size))

/**
 * Sends a run, and returns the address of its page. If a request fails, the run at the server is marked as failed, and the
 * error says what happened.
 *
 * @example
 * ```ts
 * const server = { url: new URL("http://127.0.0.1:5000"), authorization: undefined }
 * const page = Mlflow.sendRun(server, run) // "http://127.0.0.1:5000/#/experiments/1/runs/4f0…"
 * ```
 */
export const sendRun = Effect.fnUntraced(function* (
  server: MlflowServer,
  run: MlflowRun,
): Effect.fn.Return<string, MlflowError, HttpClient.HttpClient> {
  const experimentId = yield* experimentOf(server, run.experiment)
  const tags = Object.entries(run.tags).map(([key, value]) => ({ key: nameOf(key), value }))
  const created = yield* ask(server, Answer.Run, "runs/create", {
    experiment_id: experimentId,
    run_name: run.name,
    start_time: run.startedAtMillis,
    tags,
  })
  const { run_id: runId, artifact_uri: artifacts } = created.run.info
  const update = (status: MlflowRun["status"]) =>
    ask(server, Answer.Nothing, "runs/update", {
      run_id: runId,
      status,
      ...(status !== "RUNNING" && { end_time: run.endedAtMillis }),
    })
  const content = Effect.gen(function* () {
    const params = Object.entries(run.params).map(([key, value]) => ({
      key: nameOf(key),
      value: value.slice(0, longest.value),
    }))
    for (const part of chunksOf(params, most.params)) {
      yield* ask(server, Answer.Nothing, "runs/log-batch", { run_id: runId, params: part })
    }
    // JSON has no NaN and no infinities.
    const metrics = run.metrics
      .filter(({ value }) => Number.isFinite(value))
      .map((metric) => ({ ...metric, key: nameOf(metric.key) }))
    for (const part of chunksOf(metrics, most.metrics)) {
      yield* ask(server, Answer.Nothing, "runs/log-batch", { run_id: runId, metrics: part })
    }
    const folder = /^mlflow-artifacts:(?:\/\/[^/]*)?\/(.*?)\/*$/.exec(artifacts ?? "")?.[1]
    if (folder !== undefined) {
      for (const [name, bytes] of Object.entries(run.artifacts)) {
        const path = `${folder}/${name}`.split("/").map(encodeURIComponent).join("/")
        const request = HttpClientRequest.put(addressOf(server, `mlflow-artifacts/artifacts/${path}`))
        const body = HttpClientRequest.bodyUint8Array(request, bytes)
        const { at, status, text } = yield* exchange(server, body)
        if (status !== 200) return yield* refusal(at, status, text)
      }
    }
    yield* update(run.status)
  })
  yield* Effect.tapError(content, () => Effect.ignore(update("FAILED")))
  const root = `${server.url.origin}${server.url.pathname.replace(/\/$/, "")}`
  return `${root}/#/experiments/${experimentId}/runs/${runId}`
})
