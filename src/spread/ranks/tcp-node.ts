/**
 * Connects ranks with their master over TCP, on one machine and over several. A message is its length (32 bits), its kind (8
 * bits) and its bytes. A rank first sends the token of the training, which only the ranks know that the master has started.
 */
import { timingSafeEqual } from "node:crypto"
import { connect as connectTo, createServer, type Socket } from "node:net"
import { Effect, Queue, Schema, type Scope } from "effect"
import { WorkerError } from "../workers/WorkerError.ts"
import { jsonText } from "../../base/text/jsonText.ts"
import { messageOf } from "../../base/text/text.ts"
import { utf8 } from "../../base/text/utf8.ts"
import { reasonOf } from "../cluster/reason.ts"
import { type Channel, kinds, makeInbox } from "./Channel.ts"
import type { SliceTask } from "./SliceTask.ts"

const headerBytes = 5
/** The largest message, in bytes, that is accepted from a process that has not sent its token yet. */
const mostOfStranger = 1024
/**
 * The idle time after which the system probes a connection. So a machine that disappears without closing its connections is
 * noticed after some minutes.
 */
const keepAliveMillis = 10_000

/**
 * Makes a channel over a socket, which the scope closes. `most` returns the size in bytes of the largest message to accept.
 */
const channelOver = Effect.fnUntraced(function* (
  socket: Socket,
  most: () => number,
): Effect.fn.Return<Channel, never, Scope.Scope> {
  const { put, close, receive, closed } = yield* makeInbox
  const failed = (error: Error) => WorkerError.lost(`its connection failed: ${reasonOf(error)}`)
  const header = new Uint8Array(headerBytes)
  let body: Uint8Array | undefined
  let filled = 0
  const read = (chunk: Uint8Array): void => {
    for (let at = 0; at < chunk.length;) {
      const target = body ?? header
      const count = Math.min(target.length - filled, chunk.length - at)
      target.set(chunk.subarray(at, at + count), filled)
      at += count
      filled += count
      if (filled < target.length) return
      if (body === undefined) {
        const length = new DataView(header.buffer).getUint32(0, true)
        if (length > most()) return void socket.destroy(new Error(`a message has ${length} bytes`))
        body = new Uint8Array(length)
        filled = 0
        if (length > 0) continue
      }
      put({ kind: header[headerBytes - 1], bytes: body })
      body = undefined
      filled = 0
    }
  }
  socket.setNoDelay(true).setKeepAlive(true, keepAliveMillis)
  socket.on("data", (chunk) => {
    try {
      read(chunk)
    } catch (error) {
      // There is no memory for a message of the length that it announces.
      socket.destroy(new Error(messageOf(error)))
    }
  })
  socket.on("error", (error) => close(failed(error)))
  socket.on("close", () => close(WorkerError.lost("its connection was closed")))
  yield* Effect.addFinalizer(() => Effect.sync(() => socket.destroy()))
  const send: Channel["send"] = (kind, parts = []) =>
    Effect.callback((resume) => {
      const length = parts.reduce((sum, part) => sum + part.length, 0)
      const head = new Uint8Array(headerBytes)
      new DataView(head.buffer).setUint32(0, length, true)
      head[headerBytes - 1] = kind
      const written = (error?: Error | null): void => resume(error == null ? Effect.void : Effect.fail(failed(error)))
      socket.cork()
      if (parts.length === 0) socket.write(head, written)
      else socket.write(head)
      for (const [at, part] of parts.entries()) {
        if (at === parts.length - 1) socket.write(part, written)
        else socket.write(part)
      }
      socket.uncork()
    })
  return { send, receive, closed }
})

const Hello = jsonText(Schema.Struct({ token: Schema.String, rank: Schema.Int }))
/** The address of the master, and the token of its training. */
type Place = SliceTask["place"]
const encodeHello = Schema.encodeSync(Hello)
const decodeHello = Schema.decodeEffect(Hello)

/** Listens for ranks at a free port of this machine until the scope closes. `onRank` runs while a rank is connected. */
export const listen = Effect.fnUntraced(function* (
  host: string,
  onRank: (rank: number, channel: Channel) => Effect.Effect<void>,
): Effect.fn.Return<Place, WorkerError, Scope.Scope> {
  const token = Buffer.from(crypto.getRandomValues(new Uint8Array(16))).toString("hex")
  const sockets = yield* Queue.unbounded<Socket>()
  const server = createServer((socket) => {
    // Before the channel adds its listener, an error would end this process.
    socket.on("error", () => {})
    Queue.offerUnsafe(sockets, socket)
  })
  yield* Effect.addFinalizer(() => Effect.sync(() => void server.close()))
  const port = yield* Effect.callback<number, WorkerError>((resume) => {
    server.once("error", (error) => resume(Effect.fail(WorkerError.lost(`${host}: ${reasonOf(error)}`))))
    server.listen(0, host, () => {
      const address = server.address()
      resume(Effect.succeed(typeof address === "object" && address !== null ? address.port : 0))
    })
  })
  const greet = Effect.fnUntraced(function* (socket: Socket) {
    let isKnown = false
    const channel = yield* channelOver(socket, () => (isKnown ? Infinity : mostOfStranger))
    const { bytes } = yield* Effect.timeout(channel.receive, "10 seconds")
    const hello = yield* decodeHello(utf8.decode(bytes))
    const [shown, expected] = [hello.token, token].map((text) => Buffer.from(text))
    if (shown.length !== expected.length || !timingSafeEqual(shown, expected)) return
    isKnown = true
    yield* onRank(hello.rank, channel)
  }, Effect.scoped)
  yield* Queue.take(sockets).pipe(
    Effect.flatMap((socket) => Effect.forkScoped(Effect.ignore(greet(socket)))),
    Effect.forever,
    Effect.forkScoped,
  )
  return { host, port, token }
})

/** Connects a rank to its master, until the scope closes. */
export const connect = Effect.fnUntraced(function* (
  { host, port, token }: Place,
  rank: number,
): Effect.fn.Return<Channel, WorkerError, Scope.Scope> {
  const socket = yield* Effect.callback<Socket, WorkerError>((resume) => {
    const opened = connectTo({ host, port })
    opened.once("error", (error) => {
      const message = `rank ${rank} cannot reach its training at ${host}:${port}: ${reasonOf(error)}`
      resume(Effect.fail(WorkerError.lost(message)))
    })
    opened.once("connect", () => resume(Effect.succeed(opened)))
    return Effect.sync(() => void opened.destroy())
  })
  const channel = yield* channelOver(socket, () => Infinity)
  yield* channel.send(kinds.hello, [utf8.encode(encodeHello({ token, rank }))])
  return channel
})
