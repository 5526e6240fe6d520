import { type IncomingHttpHeaders, type IncomingMessage, request as sendRequest } from "node:http"
import { Effect } from "effect"
import { signed, sortedQuery } from "../../../../src/run/store/objects/signature.ts"
import { serveHttp } from "../../../servers/listen.ts"
import { s3Server } from "./s3Server.ts"

/** Says how the proxy treats a request that it does not simply pass on to the server. */
export type Fault =
  /** Answers with an error. */
  | { readonly status: number; readonly code: string }
  /** Closes the connection before the request is read. */
  | "cut"
  /** Passes the request on, and closes the connection instead of answering. */
  | "lose"

export interface Seen {
  readonly method: string
  /** The path in the bucket, decoded; the query is left out. */
  readonly path: string
}

interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
}

const bodyOf = async (message: IncomingMessage): Promise<Buffer> => {
  const parts: Array<Buffer> = []
  for await (const part of message) parts.push(part)
  return Buffer.concat(parts)
}

const none = Buffer.alloc(0)

const errorOf = (code: string): Buffer => Buffer.from(`<Error><Code>${code}</Code><Message>${code}.</Message></Error>`)

/**
 * Starts a server that speaks S3, and a proxy in front of it. The server ignores the conditions of puts, so the proxy
 * checks them, as Amazon's servers do, unless `isConditional` is false. It counts all requests and can make them fail.
 */
export const s3Proxy = ({ isConditional = true, buckets = ["runs"] } = {}) =>
  Effect.gen(function* () {
    const server = yield* s3Server(...buckets)
    const target = new URL(server.endpoint)
    const requests: Array<Seen> = []
    const etags = new Map<string, string>()
    let faultOf: (seen: Seen) => Fault | undefined = () => undefined
    let puts: Promise<unknown> = Promise.resolve()

    const forwarded = (message: IncomingMessage, body: Buffer): Promise<Answer> =>
      new Promise((resolve, reject) => {
        const { "if-match": _match, "if-none-match": _none, ...headers } = message.headers
        const sent = sendRequest(
          {
            host: target.hostname,
            port: target.port,
            method: message.method,
            path: message.url,
            // These two headers are a part of the signature, so they are passed on; the server ignores them.
            headers: message.method === "PUT" ? message.headers : headers,
          },
          (answer) => {
            void bodyOf(answer).then((body) => {
              resolve({ status: answer.statusCode ?? 500, headers: answer.headers, body })
            }, reject)
          },
        )
        sent.on("error", reject)
        sent.end(body)
      })

    /** Passes a put on if its condition holds. Puts come one after another, so that nothing changes in between. */
    const put = async (message: IncomingMessage, path: string, body: Buffer): Promise<Answer> => {
      const before = etags.get(path)
      const { "if-match": match, "if-none-match": none } = message.headers
      if (isConditional && ((none === "*" && before !== undefined) || (match !== undefined && match !== before)))
        return { status: 412, headers: {}, body: errorOf("PreconditionFailed") }
      const answer = await forwarded(message, body)
      const { etag } = answer.headers
      if (answer.status === 200 && typeof etag === "string") etags.set(path, etag)
      return answer
    }

    /**
     * Lists objects by the older form of the request, because the server fails to list more than a thousand objects by the
     * newer one. The token of a page is the last key of the page before.
     */
    const list = async (message: IncomingMessage, path: string, query: URLSearchParams): Promise<Answer> => {
      const older = { prefix: query.get("prefix") ?? "", marker: query.get("continuation-token") ?? "" }
      const headers = signed(
        {
          method: "GET",
          host: target.host,
          path,
          query: older,
          body: new Uint8Array(0),
          region: "us-east-1",
          millis: Date.now(),
        },
        server,
      )
      const url = `${path}?${sortedQuery(older)}`
      const answer = await forwarded(Object.assign(message, { url, headers: { ...headers, host: target.host } }), none)
      const xml = answer.body.toString("utf8")
      if (!xml.includes("<IsTruncated>true<")) return answer
      const last = [...xml.matchAll(/<Key>([^<]*)</g)].at(-1)?.[1] ?? ""
      const token = `<NextContinuationToken>${last}</NextContinuationToken></ListBucketResult>`
      const body = Buffer.from(xml.replace("</ListBucketResult>", token))
      return { ...answer, headers: { ...answer.headers, "content-length": String(body.length) }, body }
    }

    const { url } = yield* serveHttp((message, response) => {
      const answer = async () => {
        const path = decodeURIComponent((message.url ?? "").replace(/\?.*$/, ""))
        const seen = { method: message.method ?? "", path }
        requests.push(seen)
        const fault = faultOf(seen)
        if (fault === "cut") return void message.socket.destroy()
        const body = await bodyOf(message)
        if (typeof fault === "object") return void response.writeHead(fault.status).end(errorOf(fault.code))
        if (message.method === "DELETE") etags.delete(path)
        const query = new URL(message.url ?? "", target).searchParams
        // A request with a wrong key goes to the server as it is, which refuses it.
        const isListing = query.has("list-type") && message.headers.authorization?.includes(server.accessKeyId) === true
        const turn =
          message.method === "PUT"
            ? puts.then(() => put(message, path, body))
            : isListing
              ? list(message, path, query)
              : forwarded(message, body)
        if (message.method === "PUT") puts = turn.catch(() => undefined)
        const { status, headers, body: answered } = await turn
        if (fault === "lose") return void message.socket.destroy()
        response.writeHead(status, headers).end(answered)
      }
      answer().catch(() => message.socket.destroy())
    })
    return {
      ...server,
      endpoint: url,
      /** All requests so far. */
      requests,
      /** Makes requests fail from now on. */
      failing: (fault: (seen: Seen) => Fault | undefined) => void (faultOf = fault),
    }
  })
