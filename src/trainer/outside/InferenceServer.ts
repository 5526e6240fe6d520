/**
 * The client of an inference server (`effect serve`), for orchestrators. It waits for the weights of a step, and asks the
 * run's model for answers with their tokens. It also waits while the server is down or busy, or has older weights, so that
 * the server can be restarted at any moment.
 *
 * @example
 * ```ts
 * const server = yield* connect({ url: "http://127.0.0.1:8000", apiKey: null, report: () => Effect.void })
 * const { policy, awaitWeights } = yield* server.modelOf("run_a", sampling)
 * yield* awaitWeights(12)
 * const { tokens } = yield* policy.complete({ ...request, traceTokens: true })
 * tokens?.weights?.step // 12 or more
 * ```
 */
import { Deferred, Effect, type Redacted, Schema } from "effect"
import type { LmRequest } from "../../agents/lm/Chat.ts"
import type { LmService } from "../../agents/lm/Lm.ts"
import { LmError, lmError } from "../../agents/lm/LmError.ts"
import { getText, read } from "../../agents/lm/providers/http.ts"
import * as OpenAi from "../../agents/lm/providers/openAi.ts"
import { serverOf } from "../../agents/lm/providers/Server.ts"
import type { SamplingConfig } from "../config/OrchestratorConfig.ts"

/** An event of the server that the client reports. */
export type ServerEvent =
  /** The server cannot be reached, or fails. The request is sent again until it is answered. */
  | { readonly _tag: "Failing"; readonly message: string }
  | { readonly _tag: "Answering" }
  /** The server still has older weights of the model; `found` is null if it does not have the model. */
  | { readonly _tag: "Waiting"; readonly model: string; readonly step: number; readonly found: number | null }

interface ConnectOptions {
  /** The server's address, with or without `/v1`. */
  readonly url: string
  readonly apiKey: Redacted.Redacted | null
  readonly report: (event: ServerEvent) => Effect.Effect<void>
}

/** A run's model on the server. */
interface RemoteModel {
  /** Asks the model. The answers come from the weights of the awaited step, or of later ones. */
  readonly policy: LmService
  readonly awaitWeights: (step: number) => Effect.Effect<void, LmError>
}

const ModelBody = Schema.Struct({ id: Schema.String, step: Schema.optionalKey(Schema.Int) })

/** The number of seconds for which the server may hold back its reply while it waits for weights. */
const longestWait = 30

/** The longest time in milliseconds between two attempts. */
const longestDelay = 2000

/** Tells whether the error means that the server does not have the model. */
const isMissing = ({ reason, message }: LmError): boolean => reason === "rejected" && / answered 404\b/.test(message)

const isTemporary = ({ reason }: LmError): boolean => reason === "unavailable" || reason === "malformed"

/** The connection with an inference server. */
interface Connection {
  readonly report: ConnectOptions["report"]
  readonly address: Pick<Parameters<typeof serverOf>[0], "baseUrl" | "apiKey" | "keyVariable">
  readonly server: Effect.Success<ReturnType<typeof serverOf>>
  /** Fails when the server refuses all requests. */
  readonly refusal: Deferred.Deferred<never, LmError>
  /** The message of the failure that was reported last; null once the server has answered again. */
  trouble: string | null
  /** Whether the server has listed its models. A server that answers this request with 404 is not an inference server. */
  isInferenceServer: boolean
}

/** Makes the client. This sends no request yet. */
export const connect = Effect.fnUntraced(function* ({ url, apiKey, report }: ConnectOptions) {
  const address = { baseUrl: url, apiKey, keyVariable: null }
  const connection: Connection = {
    report,
    address,
    server: yield* serverOf({ model: "inference server", ...address }, OpenAi.protocol),
    refusal: yield* Deferred.make<never, LmError>(),
    trouble: null,
    isInferenceServer: false,
  }
  return {
    /** Opens the model of a run. Call the model's `awaitWeights` before each batch of requests. */
    modelOf: (model: string, sampling: SamplingConfig) => modelOf(connection, model, sampling),
    /**
     * Fails if the server refuses the API key or is not an inference server. The request that detects this never ends, so
     * that its run is not blamed.
     */
    refused: Deferred.await(connection.refusal),
  }
})

/** Makes the whole connection fail. The request that detected the problem never ends, so that its run is not blamed. */
const refuse = ({ refusal }: Connection, error: LmError): Effect.Effect<never> =>
  Effect.andThen(Deferred.fail(refusal, error), Effect.never)

const answered = (connection: Connection) =>
  Effect.suspend(() => {
    if (connection.trouble === null) return Effect.void
    connection.trouble = null
    return connection.report({ _tag: "Answering" })
  })

