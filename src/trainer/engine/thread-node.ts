/**
 * Implements `EngineThreads` with Node's worker threads: starts a thread with `engine-node.ts` as its program, and sends it
 * each request by Effect's RPC. If a caller is interrupted, its request in the thread is interrupted, too.
 */
import { Effect, Layer, Schema, Stream } from "effect"
import type * as RpcClient from "effect/rpc/RpcClient"
import type { RpcClientError } from "effect/rpc/RpcClientError"
import type { WorkerError } from "../../spread/workers/WorkerError.ts"
import { type BackendName, backendNames } from "../../tensor/backend/names.ts"
import type { EngineService, GenerateRequest } from "../../decoder/inference/Engine.ts"
import { type EngineError, engineError } from "../../decoder/inference/EngineError.ts"
import { programBeside } from "../../base/files/programBeside.ts"
import { makeThread } from "../../spread/workers/thread-node.ts"
import { EngineThreads } from "./EngineThreads.ts"
import type { messages } from "./messages.ts"

const program = programBeside(import.meta.url, "engine-node")

/** The backend of a thread. It must be the same as the trainer's. */
export const ThreadBackend = Schema.Struct({ name: Schema.Literals(backendNames), threads: Schema.Int })

/** Loads the modules of Effect's RPC only when a thread is started, because most programs start none. */
const modules = Effect.all({
  Client: Effect.promise(() => import("effect/rpc/RpcClient")),
  group: Effect.promise(() => import("./messages.ts")),
})

const messageFrom = ({ promptIds, ...request }: GenerateRequest) => ({ ...request, promptIds: Array.from(promptIds) })

/** A started thread, and the Effect that waits for its end. */
interface Started {
  readonly client: RpcClient.FromGroup<typeof messages, RpcClientError>
  readonly untilLost: Effect.Effect<never, WorkerError>
}

/** Starts a thread, which works until the scope closes. */
const started = Effect.fnUntraced(function* (backend: typeof ThreadBackend.Type) {
  const { Client, group } = yield* modules
  const { platform, untilLost } = yield* makeThread({ name: "engine", program, data: backend })
  const protocol = Client.layerProtocolWorker({ size: 1, concurrency: Number.MAX_SAFE_INTEGER }).pipe(
    Layer.provide(platform),
    Layer.orDie,
  )
  const client = yield* Effect.provide(
    Client.make(group.messages, { disableTracing: true }),
    yield* Layer.build(protocol),
  )
  return { client, untilLost } satisfies Started
})

/** Starts threads whose engines compute on a backend. `threads` is the number of threads that compute in each. */
export const layer = ({
  backend: name,
  threads = 1,
}: {
  readonly backend: BackendName
  readonly threads?: number
}): Layer.Layer<EngineThreads> =>
  Layer.succeed(EngineThreads, {
    start: Effect.fnUntraced(function* (task) {
      const { client, untilLost } = yield* started({ name, threads })
      yield* Effect.raceFirst(
        Effect.catchTag(client.Open(task), "RpcClientError", () => untilLost),
        untilLost,
      )
      const lostError = (model: string) => (error: WorkerError) => engineError(model, "closed", error.message)
      const ask = <A>(model: string, request: Effect.Effect<A, EngineError | RpcClientError>) =>
        Effect.catchTag(request, "RpcClientError", () => Effect.never).pipe(
          Effect.raceFirst(Effect.mapError(untilLost, lostError(model))),
        )
      /**
       * Requests that cannot fail wait for ever if the thread is lost, like those of an engine that is closed in this thread.
       */
      const alive = <A>(request: Effect.Effect<A, RpcClientError>) =>
        Effect.catchTag(request, "RpcClientError", () => Effect.never)
      const engine: EngineService = {
        generate: (request) => ask(request.model, client.Generate(messageFrom(request))),
        stream: (request) =>
          client.Stream(messageFrom(request)).pipe(
            Stream.catchTag("RpcClientError", () => Stream.never),
            Stream.interruptWhen(Effect.mapError(untilLost, lostError(request.model))),
          ),
        models: alive(client.Models()),
        awaitStep: (model, step) => alive(client.AwaitStep({ model, step })),
        status: alive(client.Status()),
        loadAdapter: (adapter) => ask(adapter.name, client.LoadAdapter(adapter)),
        unloadAdapter: (model) => ask(model, client.UnloadAdapter({ name: model })),
        loadWeights: (weights) => ask(task.name, client.LoadWeights(weights)),
      }
      return { engine, untilLost }
    }),
  })
