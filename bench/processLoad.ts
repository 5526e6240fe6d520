/** Reads how much time and memory processes take, as Linux counts it in `/proc`. */
import { readFileSync } from "node:fs"

/** Returns the contents of a file in /proc; an empty text if the process has ended. */
const textOf = (file: string): string => {
  try {
    return readFileSync(file, "utf8")
  } catch {
    return ""
  }
}

/** Returns a process and those that it has started. */
const withChildren = (pid: number): ReadonlyArray<number> => [
  pid,
  ...(textOf(`/proc/${pid}/task/${pid}/children`).match(/\d+/g) ?? []).flatMap((child) => withChildren(Number(child))),
]

/** Returns the CPU time of a process so far in seconds. Linux counts it in hundredths. */
const cpuSecondsOf = (pid: number): number => {
  // The second field is the name of the program, in brackets; behind it, the times are the 12th and 13th field.
  const fields = textOf(`/proc/${pid}/stat`).split(") ").at(-1)?.split(" ") ?? []
  return (Number(fields[11] ?? 0) + Number(fields[12] ?? 0)) / 100
}

/** Returns the bytes that Linux states in a line such as `VmHWM:  1234 kB` of a file in /proc; 0 if the process ended. */
const bytesIn = (file: string, key: string): number =>
  1024 * Number(new RegExp(`^${key}:\\s*(\\d+) kB`, "m").exec(textOf(file))?.[1] ?? 0)

/** The load of some processes and their children so far. */
export interface ProcessLoad {
  /** Reads the processes again. Call it often: what a process took after the last call and before its end is not counted. */
  readonly watch: () => void
  readonly cpuSeconds: () => number
  /** The sum over the processes of the most resident memory (VmHWM), in bytes. */
  readonly residentBytes: () => number
  /** The largest sum of the proportional memory (PSS): of a page that n processes share, each counts 1/n. */
  readonly proportionalBytes: () => number
}

/** Begins to read the load of processes. */
export const processLoad = (pids: ReadonlyArray<number>): ProcessLoad => {
  const resident = new Map<number, number>()
  const cpu = new Map<number, number>()
  let most = 0
  const sumOf = (numbers: ReadonlyMap<number, number>): number =>
    [...numbers.values()].reduce((sum, one) => sum + one, 0)
  return {
    watch: () => {
      let proportional = 0
      for (const pid of pids.flatMap(withChildren)) {
        resident.set(pid, Math.max(resident.get(pid) ?? 0, bytesIn(`/proc/${pid}/status`, "VmHWM")))
        cpu.set(pid, Math.max(cpu.get(pid) ?? 0, cpuSecondsOf(pid)))
        proportional += bytesIn(`/proc/${pid}/smaps_rollup`, "Pss")
      }
      most = Math.max(most, proportional)
    },
    cpuSeconds: () => sumOf(cpu),
    residentBytes: () => sumOf(resident),
    proportionalBytes: () => most,
  }
}
