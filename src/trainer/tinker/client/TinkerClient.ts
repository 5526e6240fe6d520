/**
 * The client of Tinker's protocol: trains adapters of a server's model, and samples from them. The server may be `effect serve
 * --tinker`, or a service that speaks the same protocol.
 *
 * A request is sent again until it is answered, with the same number, by which the server performs it once. Requests of a model
 * are sent one after another.
 *
 * @example
 * ```ts
 * const training = Effect.gen(function* () {
 *   const tinker = yield* TinkerClient
 *   const model = yield* tinker.createModel({ baseModel: "letters", rank: 8, seed: 1 })
 *   const tokens = Int32Array.of(1, 2, 3)
 *   const datum = { tokens: tokens.slice(0, -1), targets: tokens.slice(1), columns: { weights: Float32Array.of(1, 1) } }
 *   yield* model.forwardBackward({ data: [datum], loss: "cross_entropy" })
 *   yield* model.optimStep({ learningRate: 0.01 })
 *   const sampler = yield* model.sampler
 *   return yield* sampler.sample({ promptIds: [1], temperature: 0, maxTokens: 2 })
 * })
 * const layer = TinkerClient.layer({ baseUrl: "http://127.0.0.1:8000" })
 * const done = training.pipe(Effect.scoped, Effect.provide(layer))
 * ```
 */
import { Context, Deferred, Effect, Fiber, Layer, Schema, type Scope } from "effect"
import type * as HttpClient from "effect/http/HttpClient"
import { Capabilities, ModelCreated, SamplerOpened, SessionCreated } from "../wire/responses.ts"
import type * as Requests from "../wire/requests.ts"
import {
  call,
  connect,
  type Connection,
  expecting,
  jsonIn,
  jsonRequest,
  quote,
  send,
  type TinkerAddress,
} from "./connection.ts"
import { accept, decodesJson, outcomeOf, perform } from "./futures.ts"
import { makeModel, type TinkerModel } from "./model.ts"
import { makeSampler, type TinkerSampler } from "./sampler.ts"
import { type TinkerError, tinkerError } from "./TinkerError.ts"

export type { TinkerAddress } from "./connection.ts"
export type { AdamParams, LossData, TinkerModel } from "./model.ts"
export type { SampleRequest, TinkerSampler } from "./sampler.ts"

/** The settings of a new model. */
export interface NewModel {
  /** The server's name for the base model. */
  readonly baseModel: string
  readonly rank: number
  /** The seed of the adapter. Without it, the server chooses one. */
  readonly seed?: number
  /** Whether the projections of attention have adapters. @default true */
  readonly trainsAttention?: boolean
  /** Whether the projections of feed-forward networks have adapters. @default true */
  readonly trainsMlp?: boolean
  /** Data that the server lists with the model. */
  readonly metadata?: Readonly<Record<string, unknown>>
}

/** A model of the server from which adapters are trained. */
interface BaseModelInfo {
  readonly name: string
  /** The most tokens of a prompt and its answer; null if the server does not say. */
  readonly maxLength: number | null
}

export class TinkerClient extends Context.Service<
  TinkerClient,
  {
    /** The address, for messages. */
    readonly address: string
    /** The models from which adapters can be trained. */
    readonly baseModels: Effect.Effect<ReadonlyArray<BaseModelInfo>, TinkerError>
    /** Creates a model, which is unloaded when the scope closes. Its checkpoints stay. */
    readonly createModel: (model: NewModel) => Effect.Effect<TinkerModel, TinkerError, Scope.Scope>
    /** Frees the memory of a model that an earlier client has left on the server. */
    readonly unload: (model: string) => Effect.Effect<void, TinkerError>
    /** Opens a sampler of a base model or, by its address, of a checkpoint. */
    readonly samplerOf: (
      weights: { readonly baseModel: string } | { readonly path: string },
    ) => Effect.Effect<TinkerSampler, TinkerError>
    /** Lets all requests fail, those that wait for an answer and all later ones, because the server takes too long. */
    readonly giveUp: Effect.Effect<void>
  }
>()("effect-rl/tinker/TinkerClient") {
  /** Connects with a server, and keeps a session on it until the scope closes. */
  static readonly layer = (address: TinkerAddress): Layer.Layer<TinkerClient, TinkerError, HttpClient.HttpClient> =>
    Layer.effect(TinkerClient, make(address))
}

/** The name by which the server's lists know this client. */
const clientName = "effect-rl"

/** The seconds between two signs of life. Servers forget a session without them after some minutes. */
const heartbeatSeconds = 10

