/** Starts threads of Node that help to compute large programs of the backend `wasm`. `named-node.ts` uses it. */
import { Worker } from "node:worker_threads"
import { Effect } from "effect"
import { helpExport } from "../graph/wasm/slices.ts"
import type { Threads } from "./wasm.ts"

/** The program of a thread. It returns, and the thread ends, when the module's `release` has been called. */
const program = `
const { module, memory } = require("node:worker_threads").workerData
new WebAssembly.Instance(module, { env: { memory } }).exports[${JSON.stringify(helpExport)}]()
`

/** Makes threads of which `count` compute a program, with the one that runs it. */
export const nodeThreads = (count: number): Threads => ({
  count,
  start: (shared, helpers) => {
    const ends = Array.from({ length: helpers }, () => {
      const worker = new Worker(program, { eval: true, execArgv: [], stdin: false, workerData: shared })
      // A thread that fails, for example since there is no memory for it, does not help; the others compute everything.
      worker.on("error", () => undefined)
      const end = new Promise<void>((resolve) => worker.once("exit", () => resolve()))
      // A thread that helps does not keep the process alive.
      worker.unref()
      return Effect.promise(() => {
        worker.ref()
        return end
      })
    })
    return Effect.all(ends, { discard: true })
  },
})
