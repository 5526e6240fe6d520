import { writeSync } from "node:fs"
import { Session } from "node:inspector"
import { workerData } from "node:worker_threads"
import type { Watched } from "./userProcess.ts"

/** The thread of `watch`: sees whether the main thread's event loop turns, and asks the main thread where it doesn't. */

const { beats, stallMillis, hook, endsWithParent }: Watched = workerData

const parent = process.ppid

let seen = -1
let sinceMillis = performance.now()

/** The inspector runs a line of code on the main thread though that is within a loop. */
const ask = (): void => {
  const session = new Session()
  session.connectToMainThread()
  session.post("Runtime.evaluate", { expression: `${hook}()`, returnByValue: true }, (error, answer) => {
    session.disconnect()
    const line: unknown = error === null ? answer?.result.value : undefined
    if (typeof line === "string") writeSync(2, line)
    // A sweep that is gone can't end its runs, and this one hears nothing.
    if (endsWithParent && process.ppid !== parent) process.kill(process.pid, "SIGTERM")
  })
}

setInterval(() => {
  const now = Atomics.load(beats, 0)
  if (now !== seen) {
    seen = now
    sinceMillis = performance.now()
  } else if (performance.now() - sinceMillis >= stallMillis) ask()
}, stallMillis / 10)
