/**
 * Sends a run that has ended to the tracking server of MLflow: settings as parameters, metrics with their steps and times,
 * tags and files. It uses the part of the HTTP API that exists in all versions, whatever the server's store is.
 */
import { Effect, Exit, type Redacted, Schema } from "effect"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import { oneLine, parsedJson } from "../../base/text/text.ts"
import { utf8 } from "../../base/text/utf8.ts"
import {
  type ServerAnswer,
  exchange,
  type ExchangeOptions,
  firstRetries,
  refusalOf,
  type Site,
  withoutName,
} from "../../agents/lm/exchange.ts"
import { CommandError } from "../CommandError.ts"

/** A tracking server. `authorization` is the value of the HTTP header, for servers that require it. */
export interface MlflowServer {
  readonly url: URL
  readonly authorization: Redacted.Redacted | undefined
  /** The texts in the authorization that no message may show, such as the password. */
  readonly secrets?: ReadonlyArray<Redacted.Redacted>
}

interface MlflowMetric {
  readonly key: string
  readonly value: number
  /** The time in milliseconds since 1970. */
  readonly timestamp: number
  readonly step: number
}

export interface MlflowRun {
  /** The name of the experiment, which is created if it doesn't exist. */
  readonly experiment: string
  readonly name: string
  readonly status: "FINISHED" | "FAILED" | "KILLED"
  readonly startedAtMillis: number
  readonly endedAtMillis: number
  readonly params: Readonly<Record<string, string>>
  readonly tags: Readonly<Record<string, string>>
  readonly metrics: ReadonlyArray<MlflowMetric>
  /** The files by their names. They are sent only if the server itself stores files (`--serve-artifacts`, its default). */
  readonly artifacts: Readonly<Record<string, Uint8Array>>
}

/** The largest number of metrics, and of parameters, in one request. */
const most = { metrics: 1000, params: 100 }

/** The longest name and the longest value of a parameter that all versions of MLflow accept. */
const longest = { name: 250, value: 500 }

/** Replaces the characters that MLflow refuses in names: it accepts letters, digits, `_`, `-`, `.`, spaces and `/`. */
const nameOf = (name: string): string => name.replace(/[^\w.\- /]/g, "_").slice(0, longest.name)

