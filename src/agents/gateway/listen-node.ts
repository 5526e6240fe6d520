/** Serves the gateway with Node's HTTP server. */
import { createServer } from "node:http"
import { hostname } from "node:os"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { Context, Effect, Layer, Scope, Tracer } from "effect"
import * as HttpMiddleware from "effect/http/HttpMiddleware"
import * as HttpServer from "effect/http/HttpServer"
import type * as HttpServerRequest from "effect/http/HttpServerRequest"
import { AgentError } from "../agent/AgentError.ts"
import { type GatewayApp, makeApp } from "./app.ts"
import type { GatewayService } from "./Gateway.ts"
import { makeService } from "./service.ts"
import { Sessions } from "./Sessions.ts"

interface ListenOptions extends Omit<GatewayApp, "guard"> {
  readonly host: string
  /** The port; 0 chooses a free port. */
  readonly port: number
  /** Additional host names with which clients may address the server. */
  readonly allowedHosts?: ReadonlyArray<string>
  /** How long a client may take to send a request with its body, in seconds; 120 by default. */
  readonly requestSeconds?: number
}

/** How long a connection without a request stays open. Proxies and clients close theirs after a minute or less. */
const keepAliveMillis = 90_000

/** Listens until the scope closes, and returns the port. */
export const listen = Effect.fnUntraced(function* (
  options: ListenOptions,
): Effect.fn.Return<number, AgentError, Scope.Scope> {
  const guard = { host: options.host, machine: hostname(), allowed: options.allowedHosts ?? [] }
  const server = createServer()
  // Agents often wait for longer than Node's five seconds between two calls. A connection must not be closed just as the next
  // call is sent, because that call would fail.
  server.keepAliveTimeout = keepAliveMillis
  server.requestTimeout = (options.requestSeconds ?? 120) * 1000
  const listening = NodeHttpServer.layer(() => server, {
    host: options.host,
    port: options.port,
    // Many agents may connect at the same moment.
    backlog: 4096,
    gracefulShutdownTimeout: "200 millis",
  })
  // Effect makes the fibers of requests uninterruptible. The request of an agent that hangs up must end at once.
  const app = Effect.interruptible(makeApp({ ...options, guard })).pipe(
    // The requests do not belong to the span in which the server starts.
    Effect.updateContext((context: Context.Context<HttpServerRequest.HttpServerRequest | Scope.Scope>) =>
      Context.omit(Tracer.ParentSpan)(context),
    ),
  )
  // The span of a model's call says enough, so the server makes none.
  const untraced = Layer.succeed(HttpMiddleware.TracerDisabledWhen)(() => true)
  yield* Layer.build(Layer.provide(HttpServer.serve(app), Layer.merge(listening, untraced))).pipe(
    Effect.mapError(({ cause }) => {
      const isPortInUse = cause instanceof Error && "code" in cause && cause.code === "EADDRINUSE"
      const hint = isPortInUse ? "the port is in use; --port 0 picks a free one" : String(cause)
      const message = `gateway: cannot listen at ${options.host}:${options.port}: ${hint}`
      return new AgentError({ agent: "gateway", message })
    }),
  )
  // Clients keep connections open for further requests.
  yield* Effect.addFinalizer(() => Effect.sync(() => server.closeAllConnections()))
  const address = server.address()
  return typeof address === "object" && address !== null ? address.port : options.port
})

/** The limits of the gateway of a program, whose agents are its own. */
const usualLimits = { maxBodyBytes: 64 * 1024 * 1024, maxReadingBytes: 512 * 1024 * 1024, maxRequests: 8192 }
const mostSessions = 10_000

const host = "127.0.0.1"

/** Makes the gateway of this program. It listens on a free port of this machine from the first session on, until the scope closes. */
export const makeGateway: Effect.Effect<GatewayService, never, Scope.Scope> = Effect.gen(function* () {
  const scope = yield* Effect.scope
  const sessions = new Sessions({ sessions: mostSessions })
  const listening = Effect.map(listen({ sessions, host, port: 0, ...usualLimits }), (port) => `http://${host}:${port}`)
  return makeService(sessions, yield* Effect.cached(Effect.provideService(listening, Scope.Scope, scope)))
})
