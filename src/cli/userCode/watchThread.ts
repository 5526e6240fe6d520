import { writeSync } from "node:fs"
import { Session } from "node:inspector"
import { workerData } from "node:worker_threads"
import { oneAtATime } from "./stall.ts"
import type { Watched } from "./userProcess.ts"

/** The thread of `watch`: sees whether the main thread's event loop turns, and asks the main thread where it doesn't. */

const { beats, everyMillis, hook, endsWithParent }: Watched = workerData

const parent = process.ppid

let seen = -1

/** The inspector runs a line of code on the main thread though that is within a loop. */
const ask = oneAtATime((answered) => {
  const session = new Session()
  session.connectToMainThread()
  session.post("Runtime.evaluate", { expression: `${hook}()`, returnByValue: true }, (error, answer) => {
    session.disconnect()
    answered()
    const line: unknown = error === null ? answer?.result.value : undefined
    if (typeof line !== "string") return
    // A sweep that is gone can't end its runs, and this one hears nothing. Nobody reads what it writes, either.
    if (endsWithParent && process.ppid !== parent) process.kill(process.pid, "SIGTERM")
    else writeSync(2, line)
  })
})

setInterval(() => {
  const now = Atomics.load(beats, 0)
  if (now === seen) ask()
  seen = now
}, everyMillis)
