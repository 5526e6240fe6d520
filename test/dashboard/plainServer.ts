import { readFileSync } from "node:fs"
import { createServer } from "node:http"
import { extname, join } from "node:path"

/** Serves the files of a folder, in which `site` is the exported site. It knows a few types and nothing else. */
export const plainServer = async (folder: string): Promise<{ readonly url: string; readonly close: () => void }> => {
  const server = createServer((request, response) => {
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
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve))
  const address = server.address()
  return {
    url: `http://localhost:${typeof address === "object" ? address?.port : ""}/site/`,
    close: () => {
      server.closeAllConnections()
      server.close()
    },
  }
}

const types: Record<string, string> = {
  ".html": "text/html",
  ".js": "text/javascript",
  ".css": "text/css",
  ".svg": "image/svg+xml",
}
