/**
 * Starts and ends MCP servers for agents. When the Layer's scope closes, the stdin of each program is closed, then it gets
 * SIGTERM, and after five seconds SIGKILL. If this process is killed, the stdin closes, too, and the protocol requires the
 * program to end.
 */
import { Context, Effect, Exit, type FileSystem, Layer, type Path, Scope, Semaphore } from "effect"
import type * as HttpClient from "effect/http/HttpClient"
import type { AgentError } from "../AgentError.ts"
import { McpServers, type McpServersService } from "../Mcp.ts"
import type { Tool } from "../Tool.ts"

const makeServers = Effect.gen(function* () {
  const scope = yield* Effect.scope
  const context = yield* Effect.context<HttpClient.HttpClient | FileSystem.FileSystem | Path.Path>()
  // The modules are loaded for the first server, because most runs have none.
  const loaded = yield* Effect.cached(
    Effect.gen(function* () {
      const [{ connect }, { layer }, { ChildProcessSpawner }] = yield* Effect.promise(() =>
        Promise.all([
          import("./connect.ts"),
          import("@effect/platform-node/NodeChildProcessSpawner"),
          import("effect/process/ChildProcessSpawner"),
        ]),
      )
      const built = yield* Effect.provideContext(Layer.buildWithScope(layer, scope), context)
      return { connect, spawner: Context.get(built, ChildProcessSpawner), ChildProcessSpawner }
    }),
  )
  const connected = new Map<string, ReadonlyArray<Tool>>()
  const turn = yield* Semaphore.make(1)
  const service: McpServersService = {
    tools: (config): Effect.Effect<ReadonlyArray<Tool>, AgentError> => {
      const key = JSON.stringify(config)
      return turn.withPermit(
        Effect.gen(function* () {
          const known = connected.get(key)
          if (known !== undefined) return known
          const { connect, spawner, ChildProcessSpawner } = yield* loaded
          const own = yield* Scope.fork(scope)
          const tools = yield* connect(config).pipe(
            Effect.provideService(ChildProcessSpawner, spawner),
            Effect.provideContext(Context.add(context, Scope.Scope, own)),
            // End a server that cannot be used now, instead of when the Layer's scope closes.
            Effect.onError(() => Scope.close(own, Exit.void)),
          )
          connected.set(key, tools)
          return tools
        }),
      )
    },
  }
  return service
})

/** Provides the MCP servers that agents name in `tools`, and ends them with the Layer's scope. */
export const layer: Layer.Layer<never, never, HttpClient.HttpClient | FileSystem.FileSystem | Path.Path> = Layer.effect(
  McpServers,
  makeServers,
)
