/**
 * A namespace of Workers KV over HTTP, as workerd asks for one: its binding `kvNamespace` turns the methods of a worker's
 * `KVNamespace` into these requests. It keeps objects in memory.
 */
import { Effect } from "effect"
import { serveHttp } from "../servers/listen.ts"

const pageSize = 3

export const serveNamespace = Effect.suspend(() => {
  const objects = new Map<string, Uint8Array>()
  const server = serveHttp(async (request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? "/", "http://kv")
    const key = decodeURIComponent(pathname.slice(1))
    const chunks: Array<Buffer> = []
    for await (const chunk of request) chunks.push(chunk)
    if (request.method === "PUT") {
      objects.set(key, Uint8Array.from(Buffer.concat(chunks)))
      response.end()
    } else if (request.method === "DELETE") {
      objects.delete(key)
      response.end()
    } else if (key === "") {
      const [prefix, cursor] = [searchParams.get("prefix") ?? "", searchParams.get("cursor") ?? ""]
      const after = [...objects.keys()].filter((one) => one.startsWith(prefix) && one > cursor).sort()
      const keys = after.slice(0, pageSize).map((name) => ({ name }))
      const isComplete = after.length <= pageSize
      response.end(
        JSON.stringify({ keys, list_complete: isComplete, ...(isComplete ? {} : { cursor: keys.at(-1)?.name }) }),
      )
    } else {
      const bytes = objects.get(key)
      response.statusCode = bytes === undefined ? 404 : 200
      response.end(bytes)
    }
  })
  return Effect.map(server, ({ port }) => ({ port, objects }))
})
