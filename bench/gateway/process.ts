/**
 * A process of the benchmarks of the gateway: the gateway itself, a bare proxy to compare it with, or the server of models behind
 * them. It sends its port when it listens, and its usage of the machine when it is asked.
 */
import { once } from "node:events"
import { Agent, createServer, request, type RequestListener } from "node:http"
import { Deferred, Effect, Fiber, Layer } from "effect"
import { platform, recorder, runStore } from "effect-rl/node"
import { listen } from "../../src/agents/gateway/listen-node.ts"
import { execute } from "../../src/agents/gateway/run/execute.ts"
import { prepare } from "../../src/agents/gateway/run/prepare.ts"
import { type Asked, type MemoryUsage, type Role, upstreamAnswer } from "./processes.ts"

const [, , role, at = "", folder = ""]: ReadonlyArray<string> = process.argv

const send = (message: object): void => void process.send?.(message)

const cpuMillis = (): number => {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1000
}

const memory = (): MemoryUsage => {
  globalThis.gc?.()
  const { rss, heapUsed } = process.memoryUsage()
  return { rss, heapUsed }
}

const serve = async (listener: RequestListener): Promise<void> => {
  const server = createServer(listener)
  server.keepAliveTimeout = 90_000
  server.listen({ port: 0, host: "127.0.0.1", backlog: 4096 })
  await once(server, "listening")
  const address = server.address()
  if (typeof address === "object" && address !== null) send({ port: address.port })
}

/** A server of models that answers at once. */
const upstream = (): Promise<void> =>
  serve((asked, response) => {
    asked.resume()
    const headers = { "content-type": "application/json", "content-length": Buffer.byteLength(upstreamAnswer) }
    asked.on("end", () => response.writeHead(200, headers).end(upstreamAnswer))
  })

/** A proxy that only passes bytes on: what any program of Node between an agent and a server costs at least. */
const proxy = (): Promise<void> => {
  const agent = new Agent({ keepAlive: true, maxSockets: 4096 })
  const { hostname, port } = new URL(at)
  return serve((asked, response) => {
    const { method, headers } = asked
    const path = (asked.url ?? "").replace(/^\/sessions\/[^/]+/, "")
    const passed = request({ hostname, port, path, method, headers, agent }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.pipe(response)
    })
    passed.on("error", () => response.destroy())
    asked.pipe(passed)
  })
}

/** The gateway, as `effect gateway` runs it. Returns when the parent process asks it to end. */
const gateway = (ended: Promise<void>): Promise<void> => {
  const program = Effect.gen(function* () {
    const lmConfig = { model: "m", protocol: "openai", baseUrl: at }
    const prepared = yield* prepare({ lmConfig }, { source: "bench", overrides: [] })
    const listening = yield* Deferred.make<number>()
    const running = execute({
      ...prepared,
      key: null,
      listen: (app) => listen({ ...app, host: "127.0.0.1", port: 0 }),
      onListening: (port) => Effect.asVoid(Deferred.succeed(listening, port)),
    })
    const fiber = yield* Effect.forkChild(Effect.scoped(running))
    send({ port: yield* Deferred.await(listening) })
    yield* Effect.promise(() => ended)
    yield* Fiber.interrupt(fiber)
  })
  const store = runStore({ resultsDir: folder })
  return Effect.runPromise(Effect.provide(program, Layer.mergeAll(platform, store, recorder())))
}

const roles: Readonly<Record<Role, (ended: Promise<void>) => Promise<void>>> = { upstream, proxy, gateway }
const ended = new Promise<void>((resolve) => {
  process.on("message", (asked: Asked) => {
    if (asked === "cpu") send({ cpuMillis: cpuMillis() })
    else if (asked === "memory") send(memory())
    else resolve()
  })
})
const isRole = (name: string): name is Role => Object.hasOwn(roles, name)
if (!isRole(role)) throw new Error(`expected a role, found ${role}`)
await roles[role](ended)
await ended
process.exit(0)
