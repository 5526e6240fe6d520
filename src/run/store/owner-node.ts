/** Names the current process in lock files, and tells whether another process still runs. */
import { hostname } from "node:os"
import { Effect } from "effect"
import type { Owner } from "./lock.ts"

const thisHost = hostname()

/** The current process, as the owner of a lock. */
export const owner: Owner = {
  name: `process ${process.pid} on ${thisHost}`,
  // A process on another machine is assumed to be alive.
  isAlive: (name) =>
    Effect.sync(() => {
      const [, pid, host] = /^process (\d+) on (.*)$/.exec(name) ?? []
      return host !== thisHost || isRunning(Number(pid))
    }),
}

const isRunning = (pid: number): boolean => {
  try {
    // Signal 0 does nothing; it fails if the process does not exist.
    return process.kill(pid, 0)
  } catch (error) {
    // The error EPERM means that the process exists, but belongs to another user.
    return error instanceof Error && "code" in error && error.code === "EPERM"
  }
}
