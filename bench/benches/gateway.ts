import { createServer } from "node:http"
import { request, Agent } from "node:http"
import { once } from "node:events"
import { Deferred, Effect, Fiber, Layer } from "effect"
import { platform, recorder, runStore } from "effect-rl/node"
import { listen } from "../../src/agents/gateway/listen-node.ts"
import { execute } from "../../src/agents/gateway/run/execute.ts"
import { prepare } from "../../src/agents/gateway/run/prepare.ts"
import { defineBench } from "../Bench.ts"
import { temporaryFolder } from "../measuring.ts"

const answer = JSON.stringify({
  id: "1",
  object: "chat.completion",
  model: "m",
  choices: [{ index: 0, message: { role: "assistant", content: "Yes." }, finish_reason: "stop" }],
  usage: { prompt_tokens: 100, completion_tokens: 2 },
})

/** A server of models that answers at once. */
const upstream = async () => {
  const server = createServer((request, response) => {
    request.resume()
    request.on("end", () => response.writeHead(200, { "content-type": "application/json" }).end(answer))
  })
  server.listen(0, "127.0.0.1")
  await once(server, "listening")
  const address = server.address()
  if (typeof address !== "object" || address === null) throw new Error("the server has no port")
  return { url: `http://127.0.0.1:${address.port}`, close: () => server.close() }
}

const agent = new Agent({ keepAlive: true, maxSockets: 4096 })

const body = JSON.stringify({
  model: "m",
  messages: [
    { role: "system", content: "You are brief. ".repeat(20) },
    { role: "user", content: "Is this a question? ".repeat(10) },
  ],
})

const post = (url: string, content = body): Promise<void> =>
  new Promise((resolve, reject) => {
    const headers = { "content-type": "application/json", "content-length": Buffer.byteLength(content) }
    const sent = request(url, { method: "POST", agent, headers }, (response) => {
      response.resume()
      response.on("end", () =>
        response.statusCode === 200 ? resolve() : reject(new Error(`the status is ${response.statusCode}`)),
      )
    })
    sent.on("error", reject)
    sent.end(content)
  })

/** Runs a gateway as `effect gateway` does, while `use` does. */
const withGateway = async <A>(
  use: (addresses: { readonly gateway: string; readonly server: string }) => Promise<A>,
) => {
  const { folder, remove } = temporaryFolder()
  const server = await upstream()
  const program = Effect.gen(function* () {
    const lmConfig = { model: "m", protocol: "openai", baseUrl: server.url }
    const prepared = yield* prepare({ lmConfig }, { source: "bench", overrides: [] })
    const listening = yield* Deferred.make<number>()
    const running = execute({
      ...prepared,
      key: null,
      listen: (app) => listen({ ...app, host: "127.0.0.1", port: 0 }),
      onListening: (port) => Effect.asVoid(Deferred.succeed(listening, port)),
    })
    const fiber = yield* Effect.forkChild(Effect.scoped(running))
    const gateway = `http://127.0.0.1:${yield* Deferred.await(listening)}`
    const result = yield* Effect.promise(() => use({ gateway, server: server.url }))
    yield* Fiber.interrupt(fiber)
    return result
  })
  try {
    const layers = Layer.mergeAll(platform, runStore({ resultsDir: folder }), recorder())
    return await Effect.runPromise(Effect.provide(program, layers))
  } finally {
    server.close()
    remove()
  }
}

const sleep = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds))

const percentile = (values: ReadonlyArray<number>, share: number): number =>
  values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * share))]

/** Sends calls at a steady rate, and returns how long each took, in milliseconds. */
const atRate = async (perSecond: number, seconds: number, address: (index: number) => string) => {
  const times: Array<number> = []
  const calls: Array<Promise<void>> = []
  const start = performance.now()
  for (let index = 0; index < perSecond * seconds; index++) {
    const due = start + (index * 1000) / perSecond
    const wait = due - performance.now()
    if (wait > 0) await sleep(wait)
    const began = performance.now()
    calls.push(post(address(index)).then(() => void times.push(performance.now() - began)))
  }
  await Promise.all(calls)
  return times
}

const path = "v1/chat/completions"
const rate = 200

export default [
  defineBench({
    name: "gateway-overhead",
    unit: "ms",
    higherIsBetter: false,
    about: `What the gateway adds to a call at ${rate} calls a second: the difference of the medians, with and without it`,
    run: () =>
      withGateway(async ({ gateway, server }) => {
        const through = (index: number): string => `${gateway}/sessions/s${index % 50}/${path}`
        const direct = (): string => `${server}/${path}`
        await atRate(rate, 2, through)
        await atRate(rate, 1, direct)
        const behind = await atRate(rate, 8, through)
        const alone = await atRate(rate, 8, direct)
        return {
          value: percentile(behind, 0.5) - percentile(alone, 0.5),
          details: {
            "median direct": percentile(alone, 0.5).toFixed(2),
            "median through": percentile(behind, 0.5).toFixed(2),
            "99th percentile through": percentile(behind, 0.99).toFixed(2),
          },
        }
      }),
  }),
  defineBench({
    name: "gateway-sessions",
    unit: "calls/s",
    higherIsBetter: true,
    about: "Calls of 2,000 sessions that are open at the same time, each with a call in progress",
    run: () =>
      withGateway(async ({ gateway }) => {
        const sessions = 2000
        const began = performance.now()
        for (let round = 0; round < 3; round++) {
          await Promise.all(
            Array.from({ length: sessions }, (_, index) => post(`${gateway}/sessions/s${index}/${path}`)),
          )
        }
        return { value: (3 * sessions) / ((performance.now() - began) / 1000), details: { sessions } }
      }),
  }),
  defineBench({
    name: "gateway-memory",
    unit: "MB",
    higherIsBetter: false,
    about: "What the heap grows by from the 10,000th to the 100,000th call, in sessions of ten calls",
    run: () =>
      withGateway(async ({ gateway }) => {
        const calls = 100_000
        const workers = 32
        let next = 0
        let early = 0
        const work = async (): Promise<void> => {
          while (next < calls / 10) {
            const session = next++
            const at = `${gateway}/sessions/s${session}`
            for (let call = 0; call < 10; call++) await post(`${at}/${path}`)
            await post(`${at}/end`, "{}")
            if (session === 1000) early = heap()
          }
        }
        const began = performance.now()
        await Promise.all(Array.from({ length: workers }, work))
        const seconds = (performance.now() - began) / 1000
        const late = heap()
        return {
          value: (late - early) / 1e6,
          details: { "heap in MB": (late / 1e6).toFixed(0), "calls/s": Math.round(calls / seconds) },
        }
      }),
  }),
]

const heap = (): number => {
  globalThis.gc?.()
  return process.memoryUsage().heapUsed
}
