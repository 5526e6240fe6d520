/** Starts threads of Node that help to compute large programs of the backend `wasm`. `named-node.ts` uses it. */
import { Worker } from "node:worker_threads"
import { Effect } from "effect"
import { messageOf } from "../../base/text/text.ts"
import { helpExport } from "../graph/wasm/slices.ts"
import type { Threads } from "./wasm.ts"
import type { SharedModule } from "./wasmModules.ts"

/** The source of a thread's program. It ends, and so does the thread, after the module's `release` is called. */
const program = `
const { module, memory } = require("node:worker_threads").workerData
new WebAssembly.Instance(module, { env: { memory } }).exports[${JSON.stringify(helpExport)}]()
`

/** Makes helper threads: `count` threads compute a program, including the one that runs it. */
export const nodeThreads = (count: number): Threads => ({
  count,
  start: (shared, helpers, failed) =>
    Effect.all(
      Array.from({ length: helpers }, () => startOne(shared, failed)),
      { discard: true },
    ),
})

/** Starts a thread; returns an effect that waits until it has ended. */
const startOne = (shared: SharedModule, failed: (reason: string) => void): Effect.Effect<void> => {
  try {
    const worker = new Worker(program, { eval: true, execArgv: [], stdin: false, workerData: shared })
    worker.on("error", (error) => failed(messageOf(error)))
    const end = new Promise<void>((resolve) => worker.once("exit", () => resolve()))
    // A helper thread does not keep the process alive.
    worker.unref()
    return Effect.promise(() => {
      worker.ref()
      return end
    })
  } catch (error) {
    // This happens if, for example, the system allows no more threads or Node's permission model forbids them.
    failed(messageOf(error))
    return Effect.void
  }
}
