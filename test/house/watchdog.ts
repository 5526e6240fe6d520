import { spawnSync } from "node:child_process"
import { readdirSync, readFileSync } from "node:fs"
import type { Reporter, TestCase, TestModule } from "vitest/node"

/** The limits on what passes without any test beginning or ending. */
export interface Limits {
  /** CPU time that the tests may take. */
  readonly cpuSeconds: number
  /** Wall time in which they may take next to no CPU time. */
  readonly idleSeconds: number
  /** Wall time where the system doesn't tell their CPU time: generous, for a busy machine must fail no test. */
  readonly unmeasuredSeconds: number
}

const limits: Limits = { cpuSeconds: 900, idleSeconds: 600, unmeasuredSeconds: 3600 }

/** At less than this part of a core a process waits; one of twenty that fight for a core still gets more. */
const idleShare = 0.01

const everySeconds = 10

/** The time that has passed since a test last began or ended. */
export interface Elapsed {
  /** CPU time of the tests' processes at the last look. */
  readonly cpuSeconds: number
  /** CPU time of the tests' processes when a test last began or ended. */
  readonly atProgress: number
  readonly idleSeconds: number
  readonly unmeasuredSeconds: number
}

export const atStart: Elapsed = { cpuSeconds: 0, atProgress: 0, idleSeconds: 0, unmeasuredSeconds: 0 }

/** Counts from here again, for a test has begun or ended. */
export const progressed = ({ cpuSeconds }: Elapsed): Elapsed => ({ ...atStart, cpuSeconds, atProgress: cpuSeconds })

/** Adds the seconds since the last look; the CPU time is undefined where the system doesn't tell it. */
export const looked = (before: Elapsed, cpuSeconds: number | undefined, seconds: number): Elapsed => {
  if (cpuSeconds === undefined) return { ...before, unmeasuredSeconds: before.unmeasuredSeconds + seconds }
  const isIdle = Math.abs(cpuSeconds - before.cpuSeconds) < idleShare * seconds
  return { ...before, cpuSeconds, idleSeconds: isIdle ? before.idleSeconds + seconds : 0 }
}

/** Says which limit is reached, if any. */
export const limitReached = (elapsed: Elapsed, limits: Limits): string | undefined => {
  const computed = elapsed.cpuSeconds - elapsed.atProgress
  if (computed >= limits.cpuSeconds) return `${Math.round(computed)} CPU seconds`
  if (elapsed.idleSeconds >= limits.idleSeconds) return `${elapsed.idleSeconds} idle seconds`
  if (elapsed.unmeasuredSeconds >= limits.unmeasuredSeconds) return `${elapsed.unmeasuredSeconds} seconds`
  return undefined
}

/** Lists the processes below one, at any depth, given the parent of each process. */
export const below = (parents: ReadonlyMap<number, number>, root: number): ReadonlyArray<number> => {
  const children = [...parents].filter(([pid, parent]) => parent === root && pid !== root).map(([pid]) => pid)
  return children.flatMap((pid) => [pid, ...below(parents, pid)])
}

/**
 * Ends a run in which a test hangs, and all processes that the run has started. It counts CPU time, not wall time, so that
 * a slow or busy machine fails no test: a test hangs that computes for 15 minutes without end, or that waits for 10 minutes
 * while nothing is computed. Where the system doesn't tell the CPU time, a test hangs after an hour.
 */
export default class Watchdog implements Reporter {
  readonly #running = new Set<string>()
  #timer: NodeJS.Timeout | undefined
  #elapsed = atStart

  onTestRunStart(): void {
    this.#progress()
    this.#timer = setInterval(() => this.#look(), everySeconds * 1000)
    this.#timer.unref()
  }

  onTestModuleStart(module: TestModule): void {
    this.#running.add(module.relativeModuleId)
    this.#progress()
  }

  onTestCaseReady(test: TestCase): void {
    this.#running.add(nameOf(test))
    this.#progress()
  }

  onTestCaseResult(test: TestCase): void {
    this.#running.delete(nameOf(test))
    this.#progress()
  }

  onTestModuleEnd(module: TestModule): void {
    this.#running.delete(module.relativeModuleId)
    this.#progress()
  }

  onTestRunEnd(): void {
    clearInterval(this.#timer)
  }

  #progress(): void {
    this.#elapsed = progressed(this.#elapsed)
  }

  #look(): void {
    const processes = processesFromProc()
    const pids = below(parentsOf(processes), process.pid)
    const cpuSeconds = processes.size === 0 ? undefined : sum(pids.map((pid) => processes.get(pid)?.cpuSeconds ?? 0))
    this.#elapsed = looked(this.#elapsed, cpuSeconds, everySeconds)
    const reached = limitReached(this.#elapsed, limits)
    if (reached === undefined) return
    const running = [...this.#running].map((name) => `  ${name}\n`).join("")
    process.stderr.write(
      `\nwatchdog: no test has begun or ended for ${reached}; running are\n${running}0 passed, 1 failed\n`,
    )
    // A process that computes without end doesn't notice that its parent is gone.
    for (const pid of processes.size === 0 ? below(parentsFromPs(), process.pid) : pids) kill(pid)
    process.exit(1)
  }
}

const nameOf = (test: TestCase): string => `${test.module.relativeModuleId} > ${test.fullName}`

interface Process {
  readonly parent: number
  /** Its own CPU time and that of its children that have ended. */
  readonly cpuSeconds: number
}

/** Lists all processes; none where the system has no `/proc`. */
const processesFromProc = (): ReadonlyMap<number, Process> => {
  const processes = new Map<number, Process>()
  for (const pid of pidsOf("/proc")) {
    // The name, which is in brackets, may hold spaces.
    const fields = textOf(`/proc/${pid}/stat`)
      .replace(/^.*\) /s, "")
      .split(" ")
      .map(Number)
    if (fields.length > 14) processes.set(pid, { parent: fields[1], cpuSeconds: sum(fields.slice(11, 15)) / 100 })
  }
  return processes
}

const parentsOf = (processes: ReadonlyMap<number, Process>): ReadonlyMap<number, number> =>
  new Map([...processes].map(([pid, { parent }]) => [pid, parent]))

/** The parent of each process as `ps` lists it, for systems without `/proc`; none where there is no `ps` either. */
const parentsFromPs = (): ReadonlyMap<number, number> => {
  const { stdout } = spawnSync("ps", ["-A", "-o", "pid=,ppid="], { encoding: "utf8" })
  return new Map(Array.from((stdout ?? "").matchAll(/^ *(\d+) +(\d+) *$/gm), ([, pid, parent]) => [+pid, +parent]))
}

const kill = (pid: number): void => {
  try {
    process.kill(pid, "SIGKILL")
  } catch {
    // The process has ended meanwhile.
  }
}

const sum = (numbers: ReadonlyArray<number>): number => numbers.reduce((total, one) => total + one, 0)

const pidsOf = (folder: string): ReadonlyArray<number> => {
  try {
    return readdirSync(folder).map(Number).filter(Number.isInteger)
  } catch {
    return []
  }
}

const textOf = (file: string): string => {
  try {
    return readFileSync(file, "utf8")
  } catch {
    // The process has ended meanwhile.
    return ""
  }
}
