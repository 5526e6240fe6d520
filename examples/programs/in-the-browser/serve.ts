// Train in a page of your own: bundles worker.ts with the library, and serves it with index.html.
//   npx node examples/programs/in-the-browser/serve.ts
import { readFileSync } from "node:fs"
import { createServer } from "node:http"
import { fileURLToPath } from "node:url"
import { build } from "esbuild"

const here = (file: string): string => fileURLToPath(new URL(file, import.meta.url))
const { outputFiles } = await build({
  entryPoints: [here("worker.ts")],
  bundle: true,
  format: "iife",
  platform: "browser",
  minify: true,
  write: false,
})
const page = readFileSync(here("index.html"))

const server = createServer((request, response) => {
  const isWorker = request.url === "/worker.js"
  response.writeHead(200, { "content-type": isWorker ? "text/javascript" : "text/html" })
  response.end(isWorker ? outputFiles[0].contents : page)
})
server.listen(Number(process.env.PORT ?? 8080), "127.0.0.1", () => {
  const address = server.address()
  console.log(`http://localhost:${typeof address === "object" ? address?.port : ""}/`)
})
