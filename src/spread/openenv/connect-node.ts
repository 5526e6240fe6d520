/** Connects to servers of OpenEnv by the WebSockets and the HTTP client of Node. */
import { WebSocket } from "@effect/platform-node/NodeWS"
import { Effect, Redacted, type Scope } from "effect"
import { joined } from "../../base/text/bytes.ts"
import { innermostCause, messageOf } from "../../base/text/text.ts"
import { utf8 } from "../../base/text/utf8.ts"
import { quoted } from "./messages.ts"
import { type AskServer, type OpenEnvAddress, type OpenEnvTransport, overTransport } from "./OpenEnvServers.ts"

/** How long a server may take to end a session, in milliseconds. */
const closingMillis = 2000

const headersOf = ({ token }: OpenEnvAddress): Record<string, string> =>
  token === null ? {} : { authorization: `Bearer ${Redacted.value(token)}` }

const megabytes = (bytes: number): string => `${bytes / 2 ** 20} MB (max_message_mb)`

/** Gets the text at a path. A redirection is refused, because nobody was asked about its target. */
const get: OpenEnvTransport["get"] = (address, path) =>
  Effect.tryPromise({
    try: async (signal) => {
      const response = await fetch(`${address.http}${path}`, {
        headers: headersOf(address),
        redirect: "manual",
        signal,
      })
      if (!response.ok) {
        await response.body?.cancel()
        throw new Error(`answered GET ${path} with the status ${response.status}; expected 200`)
      }
      const pieces: Array<Uint8Array> = []
      let length = 0
      for await (const piece of response.body ?? []) {
        length += piece.length
        if (length > address.mostBytes)
          throw new Error(`answered GET ${path} with more than ${megabytes(address.mostBytes)}`)
        pieces.push(piece)
      }
      return utf8.decode(joined(pieces))
    },
    catch: (error) => {
      const cause = innermostCause(error instanceof Error ? error.cause : undefined)
      return cause === "" ? quoted(messageOf(error)) : `cannot be reached: ${quoted(cause)}`
    },
  })

/** A WebSocket, and what has come by it. */
interface OpenSocket {
  readonly socket: WebSocket
  /** A message that came before the first request: a server without a free session says so at once. */
  early: string | undefined
  waiting: ((answer: Effect.Effect<string, string>) => void) | undefined
  hasAsked: boolean
  problem: string | undefined
}

const unasked = "sent a message for which nobody had asked"

const problemOf = (error: Error, { mostBytes }: OpenEnvAddress): string =>
  "code" in error && error.code === "WS_ERR_UNSUPPORTED_MESSAGE_LENGTH"
    ? `sent a message of more than ${megabytes(mostBytes)}`
    : `cannot be used: ${quoted(innermostCause(error) || messageOf(error))}`

const end = (open: OpenSocket, problem: string): void => {
  open.problem ??= problem
  open.socket.terminate()
  open.waiting?.(Effect.fail(open.problem))
  open.waiting = undefined
}

const receive = (open: OpenSocket, text: string): void => {
  const { waiting } = open
  if (waiting !== undefined) {
    open.waiting = undefined
    return waiting(Effect.succeed(text))
  }
  if (open.early !== undefined || open.hasAsked) end(open, unasked)
  else open.early = text
}

const opened = (address: OpenEnvAddress): Effect.Effect<OpenSocket, string> =>
  Effect.callback((resume) => {
    const socket = new WebSocket(address.socket, {
      headers: headersOf(address),
      maxPayload: address.mostBytes,
      // A compressed message could be far larger than what the server sends.
      perMessageDeflate: false,
      followRedirects: false,
    })
    const open: OpenSocket = { socket, early: undefined, waiting: undefined, hasAsked: false, problem: undefined }
    socket.on("open", () => resume(Effect.succeed(open)))
    socket.on("message", (data: Uint8Array, isBinary: boolean) =>
      isBinary ? end(open, "sent bytes; expected a text") : receive(open, utf8.decode(data)),
    )
    socket.on("error", (error: Error) => {
      end(open, problemOf(error, address))
      resume(Effect.fail(open.problem ?? ""))
    })
    socket.on("close", (code: number) => end(open, `closed the connection (code ${code})`))
    return Effect.sync(() => socket.terminate())
  })

/** Tells the server that the session is over, and waits until it has closed the connection, so that its place is free again. */
const close = ({ socket }: OpenSocket): Effect.Effect<void> =>
  Effect.callback<void>((resume) => {
    if (socket.readyState !== WebSocket.OPEN) {
      socket.terminate()
      return resume(Effect.void)
    }
    const timer = setTimeout(() => socket.terminate(), closingMillis)
    socket.once("close", () => {
      clearTimeout(timer)
      resume(Effect.void)
    })
    socket.send(JSON.stringify({ type: "close" }))
  })

const connect = (address: OpenEnvAddress): Effect.Effect<AskServer, string, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(opened(address), close, { interruptible: true }),
    (open) => (message) =>
      Effect.callback((resume) => {
        const { early, hasAsked } = open
        open.hasAsked = true
        if (early !== undefined && !hasAsked) {
          // Such a message ends the session, since later answers could not be told from further ones.
          end(open, unasked)
          return resume(Effect.succeed(early))
        }
        if (open.problem !== undefined) return resume(Effect.fail(open.problem))
        open.waiting = resume
        open.socket.send(message)
        return Effect.sync(() => (open.waiting = undefined))
      }),
  )

/** Makes the service that connects to servers of OpenEnv. */
export const makeServers = overTransport({ get, connect })
