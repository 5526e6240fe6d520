import { hostname } from "node:os"
import { Effect } from "effect"
import type { Owner } from "./lock.ts"

const thisHost = hostname()

/** Tells whether the process with this name is alive. A process on another machine is assumed to be alive. */
export const isAlive = (name: string): boolean => {
  const [, pid, host] = /^process (\d+) on (.*)$/.exec(name) ?? []
  return host !== thisHost || isRunning(Number(pid))
}

/** The current process, as the owner of a lock. */
export const owner: Owner = {
  name: `process ${process.pid} on ${thisHost}`,
  isAlive: (name) => Effect.sync(() => isAlive(name)),
}

const isRunning = (pid: number): boolean => {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    // The error EPERM means that the process exists, but belongs to another user.
    return error instanceof Error && "code" in error && error.code === "EPERM"
  }
}
