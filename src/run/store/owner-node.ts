/**
 * Makes the name of the current process for lock files, and tells whether the process with another name is still running.
 * Machines may have the same hostname, for example containers of one image, so a name also identifies the machine, its last
 * boot, and the time at which the process began.
 */
import { createHash } from "node:crypto"
import { readFileSync, readlinkSync } from "node:fs"
import { hostname } from "node:os"
import { Effect } from "effect"
import type { LeaseOwner, Owner } from "./lock.ts"

/** A machine or container, as its processes see it. */
export interface Machine {
  readonly host: string
  /** An id that stays the same after a reboot; empty if the system has none. */
  readonly id: string
  /** An id that changes with each boot, and differs between containers; empty if the system has none. */
  readonly boot: string
  /**
   * Returns the time at which a process began, in the system's units: empty if the system hides it, undefined if no such
   * process exists.
   */
  readonly begun: (pid: number) => string | undefined
}

const read = (from: () => string): string => {
  try {
    return from().trim()
  } catch {
    return ""
  }
}

const short = (text: string): string => (text === "" ? "" : createHash("sha256").update(text).digest("hex").slice(0, 8))

const isRunning = (pid: number): boolean => {
  try {
    // Signal 0 does nothing; it fails if the process does not exist.
    return process.kill(pid, 0)
  } catch (error) {
    // The error EPERM means that the process exists, but belongs to another user.
    return error instanceof Error && "code" in error && error.code === "EPERM"
  }
}

/** The machine of this process. Only Linux provides its ids; on other systems, machines are distinguished by hostname. */
const thisMachine: Machine = {
  host: hostname(),
  id: short(read(() => readFileSync("/etc/machine-id", "utf8"))),
  // Containers on one machine have the same boot id, but their processes are numbered in another namespace.
  boot: short(
    read(() => `${readFileSync("/proc/sys/kernel/random/boot_id", "utf8")} ${readlinkSync("/proc/self/ns/pid")}`),
  ),
  begun: (pid) => {
    if (!isRunning(pid)) return undefined
    const status = read(() => readFileSync(`/proc/${pid}/stat`, "utf8"))
    // The program's name, in parentheses, may contain anything, so search for its end. The start time is the 20th field after
    // it.
    return status.slice(status.lastIndexOf(")") + 2).split(" ")[19] ?? ""
  },
}

/** Returns the name of a process on this machine, for lock files. */
export const ownerName = (pid: number, { host, id, boot, begun }: Machine = thisMachine): string =>
  `process ${pid} on ${host} (${id}-${boot}-${begun(pid) ?? ""})`

/** Makes the owner of a lock from a process and its machine. */
export const ownerOn = (machine: Machine, pid: number): Owner & LeaseOwner => {
  const placeOf = (name: string) => {
    const [, other, host, id, boot, begun] = /^process (\d+) on (.*) \((\w*)-(\w*)-(\w*)\)$/.exec(name) ?? []
    return {
      isMachine: host === machine.host && id === machine.id,
      isBoot: boot === machine.boot,
      hasEnded: () => {
        const at = machine.begun(Number(other))
        // The system may hide the start time of another user's process.
        return at !== begun && at !== ""
      },
    }
  }
  return {
    name: ownerName(pid, machine),
    // A process on another machine is assumed to be alive. A process from before this machine's last boot is not.
    isAlive: (name) =>
      Effect.sync(() => {
        const { isMachine, isBoot, hasEnded } = placeOf(name)
        return !isMachine || (isBoot && !hasEnded())
      }),
    isLocal: (name) => placeOf(name).isMachine,
    hasEnded: (name) =>
      Effect.sync(() => {
        const { isMachine, isBoot, hasEnded } = placeOf(name)
        return isMachine && isBoot && hasEnded()
      }),
  }
}

/** The current process, as the owner of a lock. */
export const owner: Owner & LeaseOwner = ownerOn(thisMachine, process.pid)
