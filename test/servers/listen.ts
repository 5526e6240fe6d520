/** Starts the servers of tests, on free ports of this machine. */
import { randomInt } from "node:crypto"
import { once } from "node:events"
import { createServer, type RequestListener } from "node:http"
import { createServer as createSocketServer, type Server } from "node:net"
import { Effect, type Scope } from "effect"

const thisMachine = "127.0.0.1"

/** Lets a server listen on a free port, and returns the port. */
export const listen = async (server: Server, host = thisMachine): Promise<number> => {
  server.listen(0, host)
  await once(server, "listening")
  const address = server.address()
  if (typeof address !== "object" || address === null) throw new Error("the server has no port")
  return address.port
}

/**
 * Returns a port that no process uses now. It is below those that the system gives to connections and to servers that ask
 * for any port, so that nobody else has it while a server that was killed starts again.
 */
export const freePort = async (host = thisMachine): Promise<number> => {
  for (;;) {
    const port = randomInt(20_000, 32_000)
    if (await isFree(port, host)) return port
  }
}

const isFree = async (port: number, host: string): Promise<boolean> => {
  const server = createSocketServer().listen(port, host)
  const isListening = await once(server, "listening").then(
    () => true,
    () => false,
  )
  if (!isListening) return false
  server.close()
  await once(server, "close")
  return true
}

export interface HttpServer {
  readonly port: number
  /** The server's address, without a slash at its end. */
  readonly url: string
  /** Closes the server and all of its connections. */
  readonly close: () => Promise<void>
}

/** Starts an HTTP server, which the caller closes. */
export const startHttp = async (answer: RequestListener, host = thisMachine): Promise<HttpServer> => {
  const server = createServer(answer)
  const port = await listen(server, host)
  return {
    port,
    url: `http://${host}:${port}`,
    close: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, "close")
    },
  }
}

/**
 * Starts an HTTP server, which is closed with the scope.
 *
 * @example
 * ```ts
 * const { url } = yield* serveHttp((request, response) => void response.end("ok"))
 * ```
 */
export const serveHttp = (answer: RequestListener): Effect.Effect<HttpServer, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.promise(() => startHttp(answer)),
    ({ close }) => Effect.promise(close),
  )
