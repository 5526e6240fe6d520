/**
 * Measures an exported policy in workerd, the engine of edge workers: PPO on CartPole with two hidden layers of 64 units, for
 * actor and critic each. The package `workerd` serves it.
 */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { connect } from "node:net"
import { join } from "node:path"
import { gzipSync } from "node:zlib"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, Layer } from "effect"
import { CartPole, Ppo, Recorder, RunStore, Train, Wasm } from "effect-rl"
import { scripts } from "../../src/rl/export/worker/scripts-node.ts"
import { workerFiles } from "../../src/rl/export/worker/workerFiles.ts"
import { serveInWorkerd, type Served } from "../../test/bundle/workerd.ts"
import { defineBench } from "../Bench.ts"
import { temporaryFolder } from "../measuring.ts"

/** Trains for a moment, and returns the files of the exported folder. */
const exportedFiles = Effect.gen(function* () {
  const training = Train.run({
    env: CartPole.env,
    numEnvs: 4,
    algorithm: Ppo.make({ hidden: [64, 64] }),
    totalSteps: 512,
  })
  const within = (store: Layer.Layer<RunStore>) => Layer.mergeAll(Wasm.layer, Recorder.layerSilent, store)
  const { files, layer } = RunStore.memory()
  const { runDir } = yield* Effect.provide(training, within(layer))
  const resumed = within(RunStore.memory({ files, resume: runDir }).layer)
  const { policy } = yield* Train.validate(training, { checkpoint: "latest", exportsPolicy: true }).pipe(
    Effect.provide(resumed),
  )
  if (policy === undefined) return yield* Effect.die("the checkpoint has no policy")
  return workerFiles(policy, { name: "cartpole", scripts: yield* scripts })
}).pipe(Effect.provide(NodeServices.layer))

/** A worker that only answers: what remains of a start is the engine's own time. */
const trivial = {
  "worker.js": 'export default { fetch: () => new Response("{}\\n") }',
  "workerd.capnp": `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [(name = "main", worker = (
    modules = [(name = "worker.js", esModule = embed "worker.js")],
    compatibilityDate = "2026-01-01"))],
  sockets = [(name = "http", address = "127.0.0.1:0", http = (), service = "main")]);
`,
}

const withFolders = async <A>(body: (policy: string, empty: string) => Promise<A>): Promise<A> => {
  const { folder, remove } = temporaryFolder()
  const write = (name: string, files: Readonly<Record<string, Uint8Array | string>>): string => {
    const path = join(folder, name)
    mkdirSync(path)
    for (const [file, contents] of Object.entries(files)) writeFileSync(join(path, file), contents)
    return path
  }
  try {
    return await body(write("policy", await Effect.runPromise(exportedFiles)), write("trivial", trivial))
  } finally {
    remove()
  }
}

const request = JSON.stringify({ observation: [0.01, 0.2, -0.03, 0.1] })

/**
 * The CPU seconds of the engine so far, over all its threads. They are what counts on a machine that does other things at
 * the same time.
 */
const cpuSeconds = ({ group }: Served): number => {
  let nanoseconds = 0
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    try {
      const [, name, rest] = /^\d+ \((.*)\) (.*)/.exec(readFileSync(`/proc/${pid}/stat`, "utf8")) ?? []
      if (name !== "workerd" || Number(rest.split(" ")[2]) !== group) continue
      for (const thread of readdirSync(`/proc/${pid}/task`)) {
        nanoseconds += Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, "utf8").split(" ")[0])
      }
    } catch {
      // The process has ended meanwhile.
    }
  }
  return nanoseconds / 1e9
}

/** Milliseconds of the engine's CPU time from its start until it has answered a first request. */
const untilAnswer = async (folder: string): Promise<number> => {
  const served = await serveInWorkerd(folder)
  try {
    await (await fetch(`${served.url}/act`, { method: "POST", body: request })).text()
    return 1000 * cpuSeconds(served)
  } finally {
    await served.stop()
  }
}

const median = (numbers: ReadonlyArray<number>): number => [...numbers].sort((a, b) => a - b)[numbers.length >> 1]

