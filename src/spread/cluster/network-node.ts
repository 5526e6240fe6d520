/** Finds out at which address the machines of a cluster reach this one. */
import { createServer, connect } from "node:net"
import { hostname } from "node:os"
import { Effect } from "effect"
import { WorkerError } from "../workers/WorkerError.ts"
import { reasonOf } from "./reason.ts"

/** Names this process for people. */
export const processName = (): string => `process ${process.pid} on ${hostname()}`

/** Returns the address of this machine in the network through which it reaches the database. */
export const ownAddress = ({ host, port }: { readonly host: string; readonly port: number }) =>
  Effect.callback<string, WorkerError>((resume) => {
    const socket = connect({ host, port })
    socket.once("connect", () => {
      resume(Effect.succeed(socket.localAddress ?? "127.0.0.1"))
      socket.destroy()
    })
    socket.once("error", (error) => resume(Effect.fail(WorkerError.failed(`${host}:${port}: ${reasonOf(error)}`))))
    return Effect.sync(() => void socket.destroy())
  })

/** Returns a port of this machine that no process uses now. */
export const freePort = (host: string) =>
  Effect.callback<number, WorkerError>((resume) => {
    const server = createServer()
    server.once("error", (error) => resume(Effect.fail(WorkerError.failed(`${host}: ${reasonOf(error)}`))))
    server.listen(0, host, () => {
      const address = server.address()
      const port = typeof address === "object" && address !== null ? address.port : 0
      server.close(() => resume(Effect.succeed(port)))
    })
  })
