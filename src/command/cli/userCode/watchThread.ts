/** Runs in a thread of `watch.ts`: calls a function (the hook) on the main thread if that thread is blocked. */
import { Session } from "node:inspector"
import { workerData } from "node:worker_threads"
import { oneAtATime } from "./stall.ts"
import type { Watched } from "./watch.ts"

const { beats, everyMillis, hook }: Watched = workerData

let lastBeats = -1

/** Calls the hook on the main thread through the inspector, which can run code there even in the middle of a loop. */
const callHook = oneAtATime((answered) => {
  const session = new Session()
  session.connectToMainThread()
  session.post("Runtime.evaluate", { expression: `${hook}()` }, () => {
    session.disconnect()
    answered()
  })
})

setInterval(() => {
  const now = Atomics.load(beats, 0)
  if (now === lastBeats) callHook()
  lastBeats = now
}, everyMillis)
