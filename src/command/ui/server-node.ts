/**
 * Serves the page of `effect ui` over HTTP: its files, its data as JSON, files of runs, and events. It writes nothing but what
 * `changes-node.ts` changes.
 */
import { createServer } from "node:http"
import { hostname } from "node:os"
import { basename } from "node:path"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { Effect, Fiber, Layer, PubSub, Schema, type Scope, Semaphore, Stream } from "effect"
import * as HttpServer from "effect/http/HttpServer"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import { jsonBody } from "../../agents/gateway/jsonBody.ts"
import type { Observed } from "../../spread/cluster/overview.ts"
import { type HostGuard, refusedBy, sameKey } from "../../base/trust/hostGuard.ts"
import { prometheusText, prometheusType } from "../../base/formats/prometheus.ts"
import { axes, measures } from "./curves/Curve.ts"
import { changeRun, mayChange } from "./changes-node.ts"
import { detailOf } from "./detail.ts"
import { contentType, filePolicy } from "./guard.ts"
import { mujocoFiles, type PageFile, pageFiles, workerFile, workerName } from "./page-node.ts"
import { runMetricsOf } from "./prometheus.ts"
import { readStudyIn } from "./studies.ts"
import { pageAsked } from "./transcripts/pageAsked.ts"
import type { Confined } from "../../run/read/confined-node.ts"
import { openResults, type ResultsFolder, resultsOf } from "./results-node.ts"
import { CommandError } from "../CommandError.ts"

export interface PageServerOptions {
  readonly directory: string
  /** The files of the runs, if they are not in a folder on disk. */
  readonly files?: Confined
  readonly host: string
  /** The port; 0 chooses a free port. */
  readonly port: number
  /** The token that requests for data must contain. */
  readonly token?: string
  /** The token that requests which change runs must contain. Without it, the server only shows runs. */
  readonly changeToken?: string
  /** Additional host names with which visitors may address the server. */
  readonly allowedHosts?: ReadonlyArray<string>
  /** The time between two checks for changes, in milliseconds. Default: 1000. */
  readonly pollEvery?: number
  /** Reads the state of a cluster. Without it, the page shows no cluster. */
  readonly cluster?: Effect.Effect<Observed>
}

const cookieName = "effect-ui-token"

/** The script of the sandboxed frame in which the player runs the code of a run. It contains no data of the user. */
const frameScript = "player/frame.js"
const json = "application/json; charset=utf-8"

/**
 * The largest body of a request for bands, in bytes. The page sends at most 2000 paths, which rarely have more than 500
 * bytes.
 */
const mostAsked = 1024 * 1024

const BandRequest = Schema.Struct({
  runs: Schema.Array(Schema.String),
  measure: Schema.Literals(measures),
  axis: Schema.Literals(axes),
})

interface ServedPage {
  readonly port: number
  /** The path of the run if the directory is a single run. */
  readonly run?: string
  /** Tells whether the directory is a multi-run trainer. */
  readonly isTrainer: Effect.Effect<boolean>
  /** Counts the runs in the directory. The number may be half of `pollEvery` old. */
  readonly countRuns: Effect.Effect<number>
}

