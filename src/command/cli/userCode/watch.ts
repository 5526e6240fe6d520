/** Watches from another thread whether the user's code lets the event loop turn, so that Ctrl-C always ends the process. */
import { Worker } from "node:worker_threads"
import { Effect } from "effect"
import { compileCacheVariable } from "../../../base/files/compile-cache-node.ts"
import { stepsTaken } from "../../../rl/env/internal/stepsTaken.ts"
import { programBeside } from "../../../base/files/programBeside.ts"
import { PartOfSweep } from "../../sweep/part.ts"
import { type Measures, stallMeter } from "./stall.ts"
import { placeIn } from "./userCode.ts"
import { type RemovedListeners, removeListeners, restoreListeners } from "./userProcess.ts"

/** The milliseconds after which the main thread's event loop increments the counter `beats` again. */
const beatMillis = 250

/** The data that the watching thread receives. */
export interface Watched {
  /** A counter in shared memory, which the main thread increments while its event loop turns. */
  readonly beats: Int32Array
  /** The milliseconds between two checks of the count by the watching thread. */
  readonly everyMillis: number
  /** The name of the global function that the watching thread calls on the main thread if the count has not changed. */
  readonly hook: string
}

const hook = "effectRlStalled"

/** Measures the CPU time of this thread. Node 22 can only measure the CPU time of the whole process. */
const cpuUsage = process.threadCpuUsage ?? process.cpuUsage

const measure = (): Measures => {
  const { user, system } = cpuUsage()
  return { cpuMillis: (user + system) / 1000, wallMillis: performance.now(), steps: stepsTaken[0] }
}

/**
 * Watches from another thread whether the event loop turns. If one call of the user's code blocks the event loop for
 * ten seconds of CPU time, a line on stderr says so, and the next signal ends the process. If the call returns later,
 * signals save the run again.
 */
export const watch: Effect.Effect<void> = Effect.map(PartOfSweep, (part) => {
  const beats = new Int32Array(new SharedArrayBuffer(4))
  let removed: RemovedListeners | undefined
  const meter = stallMeter(measure)
  const turned = (): void => {
    Atomics.add(beats, 0, 1)
    meter.turned()
    if (removed !== undefined) restoreListeners(removed)
    removed = undefined
  }
  setInterval(turned, beatMillis).unref()

  const parent = process.ppid

  /**
   * Reports a stall. It runs inside the call that blocks the main thread, when the watching thread finds that the count has
   * not changed.
   */
  const stalled = (): void => {
    if (removed === undefined) {
      const millis = meter.stalledMillis()
      const place = millis === undefined ? undefined : placeIn(wholeStack())
      if (millis === undefined || place === undefined) return
      removed = removeListeners()
      const seconds = Math.round(millis / 1000)
      const line = `effect: ${place}: it has not returned for ${seconds} seconds; Ctrl-C now ends the run without saving it\n`
      // stderr is written synchronously, except for pipes on Windows.
      if (!isOrphan()) process.stderr.write(line)
    }
    if (isOrphan()) process.kill(process.pid, "SIGTERM")
  }
  /**
   * Tells whether this process runs a part of a sweep whose own process has ended: then nobody reads its output, and nobody
   * else can end it.
   */
  const isOrphan = (): boolean => part !== undefined && process.ppid !== parent
  Object.defineProperty(globalThis, hook, { value: stalled, configurable: true })
  const watched: Watched = { beats, everyMillis: 1000, hook }
  const thread = new Worker(programBeside(import.meta.url, "watchThread"), {
    workerData: watched,
    env: { ...process.env, ...compileCacheVariable() },
  })
  // Some platforms allow neither threads nor the inspector; on those, nothing is watched.
  thread.on("error", () => {})
  thread.unref()
})

/** Returns the current stack trace with up to 200 calls; the default of ten may not reach the user's code. */
const wholeStack = (): string => {
  const before = Error.stackTraceLimit
  Error.stackTraceLimit = 200
  const { stack = "" } = new Error()
  Error.stackTraceLimit = before
  return stack
}
