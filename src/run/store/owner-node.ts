import { hostname } from "node:os"
import { Effect } from "effect"
import type { Owner } from "./lock.ts"

const thisHost = hostname()

/** Tells whether the process of that name is alive. Processes of other machines are assumed to be. */
export const isAlive = (name: string): boolean => {
  const [, pid, host] = /^process (\d+) on (.*)$/.exec(name) ?? []
  return host !== thisHost || isRunning(Number(pid))
}

/** This process, as the owner of a lock. */
export const owner: Owner = {
  name: `process ${process.pid} on ${thisHost}`,
  isAlive: (name) => Effect.sync(() => isAlive(name)),
}

const isRunning = (pid: number): boolean => {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    // EPERM: the process exists, but belongs to another user.
    return error instanceof Error && "code" in error && error.code === "EPERM"
  }
}
