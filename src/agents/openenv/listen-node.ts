/** Serves an env by OpenEnv's protocol with Node's HTTP server. */
import { createServer, IncomingMessage } from "node:http"
import { hostname } from "node:os"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { Effect, Layer, type Scope } from "effect"
import * as HttpServer from "effect/http/HttpServer"
import { type EnvError, invalid } from "../../base/EnvError.ts"
import type { ServedEnv } from "../../spread/openenv/ServedEnv.ts"
import { makeApp } from "./app.ts"
import { EnvSessions, type SessionLimits } from "./EnvSessions.ts"

export interface EnvServerOptions extends SessionLimits {
  /** The address to listen on. Default: 127.0.0.1. */
  readonly host: string
  /** The port; 0 chooses a free port. Default: 0. */
  readonly port: number
  /** Additional host names with which clients may address the server. Default: none. */
  readonly allowedHosts: ReadonlyArray<string>
  /** The key that requests must have. Default: they need none; without a key, let only this machine connect. */
  readonly key: string | undefined
  /** The largest size of a body, and of a message of a WebSocket, in bytes. Default: 16 MiB. */
  readonly maxMessageBytes: number
  /** The seed of episodes for which a client sends none. Default: 1. */
  readonly seed: number
}

const defaults: EnvServerOptions = {
  host: "127.0.0.1",
  port: 0,
  allowedHosts: [],
  key: undefined,
  maxMessageBytes: 16 * 2 ** 20,
  seed: 1,
  most: 8,
  idleSeconds: 600,
}

/** How long a client may take to send a request with its body. */
const requestMillis = 60_000

/** The number of bytes that may wait for a client to read them. */
const mostUnread = 2 ** 20

const drained = (source: object): Effect.Effect<void> =>
  Effect.callback((resume) => {
    const socket = source instanceof IncomingMessage ? source.socket : undefined
    if (socket === undefined || socket.destroyed || socket.writableLength < mostUnread) return resume(Effect.void)
    const stop = () => void socket.off("drain", done).off("close", done)
    const done = (): void => {
      stop()
      resume(Effect.void)
    }
    socket.on("drain", done)
    socket.on("close", done)
    return Effect.sync(stop)
  })

/** The number of connections besides those of sessions. More are closed at once. */
const moreConnections = 64

/** Listens until the scope closes, and returns the port. */
export const listen = Effect.fnUntraced(function* (
  env: ServedEnv,
  options: Partial<EnvServerOptions> = {},
): Effect.fn.Return<number, EnvError, Scope.Scope> {
  const { host, port, key, seed, maxMessageBytes, most, idleSeconds, allowedHosts } = { ...defaults, ...options }
  const server = createServer()
  server.requestTimeout = requestMillis
  server.maxConnections = most + moreConnections
  const listening = NodeHttpServer.layer(() => server, {
    host,
    port,
    gracefulShutdownTimeout: "200 millis",
    // A compressed message could be far larger than what a client sends.
    websocket: { maxPayload: maxMessageBytes, perMessageDeflate: false },
  })
  const sessions = new EnvSessions(env, { most, idleSeconds }, seed)
  const guard = { host, machine: hostname(), allowed: allowedHosts }
  // Effect makes the fibers of requests uninterruptible. The session of a client that hangs up must end at once.
  const app = Effect.interruptible(
    makeApp({ sessions, guard, key, maxMessageBytes, drained, scope: yield* Effect.scope }),
  )
  yield* Layer.build(Layer.provide(HttpServer.serve(app), listening)).pipe(
    Effect.mapError(({ cause }) => {
      const isPortInUse = cause instanceof Error && "code" in cause && cause.code === "EADDRINUSE"
      const hint = isPortInUse ? "the port is in use; --port 0 picks a free one" : String(cause)
      return invalid(env.name, `cannot listen at ${host}:${port}: ${hint}`)
    }),
  )
  // Clients keep connections open for further requests.
  yield* Effect.addFinalizer(() => Effect.sync(() => server.closeAllConnections()))
  const address = server.address()
  return typeof address === "object" && address !== null ? address.port : port
})