const Answers = {
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

const siteOf = Effect.fnUntraced(function* ({ url, authorization, secrets = [] }: MlflowServer) {
  const site: Site = {
    name: url.origin,
    client: yield* HttpClient.HttpClient,
    origin: url.origin,
    authorization: authorization ?? null,
    secrets,
    hint: "check MLFLOW_TRACKING_TOKEN, or MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD",
  }
  return site
})

const send = Effect.fnUntraced(function* (
  server: MlflowServer,
  request: HttpClientRequest.HttpClientRequest,
  options: ExchangeOptions = {},
) {
  const site = yield* siteOf(server)
  return yield* Effect.mapError(exchange(site, request, options, Effect.succeed), (error) => {
    const hint =
      error.reason === "exhausted" ? "; check that the server runs, and its address, MLFLOW_TRACKING_URI" : ""
    return CommandError.failed(`${withoutName(site, error)}${hint}`)
  })
})

const addressOf = ({ url }: MlflowServer, path: string): string =>
  `${url.origin}${url.pathname.replace(/\/$/, "")}/api/2.0/${path}`

/** Sends a request to the server, and decodes the answer. */
const ask = Effect.fnUntraced(function* <S extends Schema.Codec<unknown, unknown>>(
  server: MlflowServer,
  schema: S,
  path: string,
  body: unknown,
  options: ExchangeOptions = {},
) {
  const request = HttpClientRequest.post(addressOf(server, `mlflow/${path}`))
  return yield* decoded(schema, yield* send(server, HttpClientRequest.bodyJsonUnsafe(request, body), options))
})

const decoded = <S extends Schema.Codec<unknown, unknown>>(schema: S, { at, bytes }: ServerAnswer) =>
  Effect.mapError(Schema.decodeUnknownEffect(schema)(parsedJson(utf8.decode(bytes))), (error) =>
    CommandError.failed(`${at}: cannot read the answer: ${oneLine(error.message)}`),
  )

/** Returns the id of the experiment with this name, which is created if it doesn't exist. */
const experimentOf = Effect.fnUntraced(function* (server: MlflowServer, name: string) {
  const query = `?experiment_name=${encodeURIComponent(name)}`
  const request = HttpClientRequest.get(`${addressOf(server, "mlflow/experiments/get-by-name")}${query}`)
  const answer = yield* send(server, request, { accepted: [400, 404], retries: yield* firstRetries })
  if (answer.status < 400) {
    const { experiment } = yield* decoded(Answers.Experiment, answer)
    if (experiment.lifecycle_stage !== "deleted") return experiment.experiment_id
    const message = `${answer.at}: the experiment "${name}" is deleted; restore it, or name another one in MLFLOW_EXPERIMENT_NAME`
    return yield* CommandError.failed(message)
  }
  const { error_code: code }: { readonly error_code?: unknown } = Object(parsedJson(utf8.decode(answer.bytes)))
  if (code !== "RESOURCE_DOES_NOT_EXIST") {
    const site = yield* siteOf(server)
    return yield* new CommandError({ reason: "failed", message: withoutName(site, refusalOf(site, answer)) })
  }
  return (yield* ask(server, Answers.Created, "experiments/create", { name })).experiment_id
})

/** The time that an interrupted export still has to mark its run as failed on the server. */
const patience = "5 seconds"

const chunksOf = <A>(items: ReadonlyArray<A>, size: number): ReadonlyArray<ReadonlyArray<A>> =>
  Array.from({ length: Math.ceil(items.length / size) }, (_, index) => items.slice(index * size, (index + 1) * size))

/** A run on the server. */
interface SentRun {
  readonly page: string
  /** Whether the server accepted the files. A server whose store is `file:` or `s3:` leaves the files to its clients. */
  readonly areFilesSent: boolean
}

/**
 * Sends a run, and returns the address of its page. If a request fails, the run on the server is marked as failed, and the
 * error describes what happened; if the export is interrupted, the run is marked as killed.
 *
 * @example
 * ```ts
 * const server = { url: new URL("http://127.0.0.1:5000"), authorization: undefined }
 * const sent = sendRun(server, run) // its address is "http://127.0.0.1:5000/#/experiments/1/runs/4f0…"
 * ```
 */
export const sendRun = Effect.fnUntraced(function* (
  server: MlflowServer,
  run: MlflowRun,
): Effect.fn.Return<SentRun, CommandError, HttpClient.HttpClient> {
  const experimentId = yield* experimentOf(server, run.experiment)
  const tags = Object.entries(run.tags).map(([key, value]) => ({ key: nameOf(key), value }))
  const created = yield* ask(server, Answers.Run, "runs/create", {
    experiment_id: experimentId,
    run_name: run.name,
    start_time: run.startedAtMillis,
    tags,
  })
  const { run_id: runId, artifact_uri: artifacts } = created.run.info
  const update = (status: MlflowRun["status"]) =>
    ask(
      server,
      Answers.Nothing,
      "runs/update",
      { run_id: runId, status, end_time: run.endedAtMillis },
      { isRepeatable: true },
    )
  const folder = /^mlflow-artifacts:(?:\/\/[^/]*)?\/(.*)$/.exec(artifacts ?? "")?.[1]?.replace(/(?<!\/)\/+$/, "")
  const content = Effect.gen(function* () {
    const params = Object.entries(run.params).map(([key, value]) => ({
      key: nameOf(key),
      value: value.slice(0, longest.value),
    }))
    for (const part of chunksOf(params, most.params)) {
      yield* ask(server, Answers.Nothing, "runs/log-batch", { run_id: runId, params: part })
    }
    // JSON has no NaN and no infinities.
    const metrics = run.metrics
      .filter(({ value }) => Number.isFinite(value))
      .map((metric) => ({ ...metric, key: nameOf(metric.key) }))
    for (const part of chunksOf(metrics, most.metrics)) {
      yield* ask(server, Answers.Nothing, "runs/log-batch", { run_id: runId, metrics: part })
    }
    if (folder !== undefined) {
      for (const [name, bytes] of Object.entries(run.artifacts)) {
        const path = `${folder}/${name}`.split("/").map(encodeURIComponent).join("/")
        const request = HttpClientRequest.put(addressOf(server, `mlflow-artifacts/artifacts/${path}`))
        const body = HttpClientRequest.bodyUint8Array(request, bytes)
        yield* send(server, body)
      }
    }
    yield* update(run.status)
  })
  yield* content.pipe(
    Effect.onExit((exit) =>
      Exit.isSuccess(exit)
        ? Effect.void
        : Effect.interruptible(update(Exit.hasInterrupts(exit) ? "KILLED" : "FAILED")).pipe(
            Effect.timeout(patience),
            Effect.ignore,
          ),
    ),
  )
  const root = `${server.url.origin}${server.url.pathname.replace(/\/$/, "")}`
  return { page: `${root}/#/experiments/${experimentId}/runs/${runId}`, areFilesSent: folder !== undefined }
})