/** A running server: its options, its data and the page. */
interface Serving {
  readonly options: PageServerOptions
  readonly results: ResultsFolder
  readonly live: Effect.Success<ReturnType<typeof makeLive>>
  /** The files of the page by their names. */
  readonly page: ReadonlyMap<string, PageFile>
  readonly guard: HostGuard
  /** Lets one request at a time change runs. */
  readonly inTurn: <A, E, R>(change: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
}

/** Serves the page until the scope closes. It listens before it reads the runs, because reading many runs takes a while. */
export const serve = Effect.fnUntraced(function* (
  options: PageServerOptions,
): Effect.fn.Return<ServedPage, CommandError, Scope.Scope> {
  const results = options.files === undefined ? yield* openResults(options.directory) : resultsOf(options.files)
  const live = yield* makeLive(results, options.pollEvery ?? 1000)
  const page = new Map((yield* pageFiles).map((file) => [file.name, file]))
  const guard: HostGuard = { host: options.host, machine: hostname(), allowed: options.allowedHosts ?? [] }
  const server = createServer()
  const listening = NodeHttpServer.layer(() => server, {
    host: options.host,
    port: options.port,
    gracefulShutdownTimeout: "200 millis",
  })
  const inTurn = (yield* Semaphore.make(1)).withPermits(1)
  // Effect makes the fibers of requests uninterruptible. A request whose client hangs up must end at once.
  const answered = Effect.interruptible(answer({ options, results, live, page, guard, inTurn }))
  const app = HttpServer.serve(Effect.map(answered, HttpServerResponse.setHeaders(always)))
  yield* Layer.build(Layer.provide(app, listening)).pipe(
    Effect.mapError(({ cause }) => {
      const isPortInUse = cause instanceof Error && "code" in cause && cause.code === "EADDRINUSE"
      const hint = isPortInUse ? "the port is in use; --port 0 picks a free one" : String(cause)
      return CommandError.failed(`cannot listen at ${options.host}:${options.port}: ${hint}`)
    }),
  )
  // Event streams have no end, so close their connections when the server stops.
  yield* Effect.addFinalizer(() => Effect.sync(() => server.closeAllConnections()))
  const address = server.address()
  const port = typeof address === "object" && address !== null ? address.port : options.port
  yield* Effect.forkScoped(live.watch)
  const countRuns = Effect.map(live.lookAgain, () => results.index.runs().length)
  const run = results.files.only
  const isTrainer = Effect.map(live.lookAgain, () => results.index.summary(run)?.runs !== undefined)
  return { port, isTrainer, countRuns, ...(run === "" ? {} : { run }) }
})

/** Returns the page's file of this name; undefined if it has none. */
const fileOf = (name: string, page: ReadonlyMap<string, PageFile>): Effect.Effect<PageFile | undefined> => {
  if (name === workerName) return workerFile
  return mujocoFiles.get(name) ?? Effect.succeed(page.get(name))
}

/** Answers a request. It first checks whether the client may send requests, and then what is requested. */
const answer = Effect.fnUntraced(function* (serving: Serving) {
  const { results, page, guard } = serving
  const { token } = serving.options
  const request = yield* HttpServerRequest.HttpServerRequest
  const place = placeOf(request.url)
  const { host } = request.headers
  // The player's frame has an origin of its own, so its request for the script has no origin of this server; only the host is
  // checked.
  const refused = refusedBy(guard, place?.path === frameScript ? { host } : request.headers)
  if (refused !== undefined) return refusal(refused.status, refused.message)
  if (place === undefined) return refusal(400, "no such address")
  const { path, query } = place
  const queryToken = query.get("token")
  if (path === "" && queryToken !== null && token !== undefined && sameKey(queryToken, token)) {
    // From this answer on, the token is in the cookie, so that neither the browser's history nor a log contains it.
    const cookie = `${cookieName}=${token}; Path=/; HttpOnly; SameSite=Strict`
    const changes = query.get("changes")
    const home = changes === null ? "./" : `./?${new URLSearchParams({ changes })}`
    return HttpServerResponse.redirect(home, { status: 303, headers: { "set-cookie": cookie } })
  }
  const reads = request.method === "GET" || request.method === "HEAD"
  const name = path === "" ? "index.html" : path
  const file = reads ? yield* fileOf(name, page) : undefined
  if (file !== undefined) {
    return HttpServerResponse.uint8Array(file.bytes, {
      contentType: file.type,
      headers: { "content-security-policy": file.policy, "cache-control": "no-cache" },
    })
  }
  if (token !== undefined) {
    const bearer = /^Bearer (.+)$/.exec(request.headers.authorization ?? "")?.[1]
    const sentToken = request.cookies[cookieName] ?? bearer
    if (!sameKey(sentToken, token)) return refusal(401, "open the address that the command printed")
  }
  if (request.method === "POST" && path === "data/bands") return yield* bands(results)
  if (request.method === "POST" && path === "data/change") {
    const bodyOf = (mostBytes: number) =>
      Effect.provideService(
        jsonBody(mostBytes, (status, message) => ({ status, message })),
        HttpServerRequest.HttpServerRequest,
        request,
      )
    const change = changeRun(results, { headers: request.headers, json: bodyOf }, serving.options.changeToken)
    const problem = yield* serving.inTurn(change)
    return problem === undefined ? document({}) : refusal(problem.status, problem.message)
  }
  if (!reads) return refusal(405, "only GET")
  if (path.startsWith("files/")) return yield* runFile(results, path.slice("files/".length))
  return yield* data(serving, path, query, request)
})

/** Answers a request for data. */
const data = Effect.fnUntraced(function* (
  { options, results, live }: Serving,
  path: string,
  query: URLSearchParams,
  request: HttpServerRequest.HttpServerRequest,
) {
  if (path === "data/events") return live.events
  if (path === "metrics") {
    yield* live.lookAgain
    return HttpServerResponse.text(prometheusText(yield* runMetricsOf(results.files, results.index)), {
      contentType: prometheusType,
      headers: ofOneOrigin,
    })
  }
  if (path === "data/runs.json") {
    yield* live.lookAgain
    const title = basename(results.files.root)
    const hasCluster = options.cluster !== undefined
    const canChange = mayChange(request, options.changeToken)
    return document({
      live: true,
      hasCluster,
      canChange,
      title,
      runs: results.index.runs(),
      trainers: results.index.trainers(),
    })
  }
  if (path === "data/cluster.json" && options.cluster !== undefined) return document(yield* options.cluster)
  if (path === "data/settings.json") return document(yield* results.settings(results.index.runs()))
  const study = /^data\/study(?:\/(.+))?\/study\.json$/s.exec(path)
  if (study !== null) {
    const detail = yield* readStudyIn(results.files, study[1] ?? "")
    return detail === undefined ? refusal(404, "there is no such study") : document(detail)
  }
  return yield* runData({ results, live }, path, query)
})

/** Answers a request for data of a run. */
const runData = Effect.fnUntraced(function* (
  { results, live }: Pick<Serving, "results" | "live">,
  path: string,
  query: URLSearchParams,
) {
  const [, run, what, key] =
    /^data\/run\/(.+)\/(run|curves|metrics|episodes|episodes\/([a-z\d-]+))\.json$/s.exec(path) ?? []
  if (run === undefined) return refusal(404, "there is nothing here")
  if (!results.index.has(run)) yield* live.lookAgain
  const summary = results.index.summary(run)
  if (summary === undefined) return refusal(404, "there is no such run")
  if (what === "episodes") {
    const asked = pageAsked(query)
    if (asked === undefined) return refusal(400, "no such part of the list")
    return document(yield* results.transcripts.page(run, asked))
  }
  if (what === "metrics") return document(yield* results.metrics(run))
  if (key !== undefined) {
    const transcript = yield* results.transcripts.one(run, key)
    return transcript === undefined ? refusal(404, "there is no such episode") : document(transcript)
  }
  return document(yield* what === "run" ? detailOf(results, summary) : results.curves.of(run))
})

/** The headers of all responses. */
const always = {
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
}

/** The headers of responses with data. No page of another origin may read them, and no cache may keep them. */
const ofOneOrigin = { "cache-control": "no-store", "cross-origin-resource-policy": "same-origin" }

const refusal = (status: number, message: string): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.text(`${message}\n`, { status, headers: { "cache-control": "no-store" } })

const document = (value: unknown): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.text(JSON.stringify(value), {
    contentType: json,
    headers: ofOneOrigin,
  })

/** Returns the decoded path (without the leading slash) and the query; undefined if the address cannot be decoded. */
const placeOf = (url: string): { readonly path: string; readonly query: URLSearchParams } | undefined => {
  try {
    const { pathname, searchParams } = new URL(url, "http://localhost")
    return { path: decodeURIComponent(pathname).slice(1), query: searchParams }
  } catch {
    return undefined
  }
}

/** Serves a file of a run. The file is not trusted, so opening it must execute nothing. */
const runFile = Effect.fnUntraced(function* ({ files }: ResultsFolder, path: string) {
  const [real, size] = yield* Effect.all([files.locate(path), files.size(path)])
  if (real === undefined || size === undefined) return refusal(404, "there is no such file")
  const type = contentType(real)
  const response = HttpServerResponse.file(real, {
    contentType: type,
    bytesToRead: size,
    headers: {
      "content-security-policy": filePolicy,
      ...ofOneOrigin,
      ...(type === "application/octet-stream" ? { "content-disposition": "attachment" } : {}),
    },
  })
  return yield* Effect.catch(response, () => Effect.succeed(refusal(404, "there is no such file")))
})

/** Answers the current request for the band (mean curve with its interval) of several runs. */
const bands = Effect.fnUntraced(function* ({ index, curves }: ResultsFolder) {
  const body = yield* Effect.result(jsonBody(mostAsked, refusal))
  if (body._tag === "Failure") return body.failure
  const asked = Schema.decodeUnknownOption(BandRequest)(body.success)
  if (asked._tag === "None") return refusal(400, "expected { runs, measure, axis }")
  const { runs, measure, axis } = asked.value
  // Each run is one sample of the interval, however often it is named.
  const existing = [...new Set(runs)].filter(index.has)
  return document(yield* curves.band(existing, measure, axis))
})

/**
 * Makes three functions: `events` is a response that sends changes of runs as they happen; `lookAgain` checks for changes at
 * once; `watch` checks every `pollEvery` milliseconds while any page listens to the events.
 */
const makeLive = Effect.fnUntraced(function* ({ index }: ResultsFolder, pollEvery: number) {
  const changes = yield* PubSub.sliding<string>(16)
  const turn = yield* Semaphore.make(1)
  let listeners = 0
  let lookedAt = -Infinity
  let took = 0

  const look = turn.withPermits(1)(
    Effect.gen(function* () {
      if (performance.now() - lookedAt < pollEvery / 2) return
      const before = performance.now()
      const { changed, gone } = yield* index.refresh
      lookedAt = performance.now()
      took = lookedAt - before
      if (changed.length + gone.length > 0) yield* PubSub.publish(changes, JSON.stringify({ changed, gone }))
    }),
  )
  /**
   * Checks for changes, unless the last check has only just ended: simultaneous requests share one check. An aborted request
   * does not interrupt the check, because changes that the index has seen but that are not published yet would be lost. The
   * end of the server does interrupt it, because a bucket may take minutes to answer.
   */
  const lookAgain = Effect.flatMap(Effect.forkIn(look, yield* Effect.scope), Fiber.join)

  // A defect (because a file vanished while it was read, for example) must not end the watch.
  const lookAnyway = Effect.catchDefect(lookAgain, (defect) =>
    Effect.logWarning("The runs could not be looked at", defect),
  )
  const watch = Effect.gen(function* () {
    yield* lookAnyway
    while (true) {
      // If a check takes long (many runs on a slow disk), the pause is longer, so that the process has time for other work.
      yield* Effect.sleep(Math.max(pollEvery, 5 * took))
      if (listeners > 0) yield* lookAnyway
    }
  })

  const listening = Effect.acquireRelease(
    Effect.sync(() => void listeners++),
    () => Effect.sync(() => void listeners--),
  )
  const news = Stream.unwrap(
    Effect.map(Effect.andThen(listening, PubSub.subscribe(changes)), (subscription) =>
      Stream.map(Stream.fromSubscription(subscription), (change) => `event: change\ndata: ${change}\n\n`),
    ),
  )
  // The first heartbeat opens the stream; later heartbeats keep proxies from closing it.
  const heartbeat = Stream.map(Stream.tick("15 seconds"), () => ": still here\n\n")
  const events = HttpServerResponse.stream(Stream.encodeText(Stream.merge(news, heartbeat)), {
    contentType: "text/event-stream",
    headers: ofOneOrigin,
  })
  return { lookAgain, watch, events }
})
