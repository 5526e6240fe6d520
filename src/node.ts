/**
 * Provides the Layers for Node: runs stored in folders, all backends, threads for envs, and HTTP. The commands of the
 * CLI use them, and so do programs that run on Node.
 *
 * @example
 * ```ts
 * import * as Node from "effect-rl/node"
 *
 * const layers = Layer.mergeAll(Node.backend("auto"), Node.runStore({ resultsDir: "results" }), Node.recorder())
 * const result = await Effect.runPromise(training.pipe(Effect.provide(layers)))
 * ```
 */
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import * as NodePath from "@effect/platform-node/NodePath"
import { Clock, Context, Effect, type FileSystem, Layer, type Path, Scope } from "effect"
import * as HttpClient from "effect/http/HttpClient"
import type * as HttpClientError from "effect/http/HttpClientError"
import { Backend } from "./tensor/backend/Backend.ts"
import { backend } from "./tensor/backend/named-node.ts"
import type { BackendName } from "./tensor/backend/names.ts"
import type { GatewayService } from "./agents/gateway/Gateway.ts"
import type { DecodersService } from "./agents/lm/Decoders.ts"
import type { EngineThreads } from "./trainer/engine/EngineThreads.ts"
import * as engineThreads from "./trainer/engine/thread-node.ts"
import type { ReferenceThreads } from "./trainer/reference/ReferenceThreads.ts"
import * as referenceThreads from "./trainer/reference/thread-node.ts"
import type { EnvServerOptions } from "./agents/openenv/listen-node.ts"
import type { EnvError } from "./base/EnvError.ts"
import type { ServedEnv } from "./spread/openenv/ServedEnv.ts"
import type { OpenEnvServersService } from "./spread/openenv/OpenEnvServers.ts"
import { layer as foreignEnvs } from "./rl/env/foreign/layer-node.ts"
import { layer as policyHeaders } from "./rl/train/policyHeaders-node.ts"
import { layer as videos } from "./rl/train/validation/videos-node.ts"
import { layer as codeRunner } from "./agents/task/code/runner-node.ts"
import { layer as hubCache } from "./agents/task/hub/cache-node.ts"
import { layer as textPrograms } from "./agents/task/foreign/programs-node.ts"
import { owner } from "./run/store/owner-node.ts"
import { codeOf, withProgram } from "./run/store/code-node.ts"
import { gitCommit, gitProvenance, shortCommit, trackedAmong } from "./run/store/git-node.ts"
import { type FileSystemOptions, RunStore } from "./run/store/RunStore.ts"
import { progress } from "./run/record/progress.ts"
import { Recorder, type Sink } from "./run/record/Recorder.ts"
import { runLog } from "./run/record/runLog.ts"
import { scores } from "./run/record/scores.ts"
import { system, type SystemFigures } from "./run/record/system.ts"
import { tensorBoard } from "./run/record/tensorBoard.ts"

export { backend }
export type { BackendName }
export { backendNames } from "./tensor/backend/names.ts"

/** Bun's own `undici` lacks what Effect's client needs, so there `fetch` sends the requests, without Bun's time limit. */
const clientOfBun = Effect.map(
  Effect.promise(() => import("effect/http/FetchHttpClient")),
  ({ Fetch, layer }) => {
    const patient: typeof fetch = (url, init) => {
      const withoutLimit: RequestInit & { readonly timeout: false } = { ...init, timeout: false }
      return fetch(url, withoutLimit)
    }
    const sending = Effect.map(
      HttpClient.HttpClient,
      HttpClient.transform((response) => Effect.provideService(response, Fetch, patient)),
    )
    return Layer.effect(HttpClient.HttpClient, sending).pipe(Layer.provide(layer))
  },
)

const clientOfNode = Effect.map(
  Effect.promise(() => import("@effect/platform-node/NodeHttpClient")),
  ({ layerUndici }) => layerUndici,
)

/**
 * Provides the HTTP client for language models. It waits for an answer as long as the setting `timeout_s` of the model
 * says, while Node's `fetch` stops after five minutes. Its modules, which are many, are loaded by the first request,
 * because most runs send none.
 */
export const httpClient: Layer.Layer<HttpClient.HttpClient> = Layer.effect(
  HttpClient.HttpClient,
  Effect.gen(function* () {
    const scope = yield* Effect.scope
    // The client keeps the context in which it is made, so it must not be that of the first request.
    const context = yield* Effect.context<never>()
    const load = (process.versions["bun"] === undefined ? clientOfNode : clientOfBun).pipe(
      Effect.flatMap((layer) => Layer.buildWithScope(layer, scope)),
      Effect.updateContext<never, never>(() => context),
    )
    const loaded = yield* Effect.cached(Effect.map(load, Context.get(HttpClient.HttpClient)))
    return HttpClient.makeWith<never, never, HttpClientError.HttpClientError, never>(
      Effect.flatMap((request) => Effect.flatMap(loaded, (client) => client.execute(request))),
      Effect.succeed,
    )
  }),
)

