/** Finds out at which address the machines of a cluster reach this one, and why a connection failed. */
import { createServer, connect } from "node:net"
import { hostname } from "node:os"
import { Effect } from "effect"
import { ClusterError } from "./ClusterError.ts"

/** Names this process for people. */
export const processName = (): string => `process ${process.pid} on ${hostname()}`

/** Returns the reason of a failure in a few words: the message of its innermost cause. */
export const reasonOf = (error: unknown): string => {
  let inner = error
  for (let depth = 0; depth < 8 && inner instanceof Error && inner.cause !== undefined; depth++) inner = inner.cause
  if (inner instanceof AggregateError && inner.errors.length > 0) return reasonOf(inner.errors[0])
  const message = inner instanceof Error ? inner.message || inner.name : messageIn(inner)
  return message.split("\n")[0]
}

const messageIn = (value: unknown): string =>
  typeof value === "object" && value !== null && "message" in value ? String(value.message) : String(value)

/** Returns the address of this machine in the network by which it reaches the database. */
export const ownAddress = ({ host, port }: { readonly host: string; readonly port: number }) =>
  Effect.callback<string, ClusterError>((resume) => {
    const socket = connect({ host, port })
    socket.once("connect", () => {
      resume(Effect.succeed(socket.localAddress ?? "127.0.0.1"))
      socket.destroy()
    })
    socket.once("error", (error) =>
      resume(Effect.fail(new ClusterError({ message: `${host}:${port}: ${reasonOf(error)}` }))),
    )
    return Effect.sync(() => void socket.destroy())
  })

/** Returns a port of this machine that no process uses now. */
export const freePort = (host: string) =>
  Effect.callback<number, ClusterError>((resume) => {
    const server = createServer()
    server.once("error", (error) => resume(Effect.fail(new ClusterError({ message: `${host}: ${reasonOf(error)}` }))))
    server.listen(0, host, () => {
      const address = server.address()
      const port = typeof address === "object" && address !== null ? address.port : 0
      server.close(() => resume(Effect.succeed(port)))
    })
  })
