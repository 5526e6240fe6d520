/**
 * A bucket of R2 over HTTP, as workerd asks for one: its binding `r2Bucket` turns the methods of a worker's `R2Bucket` into
 * these requests. What is asked for is JSON in a header, or before the bytes of a body. It keeps objects in memory.
 */
import { Effect } from "effect"
import { serveHttp } from "../servers/listen.ts"

const pageSize = 3

const describe = (name: string, bytes: Uint8Array): object => ({
  name,
  version: "1",
  size: bytes.length,
  etag: "00000000000000000000000000000000",
  uploaded: 0,
  httpFields: {},
  customFields: [],
  checksums: {},
})

export const serveBucket = Effect.suspend(() => {
  const objects = new Map<string, Uint8Array>()
  const server = serveHttp(async (request, response) => {
    const chunks: Array<Buffer> = []
    for await (const chunk of request) chunks.push(chunk)
    const body = Buffer.concat(chunks)
    const size = Number(request.headers["cf-r2-metadata-size"])
    const asked: Readonly<Record<string, unknown>> = JSON.parse(
      String(request.headers["cf-r2-request"] ?? body.subarray(0, size).toString()),
    )
    const key = String(asked.object)
    const answer = (json: object, bytes: Uint8Array = new Uint8Array(0)): void => {
      const head = Buffer.from(JSON.stringify(json))
      response.setHeader("cf-r2-metadata-size", head.length)
      response.end(Buffer.concat([head, bytes]))
    }
    if (asked.method === "put") {
      objects.set(key, Uint8Array.from(body.subarray(size)))
      answer(describe(key, body.subarray(size)))
    } else if (asked.method === "delete") {
      objects.delete(key)
      answer({})
    } else if (asked.method === "list") {
      const [prefix, cursor] = [String(asked.prefix ?? ""), String(asked.cursor ?? "")]
      const after = [...objects].filter(([name]) => name.startsWith(prefix) && name > cursor).sort()
      const page = after.slice(0, pageSize)
      const isLast = after.length <= pageSize
      answer({
        objects: page.map(([name, bytes]) => describe(name, bytes)),
        truncated: !isLast,
        ...(isLast ? {} : { cursor: page.at(-1)?.[0] }),
        delimitedPrefixes: [],
      })
    } else {
      const bytes = objects.get(key)
      if (bytes !== undefined) return answer(describe(key, bytes), bytes)
      response.statusCode = 404
      response.setHeader("cf-r2-error", JSON.stringify({ version: 0, v4code: 10007, message: "no such key" }))
      response.end()
    }
  })
  return Effect.map(server, ({ port }) => ({ port, objects }))
})