/**
 * Provides the language models in this process, which configs name as `decoder:FOLDER`. They compute on the backend of the
 * program that opens them, or else on `auto`. The modules of models are loaded for the first of them.
 */
export const decoders: Layer.Layer<never, never, FileSystem.FileSystem | Path.Path> = Layer.unwrap(
  Effect.map(
    Effect.promise(() => import("./agents/lm/Decoders.ts")),
    ({ Decoders }) => Layer.effect(Decoders, lazyDecoders),
  ),
)

const lazyDecoders = Effect.gen(function* () {
  const context = yield* Effect.context<FileSystem.FileSystem | Path.Path | Scope.Scope>()
  const load = Effect.promise(() => import("./trainer/weights/decoders.ts")).pipe(
    Effect.flatMap(({ makeDecoders }) => makeDecoders(Effect.map(Layer.build(backend("auto")), Context.get(Backend)))),
    Effect.provideContext(context),
  )
  const loaded = yield* Effect.cached(load)
  const service: DecodersService = { open: (folder) => Effect.flatMap(loaded, ({ open }) => open(folder)) }
  return service
})

/** Provides the processes of a multi-run trainer that sets `trainer.ranks`. */
export { layer as rankProcesses } from "./trainer/ranks/processes-node.ts"

/** Provides the processes that compute gradients for a training that sets `ranks`. */
export { layer as trainingRanks } from "./spread/ranks/ranks-node.ts"

/**
 * Provides the threads of a multi-run trainer: its engine's, for `inference.own_thread`, and its reference's, for
 * `trainer.reference_thread`. `threads` is the number of threads that compute.
 */
export const trainerThreads = (options: {
  readonly backend: BackendName
  readonly threads?: number
}): Layer.Layer<EngineThreads | ReferenceThreads> =>
  Layer.merge(engineThreads.layer(options), referenceThreads.layer(options))

/** Provides threads that step envs, for a training that sets `workers`. */
export { layer as envPool } from "./rl/env/pool/pool-node.ts"

/** Envs of Gymnasium, games of PettingZoo, and envs of programs in any language. */
export { mjcfFile } from "./rl/env/mujoco/file-node.ts"
export * as Gymnasium from "./rl/env/foreign/gymnasium-node.ts"
export * as PettingZoo from "./rl/env/foreign/pettingzoo-node.ts"
export * as ForeignEnv from "./rl/env/foreign/command-node.ts"

/** Provides the processes that step the envs of other programs, for configs that name such envs. */
export { foreignEnvs }

/** Provides the service that runs untrusted programs without files or network, for data sets of `type: code`. */
export { codeRunner }

/** Provides the programs that play tasks in words, for data sets of `type: foreign`, and ends them with the Layer. */
export { textPrograms }

/** Provides the processes of agents of `type: command`. */
export const agentPrograms: Layer.Layer<never> = Layer.unwrap(
  Effect.map(
    Effect.promise(() => import("./agents/agent/outside/programs-node.ts")),
    ({ layer }) => layer,
  ),
)

/** Provides the MCP servers that agents name in `tools`, and ends them with the Layer's scope. */
export const mcpServers: Layer.Layer<never, never, HttpClient.HttpClient | FileSystem.FileSystem | Path.Path> =
  Layer.unwrap(
    Effect.map(
      Effect.promise(() => import("./agents/agent/mcp/servers-node.ts")),
      ({ layer }) => layer,
    ),
  )

/**
 * Provides the gateway, through which agents that run their own code call models. It listens on this machine from its first
 * session on, for which its modules are loaded.
 */
export const gateway: Layer.Layer<never> = Layer.unwrap(
  Effect.map(
    Effect.promise(() => import("./agents/gateway/Gateway.ts")),
    ({ Gateway }) => Layer.effect(Gateway, lazyGateway),
  ),
)

const lazyGateway = Effect.gen(function* () {
  const scope = yield* Effect.scope
  const load = Effect.promise(() => import("./agents/gateway/listen-node.ts")).pipe(
    Effect.flatMap(({ makeGateway }) => makeGateway),
    Effect.provideService(Scope.Scope, scope),
  )
  const loaded = yield* Effect.cached(load)
  const service: GatewayService = { open: (options) => Effect.flatMap(loaded, ({ open }) => open(options)) }
  return service
})

