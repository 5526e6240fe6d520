import { readFileSync } from "node:fs"
import { extname, join } from "node:path"
import { type HttpServer, startHttp } from "../../servers/listen.ts"

/** Serves the files of a folder, in which `site` is the exported site. It knows a few types and nothing else. */
export const plainServer = async (folder: string): Promise<Pick<HttpServer, "url" | "close">> => {
  const { port, close } = await startHttp((request, response) => {
    const path = decodeURIComponent(new URL(request.url ?? "", "http://x").pathname)
    try {
      const contents = readFileSync(join(folder, path.replace(/\/$/, "/index.html")))
      response
        .writeHead(200, { "content-type": types[extname(path)] ?? (path.endsWith("/") ? "text/html" : "") })
        .end(contents)
    } catch {
      response.writeHead(404).end()
    }
  })
  return { url: `http://localhost:${port}/site/`, close }
}

const types: Record<string, string> = {
  ".html": "text/html",
  ".js": "text/javascript",
  ".css": "text/css",
  ".svg": "image/svg+xml",
}