/** Sends a request again while its failures are temporary. `tries` is the number of earlier attempts. */
const attempt = <A>(connection: Connection, request: Effect.Effect<A, LmError>, tries = 0): Effect.Effect<A, LmError> =>
  Effect.catchIf(request, isTemporary, (error) =>
    Effect.gen(function* () {
      // A reply that names a delay comes from a busy or stopping server, which needs no report.
      if (error.retryAfter === undefined && connection.trouble !== error.message) {
        connection.trouble = error.message
        yield* connection.report({ _tag: "Failing", message: error.message })
      }
      const delay = error.retryAfter === undefined ? 100 * 2 ** tries : 1000 * error.retryAfter
      yield* Effect.sleep(Math.min(longestDelay, delay))
      return yield* attempt(connection, request, tries + 1)
    }),
  )

/** Sends a request until the server answers or rejects it. */
const persistently = <A>(connection: Connection, request: Effect.Effect<A, LmError>): Effect.Effect<A, LmError> =>
  attempt(connection, request).pipe(
    Effect.catchIf(
      ({ reason }) => reason === "unauthorised",
      (error) => refuse(connection, error),
    ),
    Effect.tap(() => answered(connection)),
    // A rejection also shows that the server works again.
    Effect.tapError(() => answered(connection)),
  )

/** Checks that the server is an inference server, before the first wait for a model that it does not have. */
const checkProtocol = (connection: Connection): Effect.Effect<void, LmError> =>
  Effect.suspend(() => {
    const { server, isInferenceServer } = connection
    if (isInferenceServer) return Effect.void
    return persistently(connection, getText(server, "models", {})).pipe(
      Effect.catchIf(isMissing, ({ message }) => {
        const problem = `${message}; expected an inference server: start one with effect serve TRAINER`
        return refuse(
          connection,
          new LmError({ model: server.model, reason: "rejected", attempts: 1, message: problem }),
        )
      }),
      Effect.map(() => void (connection.isInferenceServer = true)),
    )
  })

/**
 * Asks for the step of the model's weights. The server answers when they reach `step`, or after `longestWait` seconds with
 * the older step. Null if the server does not have the model.
 */
const stepOf = (connection: Connection, model: string, step: number): Effect.Effect<number | null, LmError> => {
  const { server } = connection
  const found = getText(server, `models/${encodeURIComponent(model)}`, { step, wait: longestWait }).pipe(
    Effect.flatMap(read(server, ModelBody)),
    Effect.map((body) => body.step ?? 0),
    Effect.catchIf(isMissing, () => Effect.succeed(null)),
  )
  return Effect.tap(persistently(connection, found), (at) => (at === null ? checkProtocol(connection) : Effect.void))
}

const awaitStep = Effect.fnUntraced(function* (
  connection: Connection,
  model: string,
  step: number,
): Effect.fn.Return<void, LmError> {
  while (true) {
    const found = yield* stepOf(connection, model, step)
    if (found !== null && found >= step) return
    yield* connection.report({ _tag: "Waiting", model, step, found })
    // This pause is for servers that ignore the parameter `wait`, and answer at once.
    yield* Effect.sleep("200 millis")
  }
})

/** Opens the model of a run. */
const modelOf = Effect.fnUntraced(function* (connection: Connection, model: string, sampling: SamplingConfig) {
  const { topP, topK, minP, stopTokenIds } = sampling
  // With `clip_max_tokens`, the server cuts `max_tokens` for long prompts: the run's setting is one number for all of its
  // prompts.
  const extra = {
    clip_max_tokens: true,
    min_p: minP,
    stop_token_ids: stopTokenIds,
    ...(topK === null ? {} : { top_k: topK }),
  }
  const provider = yield* OpenAi.make({ model, ...connection.address, extra })
  let needed = 0
  const complete = (request: LmRequest): ReturnType<LmService["complete"]> =>
    Effect.gen(function* () {
      const sent = { ...request, model, topP: request.topP ?? topP }
      const answer = yield* persistently(connection, provider.complete(sent)).pipe(
        // A restarted server lacks the model for a moment, so wait and ask again.
        Effect.catchIf(isMissing, () => Effect.as(Effect.sleep("200 millis"), null)),
      )
      const step = answer?.tokens?.weights?.step
      if (answer !== null && step !== undefined && step >= needed) return answer
      if (answer !== null && request.traceTokens && step === undefined)
        return yield* lmError(
          model,
          "rejected",
          "the server's answer lacks its tokens or the step of its weights; serve the model with effect serve",
        )
      yield* awaitStep(connection, model, needed)
      return yield* complete(request)
    })
  return {
    policy: { complete },
    awaitWeights: (step) => {
      needed = step
      return awaitStep(connection, model, step)
    },
  } satisfies RemoteModel
})

export type InferenceServer = Effect.Success<ReturnType<typeof connect>>
