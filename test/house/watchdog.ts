import { readdirSync, readFileSync } from "node:fs"
import type { Reporter, TestCase, TestModule } from "vitest/node"

/** How much the tests may compute, and how long they may do next to nothing, without any of them beginning or ending. */
const limits = { cpuSeconds: 900, idleSeconds: 600 }

/** At less than this part of a core a process waits; one of twenty that fight for a core still gets more. */
const idleShare = 0.01

const everySeconds = 10

/**
 * Ends a run in which a test hangs. It counts CPU time, not wall time, so that a slow or busy machine fails no test: a
 * test hangs that computes for 15 minutes without end, or that waits for 10 minutes while nothing is computed.
 */
export default class Watchdog implements Reporter {
  readonly #running = new Set<string>()
  #timer: NodeJS.Timeout | undefined
  #atProgress = 0
  #cpuSeconds = 0
  #idleSeconds = 0

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
    this.#atProgress = this.#cpuSeconds
    this.#idleSeconds = 0
  }

  #look(): void {
    const now = cpuSecondsOfChildren()
    const isIdle = now !== undefined && Math.abs(now - this.#cpuSeconds) < idleShare * everySeconds
    this.#idleSeconds = isIdle ? this.#idleSeconds + everySeconds : 0
    this.#cpuSeconds = now ?? this.#cpuSeconds
    const computed = this.#cpuSeconds - this.#atProgress
    if (computed < limits.cpuSeconds && this.#idleSeconds < limits.idleSeconds) return
    const why = computed < limits.cpuSeconds ? `${this.#idleSeconds} idle seconds` : `${computed} CPU seconds`
    const running = [...this.#running].map((name) => `  ${name}\n`).join("")
    process.stderr.write(
      `\nwatchdog: no test has begun or ended for ${why}; running are\n${running}0 passed, 1 failed\n`,
    )
    process.exit(1)
  }
}

const nameOf = (test: TestCase): string => `${test.module.relativeModuleId} > ${test.fullName}`

/** The CPU time of all processes below this one, ended ones too; undefined where the system has no `/proc`. */
const cpuSecondsOfChildren = (): number | undefined => {
  const processes = new Map<number, { readonly parent: number; readonly ticks: number }>()
  for (const pid of pidsOf("/proc")) {
    // The name, which is in brackets, may hold spaces.
    const fields = textOf(`/proc/${pid}/stat`)
      .replace(/^.*\) /s, "")
      .split(" ")
      .map(Number)
    if (fields.length > 14)
      processes.set(pid, { parent: fields[1], ticks: fields[11] + fields[12] + fields[13] + fields[14] })
  }
  if (processes.size === 0) return undefined
  const isBelow = (pid: number | undefined): boolean =>
    pid !== undefined && pid !== 0 && (pid === process.pid || isBelow(processes.get(pid)?.parent))
  let ticks = 0
  for (const one of processes.values()) if (isBelow(one.parent)) ticks += one.ticks
  return ticks / 100
}

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
