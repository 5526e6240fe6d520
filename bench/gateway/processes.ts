/**
 * Starts the processes of the benchmarks of the gateway, and sends calls to them. Each part has a process of its own, so that the
 * time that the gateway computes is known apart from that of its clients.
 */
import { type ChildProcess, fork } from "node:child_process"
import { globSync, readFileSync } from "node:fs"
import { Agent, request } from "node:http"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { atEnd } from "../atEnd.ts"
import { temporaryFolder } from "../measuring.ts"

export type Role = "upstream" | "proxy" | "gateway"

/** A message to such a process. */
export type Asked = "cpu" | "memory" | "end"

/** The memory of a process after a collection of garbage, in bytes. */
export interface MemoryUsage {
  /** The memory of the whole process. */
  readonly rss: number
  /** The memory of its objects. */
  readonly heapUsed: number
}

/** The answer of the server of models to every call. */
export const upstreamAnswer = JSON.stringify({
  id: "1",
  object: "chat.completion",
  model: "m",
  choices: [{ index: 0, message: { role: "assistant", content: "Yes." }, finish_reason: "stop" }],
  usage: { prompt_tokens: 100, completion_tokens: 2 },
})

/** A process that listens. */
export interface Listening {
  readonly url: string
  /** Whether sessions are ended there, as at the gateway. */
  readonly hasSessions: boolean
  /** Returns the time that all threads of the process have had on processors, in milliseconds. */
  readonly cpuMillis: () => Promise<number>
  readonly memory: () => Promise<MemoryUsage>
  readonly end: () => Promise<void>
}

const messageOf = <A>(child: ChildProcess): Promise<A> =>
  new Promise((resolve, reject) => {
    const onExit = (code: number | null): void => reject(new Error(`a process of the benchmark ended with ${code}`))
    child.once("exit", onExit)
    child.once("message", (message: A) => {
      child.off("exit", onExit)
      resolve(message)
    })
  })

const start = async (role: Role, ...args: ReadonlyArray<string>): Promise<Listening> => {
  const file = fileURLToPath(new URL("process.ts", import.meta.url))
  const execArgv = ["--expose-gc", ...process.execArgv.filter((flag) => !flag.startsWith("--cpu-prof"))]
  const profile = role === "gateway" ? (process.env["GATEWAY_BENCH_FLAGS"]?.split(" ") ?? []) : []
  const child = fork(file, [role, ...args], { stdio: ["ignore", 2, 2, "ipc"], execArgv: [...execArgv, ...profile] })
  const kill = atEnd(() => child.kill("SIGKILL"))
  const { port } = await messageOf<{ readonly port: number }>(child)
  return {
    url: `http://127.0.0.1:${port}`,
    hasSessions: role === "gateway",
    cpuMillis: async () => {
      child.send("cpu" satisfies Asked)
      return (await messageOf<{ readonly cpuMillis: number }>(child)).cpuMillis
    },
    memory: () => {
      child.send("memory" satisfies Asked)
      return messageOf<MemoryUsage>(child)
    },
    end: async () => {
      const exit = new Promise((resolve) => child.once("exit", resolve))
      child.send("end" satisfies Asked)
      await exit
      kill()
    },
  }
}

/** Counts the calls in the journals of the runs in a folder. */
const recordedIn = (folder: string): number => {
  let calls = 0
  for (const journal of globSync(join(folder, "**/sessions.jsonl"))) {
    for (const line of readFileSync(journal, "utf8").split("\n")) if (line.startsWith('{"_tag":"Call"')) calls++
  }
  return calls
}

/** Runs a server of models, a gateway and a bare proxy before it, while `use` does. */
export const withProcesses = async <A>(
  use: (processes: {
    readonly gateway: Listening
    readonly proxy: Listening
    readonly upstream: Listening
    /** Returns the number of calls in the journal of the gateway. */
    readonly recorded: () => number
  }) => Promise<A>,
): Promise<A> => {
  const { folder, remove } = temporaryFolder()
  const upstream = await start("upstream")
  const gateway = await start("gateway", upstream.url, folder)
  const proxy = await start("proxy", upstream.url)
  try {
    return await use({ gateway, proxy, upstream, recorded: () => recordedIn(folder) })
  } finally {
    await Promise.all([gateway.end(), proxy.end()])
    await upstream.end()
    remove()
  }
}

const agent = new Agent({ keepAlive: true, maxSockets: 4096 })

const path = "v1/chat/completions"

/** Returns the address of the calls of a session; a session of the server itself, or of the proxy, is none. */
export const callsAt = ({ url }: Listening, session: string): string => `${url}/sessions/${session}/${path}`

/** Posts a body, and waits for the whole answer. */
export const post = (url: string, content: string): Promise<void> =>
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

const system = { role: "system", content: "You are brief. ".repeat(20) }

/** Returns the bodies of the calls of a conversation: each has the messages and the answers before, and 2 kB more. */
export const conversation = (name: string, turns: number): ReadonlyArray<string> => {
  const messages: Array<object> = [system]
  return Array.from({ length: turns }, (_, turn) => {
    const content = `${name}, ${turn}: is this a question? `.padEnd(2000, "Is this another question? ")
    messages.push({ role: "user", content })
    const body = JSON.stringify({ model: "m", messages })
    messages.push({ role: "assistant", content: "Yes." })
    return body
  })
}

/** Runs tasks, at most `atOnce` of them at the same time. */
export const together = async (tasks: number, atOnce: number, run: (task: number) => Promise<void>): Promise<void> => {
  let next = 0
  const work = async (): Promise<void> => {
    while (next < tasks) await run(next++)
  }
  await Promise.all(Array.from({ length: atOnce }, work))
}

interface Played {
  /** The beginning of the sessions' ids. */
  readonly name: string
  readonly sessions: number
  readonly turns: number
  /** The number of sessions that are played at the same time. */
  readonly atOnce?: number
  /** Whether the sessions are ended at the end. */
  readonly ends?: boolean
}

/** Plays whole conversations in sessions of their own. */
export const play = (server: Listening, { name, sessions, turns, atOnce = 16, ends = true }: Played): Promise<void> =>
  together(sessions, atOnce, async (session) => {
    const id = `${name}-${session}`
    for (const body of conversation(id, turns)) await post(callsAt(server, id), body)
    if (ends && server.hasSessions) await post(`${server.url}/sessions/${id}/end`, "{}")
  })

export const sleep = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds))

/** Sends calls at a steady rate, and returns how long each took, in milliseconds. */
export const atRate = async (
  perSecond: number,
  seconds: number,
  call: (index: number) => Promise<void>,
): Promise<ReadonlyArray<number>> => {
  const times: Array<number> = []
  const calls: Array<Promise<void>> = []
  const start = performance.now()
  for (let index = 0; index < perSecond * seconds; index++) {
    const wait = start + (index * 1000) / perSecond - performance.now()
    if (wait > 0) await sleep(wait)
    const began = performance.now()
    calls.push(call(index).then(() => void times.push(performance.now() - began)))
  }
  await Promise.all(calls)
  return times
}

export const percentile = (values: ReadonlyArray<number>, share: number): number =>
  values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * share))]
