/** Serves an engine with Node's HTTP server. `effect serve` and tests use it. */
import { createServer } from "node:http"
import { hostname } from "node:os"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { Effect, Layer, type Scope } from "effect"
import * as HttpServer from "effect/http/HttpServer"
import type { Engine } from "../inference/Engine.ts"
import { EngineError } from "../inference/EngineError.ts"
import { make, type ServedApp, type ServeOptions } from "./Serve.ts"

export interface ListenOptions extends Omit<ServeOptions, "guard"> {
  readonly host: string
  /** The port; 0 chooses a free port. */
  readonly port: number
  /** Additional host names with which clients may address the server. */
  readonly allowedHosts?: ReadonlyArray<string>
  /** Wraps the app, for example to answer the requests of another protocol. */
  readonly extended?: ((app: ServedApp["app"]) => ServedApp["app"]) | undefined
}

/**
 * Serves the engine of the context until the scope closes. Then it refuses further requests, finishes those in progress, and
 * closes all connections.
 */
export const serve = Effect.fnUntraced(function* (
  options: ListenOptions,
): Effect.fn.Return<{ readonly port: number }, EngineError, Engine | Scope.Scope> {
  const guard = { host: options.host, machine: hostname(), allowed: options.allowedHosts ?? [] }
  const { app, drain } = yield* make({ ...options, guard })
  const served = options.extended === undefined ? app : options.extended(app)
  const server = createServer()
  const listening = NodeHttpServer.layer(() => server, {
    host: options.host,
    port: options.port,
    gracefulShutdownTimeout: "200 millis",
  })
  yield* Layer.build(Layer.provide(HttpServer.serve(served), listening)).pipe(
    Effect.mapError(({ cause }) => {
      const isPortInUse = cause instanceof Error && "code" in cause && cause.code === "EADDRINUSE"
      const hint = isPortInUse ? "the port is in use; --port 0 picks a free one" : String(cause)
      const message = `cannot listen at ${options.host}:${options.port}: ${hint}`
      return new EngineError({ reason: "address", message })
    }),
  )
  // Clients keep connections open for further requests, so these are closed when the last answer is complete.
  yield* Effect.addFinalizer(() =>
    Effect.andThen(
      drain,
      Effect.sync(() => server.closeAllConnections()),
    ),
  )
  const address = server.address()
  return { port: typeof address === "object" && address !== null ? address.port : options.port }
})
