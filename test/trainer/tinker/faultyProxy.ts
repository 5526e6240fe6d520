/** Forwards requests to a server, and makes mistakes on the way: answers are lost, refused, or come too late. */
import { createServer, request as send, type IncomingMessage, type ServerResponse } from "node:http"
import { stream } from "../../../src/base/rng/Rng.ts"

export interface FaultyProxy {
  readonly url: string
  /** The number of mistakes of each kind. */
  readonly mistakes: ReadonlyMap<string, number>
  /** Leaves all requests unanswered from now on. */
  readonly fallSilent: () => void
  readonly close: () => void
}

const bodyOf = async (message: IncomingMessage): Promise<Buffer> => {
  const chunks: Array<Buffer> = []
  for await (const chunk of message) chunks.push(chunk)
  return Buffer.concat(chunks)
}

/** What the proxy may do with a request. The first kinds lose it before the server sees it, `lost` afterwards. */
const kinds = ["408", "429", "500", "503", "dropped", "lost", "twice", "gone"] as const

/** Starts a proxy that handles about this share of all requests wrongly. The choices depend only on the seed. */
export const startFaultyProxy = async (target: string, seed: number, share: number): Promise<FaultyProxy> => {
  const random = stream(seed, "faults")
  const mistakes = new Map<string, number>()
  let isSilent = false
  const forward = (message: IncomingMessage, body: Buffer) =>
    new Promise<{ readonly status: number; readonly type: string; readonly bytes: Buffer }>((resolve, reject) => {
      const { method = "POST", headers, url = "/" } = message
      const forwarded = send(`${target}${url}`, { method, headers: { ...headers, host: new URL(target).host } })
      forwarded.on("error", reject)
      forwarded.on(
        "response",
        (answer) =>
          void bodyOf(answer).then((bytes) =>
            resolve({ status: answer.statusCode ?? 500, type: answer.headers["content-type"] ?? "", bytes }),
          ),
      )
      forwarded.end(body)
    })
  const answer = async (message: IncomingMessage, response: ServerResponse) => {
    const body = await bodyOf(message)
    if (isSilent) return
    const kind = random.uniform() < share ? kinds[Math.floor(random.uniform() * kinds.length)] : undefined
    const isFuture = message.url?.endsWith("/retrieve_future") === true
    // Only outcomes can be gone.
    const isMistake = kind !== undefined && (kind !== "gone" || isFuture)
    if (isMistake) mistakes.set(kind, (mistakes.get(kind) ?? 0) + 1)
    const refuse = (status: number) => void response.writeHead(status, { "retry-after": "0" }).end('{"error":"faulty"}')
    if (isMistake && /^\d+$/.test(kind)) return refuse(Number(kind))
    if (isMistake && kind === "gone") return refuse(410)
    if (kind === "dropped") return void message.socket.destroy()
    const first = await forward(message, body)
    if (kind === "lost") return void message.socket.destroy()
    const { status, type, bytes } = kind === "twice" ? await forward(message, body) : first
    return void response.writeHead(status, { "content-type": type }).end(bytes)
  }
  const server = createServer((message, response) => {
    answer(message, response).catch(() => message.socket.destroy())
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const address = server.address()
  return {
    url: `http://127.0.0.1:${typeof address === "object" && address !== null ? address.port : 0}`,
    mistakes,
    fallSilent: () => void (isSilent = true),
    close: () => {
      server.close()
      server.closeAllConnections()
    },
  }
}
