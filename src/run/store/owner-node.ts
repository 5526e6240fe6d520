import { hostname } from "node:os"
import { Effect } from "effect"
import type { Owner } from "./lock.ts"

const thisHost = hostname()

/** Whether the process of that name is still there; those of other machines are believed to be. */
export const isAlive = (name: string): boolean => {
  const [, pid, host] = /^process (\d+) on (.*)$/.exec(name) ?? []
  return host !== thisHost || isRunning(Number(pid))
}

/** This process, and whether another one is at work. */
export const owner: Owner = {
  name: `process ${process.pid} on ${thisHost}`,
  isAlive: (name) => Effect.sync(() => isAlive(name)),
}

const isRunning = (pid: number): boolean => {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    // It is there, but somebody else's.
    return error instanceof Error && "code" in error && error.code === "EPERM"
  }
}