/** Sends requests over one connection, `depth` at a time, until `count` are answered. */
const flood = (port: number, body: string, count: number, depth: number): Promise<void> =>
  new Promise((resolve, reject) => {
    const bytes = `POST /act HTTP/1.1\r\nhost: policy\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
    const socket = connect(port, "127.0.0.1")
    let sent = Math.min(depth, count)
    let answered = 0
    socket.setNoDelay(true)
    socket.on("error", reject)
    let rest = ""
    socket.on("data", (chunk) => {
      // A status line may be cut by the end of a chunk.
      const parts = `${rest}${chunk.toString("latin1")}`.split("HTTP/1.1 200")
      rest = parts[parts.length - 1].slice(-16)
      const now = parts.length - 1
      answered += now
      const more = Math.min(now, count - sent)
      sent += more
      if (more > 0) socket.write(bytes.repeat(more))
      if (answered >= count) {
        socket.end()
        resolve()
      }
    })
    socket.write(bytes.repeat(sent))
  })

/** Requests a second of the engine's CPU time, which is what one core answers. */
const requestsPerSecond = async (served: Served, body: string, count: number): Promise<number> => {
  const port = Number(new URL(served.url).port)
  const round = async (each: number) => {
    const before = cpuSeconds(served)
    await Promise.all(Array.from({ length: 8 }, () => flood(port, body, each, 16)))
    return (8 * each) / (cpuSeconds(served) - before)
  }
  await round(count / 8)
  return median([await round(count / 8), await round(count / 8), await round(count / 8)])
}

export default [
  defineBench({
    name: "edge-worker-size",
    unit: "KiB",
    higherIsBetter: false,
    about: "An exported policy for CartPole, gzipped: module, weights and scripts",
    run: () =>
      withFolders(async (folder) => {
        const kibibytes = (file: string): number =>
          gzipSync(readFileSync(join(folder, file)), { level: 9 }).length / 1024
        const sizes = ["policy.wasm", "policy.js", "card.js", "worker.js"].map(
          (file) => [file, kibibytes(file)] as const,
        )
        const details = Object.fromEntries(sizes.map(([file, size]) => [file, size.toFixed(1)]))
        return { value: sizes.reduce((sum, [, size]) => sum + size, 0), details }
      }),
  }),
  defineBench({
    name: "edge-worker-cold-start",
    unit: "ms",
    higherIsBetter: false,
    about: "What a policy adds to the CPU time from the start of workerd until its first answer",
    run: () =>
      withFolders(async (policy, empty) => {
        const pairs: Array<{ readonly policy: number; readonly empty: number }> = []
        await untilAnswer(policy)
        for (let pair = 0; pair < 15; pair++) {
          pairs.push({ policy: await untilAnswer(policy), empty: await untilAnswer(empty) })
        }
        return {
          value: median(pairs.map((pair) => pair.policy - pair.empty)),
          details: {
            policy: `${median(pairs.map((pair) => pair.policy)).toFixed(1)} ms`,
            "an empty worker": `${median(pairs.map((pair) => pair.empty)).toFixed(1)} ms`,
          },
        }
      }),
  }),
  defineBench({
    name: "edge-worker-requests",
    unit: "requests/s",
    higherIsBetter: true,
    about: "Requests that one core answers in workerd, by its CPU time; one observation each",
    run: () =>
      withFolders(async (policy, empty) => {
        const measure = async (folder: string, body: string, count: number): Promise<number> => {
          const served = await serveInWorkerd(folder)
          try {
            return await requestsPerSecond(served, body, count)
          } finally {
            await served.stop()
          }
        }
        const batch = JSON.stringify({ observations: Array.from({ length: 64 }, () => [0.01, 0.2, -0.03, 0.1]) })
        return {
          value: await measure(policy, request, 20_000),
          details: {
            "an empty worker": (await measure(empty, request, 20_000)).toFixed(0),
            "observations/s in batches of 64": (64 * (await measure(policy, batch, 4_000))).toFixed(0),
          },
        }
      }),
  }),
]
