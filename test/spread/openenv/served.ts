/** Starts servers of OpenEnv for tests: one that repeats what an echo server of the reference answered, or a faulty one. */
import { once } from "node:events"
import { createServer } from "node:http"
import { WebSocketServer } from "@effect/platform-node/NodeWS"
import { Effect, type Fiber, type Scope } from "effect"
import { TestClock } from "effect/testing"
import { isPlain, type Plain } from "../../../src/base/config/plain.ts"
import { canonical } from "../../../src/base/text/canonical.ts"
import { listen } from "../../servers/listen.ts"
import echo from "./echo.json" with { type: "json" }

/** What a faulty server does instead of an answer. */
export const never = Symbol("never")
export const hangsUp = Symbol("hangsUp")
type Reply = string | Uint8Array | typeof never | typeof hangsUp

export interface FaultyServer {
  /** The answer to GET /schema: JSON, or a text, or a status. */
  readonly schema?: unknown
  readonly answer: (message: Plain, session: number) => Reply
}

export interface Served {
  readonly url: string
  readonly messages: ReadonlyArray<Plain>
  /** The number of open sessions, now and at most. */
  readonly sessions: { now: number; most: number; all: number }
  readonly authorizations: Set<string | undefined>
  /** Ends with the first message of a client. */
  readonly firstMessage: Promise<void>
  /** Waits until no session is open. */
  readonly whenIdle: () => Promise<void>
}

/** Serves until the scope closes. */
export const serve = ({ schema = echo.schema, answer }: FaultyServer): Effect.Effect<Served, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const messages: Array<Plain> = []
      const sessions = { now: 0, most: 0, all: 0 }
      const authorizations = new Set<string | undefined>()
      const arrived = Promise.withResolvers<void>()
      const server = createServer((request, response) => {
        authorizations.add(request.headers.authorization)
        if (typeof schema === "number") return response.writeHead(schema, { location: "http://127.0.0.1:1/" }).end()
        return response.end(typeof schema === "string" ? schema : JSON.stringify(schema))
      })
      const sockets = new WebSocketServer({ server })
      sockets.on("connection", (socket, request) => {
        authorizations.add(request.headers.authorization)
        const session = sessions.all++
        sessions.most = Math.max(sessions.most, ++sessions.now)
        socket.on("close", () => sessions.now--)
        socket.on("error", () => undefined)
        socket.on("message", (data: Uint8Array) => {
          const message: unknown = JSON.parse(new TextDecoder().decode(data))
          if (!isPlain(message)) return
          if (message["type"] === "close") return socket.close(1000)
          messages.push(message)
          arrived.resolve()
          const reply = answer(message, session)
          if (reply === hangsUp) socket.terminate()
          else if (reply !== never) socket.send(reply)
        })
      })
      const port = await listen(server)
      const url = `http://127.0.0.1:${port}`
      const whenIdle = async () => {
        while (sessions.now > 0) await new Promise(setImmediate)
      }
      const served = { url, messages, sessions, authorizations, firstMessage: arrived.promise, whenIdle }
      return { server, sockets, served }
    }),
    ({ server, sockets }) =>
      Effect.promise(async () => {
        for (const socket of sockets.clients) socket.terminate()
        sockets.close()
        server.closeAllConnections()
        server.close()
        await once(server, "close")
      }),
  ).pipe(Effect.map(({ served }) => served))

export const observation = (seen: Plain, more: Plain = {}): string =>
  JSON.stringify({ type: "observation", data: { observation: seen, reward: null, done: false, ...more } })

export const refusal = (code: string, message: string, more: Plain = {}): string =>
  JSON.stringify({ type: "error", data: { message, code, ...more } })

/** Answers as the echo server did when the exchanges were recorded; the seed and the id of the episode may be others. */
export const recorded = (message: Plain): string => {
  const key = (one: unknown): string => canonical(isPlain(one) && one["type"] === "reset" ? { type: "reset" } : one)
  const found = echo.exchanges.find((exchange) => key(exchange.message) === key(message))
  return JSON.stringify(found?.answer ?? { type: "error", data: { message: "not recorded", code: "EXECUTION_ERROR" } })
}

/** Lets the time pass until a fiber has ended. */
export const advanced = (fiber: Fiber.Fiber<unknown, unknown>): Effect.Effect<void> =>
  Effect.gen(function* () {
    while (fiber.pollUnsafe() === undefined) {
      yield* TestClock.adjust("100 millis")
      yield* Effect.promise(() => new Promise(setImmediate))
    }
  })