/** The seconds for which a client that ends waits until the server has unloaded a model. */
const longestUnload = 10

const Empty = Schema.Struct({})

const openSession = Effect.fnUntraced(function* (connection: Connection) {
  const body = { type: "create_session", tags: [clientName], user_metadata: null, sdk_version: clientName }
  const session = yield* call(connection, "create_session", body, SessionCreated)
  if ((session.error_message ?? null) !== null)
    return yield* tinkerError("rejected", quote(connection, String(session.error_message)))
  for (const message of [session.info_message, session.warning_message])
    if ((message ?? null) !== null) yield* Effect.logWarning(`tinker: ${quote(connection, String(message))}`)
  const life: typeof Requests.SessionBody.Type = { session_id: session.session_id }
  // A lost sign of life does no harm: requests themselves report what is wrong.
  const beat = Effect.ignore(call({ ...connection, delays: [] }, "session_heartbeat", life, Empty))
  yield* Effect.sleep(`${heartbeatSeconds} seconds`).pipe(Effect.andThen(beat), Effect.forever, Effect.forkScoped)
  return session.session_id
})

/** Lists the server's models. */
const baseModelsOf = Effect.fnUntraced(function* (connection: Connection) {
  const request = { ...jsonRequest("get_server_capabilities", {}), method: "GET" as const }
  const { bytes } = yield* send(expecting(connection, 0), request)
  const decode = decodesJson(connection, request.path, Capabilities)
  const { supported_models } = yield* decode({ _tag: "Json", value: jsonIn(bytes) })
  return supported_models.flatMap(({ model_name: name, max_context_length: maxLength }): ReadonlyArray<BaseModelInfo> =>
    name === null || name === undefined ? [] : [{ name: quote(connection, name), maxLength: maxLength ?? null }],
  )
})

const unload = (connection: Connection, model: string): Effect.Effect<void, TinkerError> => {
  const path = "unload_model"
  const request = jsonRequest(path, { type: path, model_id: model })
  return Effect.asVoid(perform(connection, { request, protobuf: false, decode: decodesJson(connection, path, Empty) }))
}

const make = Effect.fnUntraced(function* (address: TinkerAddress) {
  const connection = yield* connect(address)
  const session = yield* openSession(connection)
  let models = 0
  let samplers = 0
  const nextSampler = (): number => samplers++

  const create = Effect.fnUntraced(function* (settings: NewModel) {
    const { baseModel, rank, seed, trainsAttention = true, trainsMlp = true, metadata = null } = settings
    const body: typeof Requests.CreateModel.Type = {
      session_id: session,
      model_seq_id: models++,
      base_model: baseModel,
      user_metadata: metadata,
      lora_config: {
        rank,
        ...(seed === undefined ? {} : { seed }),
        train_attn: trainsAttention,
        train_mlp: trainsMlp,
        train_unembed: false,
      },
    }
    const path = "create_model"
    const request = jsonRequest(path, { type: path, ...body })
    const long = { request, protobuf: false, decode: decodesJson(connection, path, ModelCreated) }
    const { model_id } = yield* outcomeOf(connection, long, yield* accept(connection, long))
    return model_id
  })

  return TinkerClient.of({
    address: connection.server.baseUrl.origin,
    baseModels: baseModelsOf(connection),
    createModel: (settings) =>
      Effect.acquireRelease(create(settings), (id) =>
        // The server may have ended before, and must not keep this process from ending.
        // A fiber of its own, because this one may have been interrupted, and then cannot be interrupted by a time limit.
        unload({ ...connection, delays: [] }, id).pipe(
          Effect.timeout(`${longestUnload} seconds`),
          Effect.interruptible,
          Effect.forkDetach,
          Effect.flatMap(Fiber.await),
        ),
      ).pipe(Effect.flatMap((id) => makeModel({ connection, id, nextSampler }))),
    unload: (model) => unload(connection, model),
    samplerOf: Effect.fnUntraced(function* (weights) {
      const body: typeof Requests.CreateSamplingSession.Type = {
        session_id: session,
        sampling_session_seq_id: nextSampler(),
        ...("path" in weights ? { model_path: weights.path } : { base_model: weights.baseModel }),
      }
      const path = "create_sampling_session"
      const opened = yield* call(connection, path, { type: path, ...body }, SamplerOpened)
      return makeSampler(connection, opened.sampling_session_id)
    }),
    giveUp: Effect.asVoid(
      Deferred.fail(
        connection.gaveUp,
        tinkerError("unavailable", `${connection.server.baseUrl.origin} left a request unanswered for too long`),
      ),
    ),
  })
})