/** Provides connections to servers of OpenEnv, for data sets of `type: openenv`. Its modules are loaded for the first of them. */
export const openEnvServers: Layer.Layer<never> = Layer.unwrap(
  Effect.map(
    Effect.promise(() => import("./spread/openenv/OpenEnvServers.ts")),
    ({ OpenEnvServers }) => Layer.effect(OpenEnvServers, lazyOpenEnvServers),
  ),
)

/**
 * Serves tasks or an env by OpenEnv's protocol until the scope closes, and returns the port. `servedTasks` and `servedNumbers`
 * make what is served.
 *
 * @example
 * ```ts
 * import * as Node from "effect-rl/node"
 *
 * const served = yield* servedNumbers(CartPole.env)
 * const port = yield* Node.serveOpenEnv(served, { port: 8000 })
 * ```
 */
export const serveOpenEnv = (
  env: ServedEnv,
  options: Partial<EnvServerOptions> = {},
): Effect.Effect<number, EnvError, Scope.Scope> =>
  Effect.flatMap(
    Effect.promise(() => import("./agents/openenv/listen-node.ts")),
    ({ listen }) => listen(env, options),
  )

const lazyOpenEnvServers = Effect.gen(function* () {
  const load = Effect.promise(() => import("./spread/openenv/connect-node.ts"))
  const loaded = yield* Effect.cached(Effect.flatMap(load, ({ makeServers }) => makeServers))
  const service: OpenEnvServersService = { open: (options) => Effect.flatMap(loaded, ({ open }) => open(options)) }
  return service
})

const files = Layer.merge(NodeFileSystem.layer, NodePath.layer)

/**
 * Provides what language-model agents need: files for data sets and caches, HTTP to model servers, models in this process,
 * processes for untrusted programs, MCP servers, and the gateway; also processes for the envs and the tasks of other programs.
 */
export const platform = Layer.mergeAll(
  files,
  httpClient,
  Layer.provide(decoders, files),
  codeRunner(),
  foreignEnvs,
  Layer.provide(videos, files),
  policyHeaders,
  textPrograms,
  openEnvServers,
  agentPrograms,
  hubCache,
  gateway,
  Layer.provide(mcpServers, Layer.merge(files, httpClient)),
)

/** Stores runs in folders below `resultsDir`. By default, folder names contain the current time and commit. */
export const runStore = ({
  program,
  ...options
}: Pick<FileSystemOptions, "resultsDir"> &
  Partial<FileSystemOptions> & {
    /** The file of the program that makes the run, which is saved with the local files that it imports. */
    readonly program?: string | undefined
  }): Layer.Layer<RunStore> =>
  Layer.unwrap(
    Effect.gen(function* () {
      const [provenance, now] = yield* Effect.zip(gitProvenance, Clock.currentTimeMillis)
      const code = program === undefined ? undefined : codeOf(program)
      const tracked = yield* provenance === undefined || code === undefined
        ? Effect.succeed(new Set<string>())
        : trackedAmong(code.files.map(({ source }) => source))
      return RunStore.layerFileSystem({
        time: new Date(now),
        commit: shortCommit(provenance),
        provenance:
          provenance === undefined || code === undefined ? provenance : withProgram(provenance, code, tracked),
        code,
        owner,
        indexed: true,
        ...options,
      })
    }),
  ).pipe(Layer.provide(files))

export { gitCommit, gitProvenance }
export { redisStore } from "./trainer/store/redisStores-node.ts"

/** Provides the recorder: it passes a run's events to the sinks that write the run's files, and to those in `more`. */
export const recorder = (...more: ReadonlyArray<Sink>): Layer.Layer<Recorder> =>
  Recorder.layer(scores, tensorBoard, runLog, system(systemFigures), ...more)

/** Measures the bytes of memory that this process uses now, and the CPU time that it has used so far. */
const systemFigures = (): SystemFigures => {
  const { rss, heapUsed, external } = process.memoryUsage()
  const { user, system: ofKernel } = process.cpuUsage()
  return { rss, heap: heapUsed, buffers: external, cpuSeconds: (user + ofKernel) / 1e6 }
}

/** A sink (a receiver of a run's events) that shows the progress as a line on stderr. */
export const terminalProgress: Sink = progress({
  write: (text) => Effect.sync(() => void process.stderr.write(text)),
  isTerminal: process.stderr.isTTY === true,
  // Some pseudo-terminals report a width of 0, so a default with `??` would not do.
  columns: process.stderr.columns || 100,
})
