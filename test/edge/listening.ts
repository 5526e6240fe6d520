/** Starts the servers that stand behind the bindings of workerd. */
import { once } from "node:events"
import type { Server } from "node:http"

/** A server on a free port, which keeps objects in memory. */
export interface ObjectServer {
  readonly port: number
  readonly objects: Map<string, Uint8Array>
  readonly close: () => void
}

/** Lets a server listen on a free port. */
export const listening = async (server: Server): Promise<Pick<ObjectServer, "port" | "close">> => {
  server.listen(0, "127.0.0.1")
  await once(server, "listening")
  const address = server.address()
  if (typeof address !== "object" || address === null) throw new Error("the server has no port")
  return {
    port: address.port,
    close: () => {
      server.close()
      server.closeAllConnections()
    },
  }
}
