// The health check of the image: asks the server that the container's command started. A container without a server,
// such as one that runs a training, is healthy as long as its process is alive.
import { readFileSync } from "node:fs"

const ports = { ui: 4400, serve: 8000 }

const words = readFileSync("/proc/1/cmdline", "utf8").split("\0")
const server = Object.keys(ports).find((name) => words.includes(name))
if (server !== undefined) {
  const at = words.findIndex((word) => word === "--port" || word.startsWith("--port="))
  const typed = at === -1 ? undefined : (words[at].split("=")[1] ?? words[at + 1])
  const address = `http://127.0.0.1:${typed ?? ports[server]}/health`
  try {
    const { status } = await fetch(address, { signal: AbortSignal.timeout(4000) })
    // A page that wants a token answers, too.
    if (status >= 500) fail(`${address} answers with status ${status}`)
  } catch (error) {
    fail(`${address}: ${error.cause?.message ?? error.message}`)
  }
}

function fail(message) {
  console.error(message)
  process.exit(1)
}
