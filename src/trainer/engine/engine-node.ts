/** The program of an engine's thread. `thread-node.ts` starts it, and `messages.ts` declares the messages between both. */
import { workerData } from "node:worker_threads"
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import * as NodePath from "@effect/platform-node/NodePath"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeWorkerRunner from "@effect/platform-node/NodeWorkerRunner"
import { Context, Deferred, Effect, Layer, Schema, Scope, Stream } from "effect"
import * as RpcServer from "effect/rpc/RpcServer"
import { backend } from "../../tensor/backend/named-node.ts"
import { Engine, type EngineService } from "../../decoder/inference/Engine.ts"
import { openBaseModel } from "../baseModel.ts"
import { TrainerError } from "../TrainerError.ts"
import { engineModel } from "./engineModel.ts"
import type { EngineTask } from "./EngineThreads.ts"
import { messages } from "./messages.ts"
import { ThreadBackend } from "./thread-node.ts"

const { name, threads } = Schema.decodeUnknownSync(ThreadBackend)(workerData)
const files = Layer.merge(NodeFileSystem.layer, NodePath.layer)

const open = ({ baseDir, name, ...settings }: EngineTask) =>
  openBaseModel(settings.model, { baseDir, seed: settings.seed }).pipe(
    Effect.flatMap((base) => Layer.build(Engine.layer(engineModel(settings, { ...base, name })))),
    Effect.map(Context.get(Engine)),
  )

const handlers = messages.toLayer(
  Effect.gen(function* () {
    const scope = yield* Effect.scope
    const services = yield* Layer.build(Layer.merge(files, Layer.orDie(backend(name, { threads }))))
    const opened = yield* Deferred.make<EngineService>()
    const ask = <A, E>(request: (engine: EngineService) => Effect.Effect<A, E>): Effect.Effect<A, E> =>
      Effect.flatMap(Deferred.await(opened), request)
    return messages.of({
      Open: (task) =>
        open(task).pipe(
          Effect.provideContext(services),
          Scope.provide(scope),
          Effect.mapError(TrainerError.from),
          Effect.flatMap((engine) => Effect.asVoid(Deferred.succeed(opened, engine))),
        ),
      Generate: (request) => ask((engine) => engine.generate(request)),
      Stream: (request) => Stream.unwrap(ask((engine) => Effect.succeed(engine.stream(request)))),
      Models: () => ask((engine) => engine.models),
      AwaitStep: ({ model, step }) => ask((engine) => engine.awaitStep(model, step)),
      Status: () => ask((engine) => engine.status),
      LoadAdapter: (adapter) => ask((engine) => engine.loadAdapter(adapter)),
      UnloadAdapter: ({ name }) => ask((engine) => engine.unloadAdapter(name)),
      LoadWeights: (weights) => ask((engine) => engine.loadWeights(weights)),
    })
  }),
)

RpcServer.layer(messages).pipe(
  Layer.provide(handlers),
  Layer.provide(RpcServer.layerProtocolWorkerRunner),
  Layer.provide(NodeWorkerRunner.layer),
  Layer.launch,
  NodeRuntime.runMain,
)
