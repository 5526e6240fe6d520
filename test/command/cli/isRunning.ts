import { readFileSync } from "node:fs"

/** Tells whether a process runs. One that has ended, and that nobody has waited for yet, does not. */
export const isRunning = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, "utf8"))
  } catch {
    return false
  }
}
