/**
 * Measures multi-run trainers as processes of the `effect` command: how many tokens their runs train and generate in a
 * second, by the files that the runs leave, and how much memory the processes take, as Linux counts it.
 */
import { type ChildProcess, spawn } from "node:child_process"
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { MultirunLayout as Layout, Safetensors } from "effect-rl"

/** The speed and the memory of all processes together that train the same eight runs. */
export interface Load {
  /** The tokens of the samples that were trained in a second, prompts included. */
  readonly trainedASecond: number
  /** The generated ones among those tokens. */
  readonly generatedASecond: number
  /** The sum over the processes of the most resident memory (VmHWM), in bytes. */
  readonly residentBytes: number
  /** The largest sum of the proportional memory (PSS): of a page that n processes share, each counts 1/n. */
  readonly proportionalBytes: number
  /** The tokens that were trained in a second of one core. Other load on the machine changes it little. */
  readonly trainedACoreSecond: number
  /** The time in which the tokens were counted. */
  readonly seconds: number
}

/** A step of a run: the time at which its weights were published, in seconds, and the tokens of its samples. */
interface Step {
  readonly at: number
  readonly trained: number
  readonly generated: number
}

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

/** Returns the steps of a run, in their order. */
const stepsOf = (run: string): ReadonlyArray<Step> => {
  const numbers = readdirSync(join(run, Layout.broadcasts)).flatMap((name) => Layout.stepOf(name) ?? [])
  // The broadcast of step N + 1 has the weights that the samples of step N have trained.
  return numbers
    .filter((number) => number > 0)
    .sort((a, b) => a - b)
    .map((number) => {
      const samples = join(run, Layout.rolloutsOf(number - 1), Layout.inRollouts.samples)
      const mask = Array.from(Safetensors.decode(readFileSync(samples))["mask"].data, Number)
      return {
        at: statSync(join(run, Layout.broadcast(number), Layout.stable)).mtimeMs / 1000,
        trained: mask.length,
        generated: mask.reduce((sum, one) => sum + one, 0),
      }
    })
}

/** Returns the folders of the runs of all trainers whose results are below a folder. */
const runsBelow = (folder: string): ReadonlyArray<string> =>
  readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((path) => /(^|\/)run_[^/]+$/.test(path))
    .map((path) => join(folder, path))

const command = fileURLToPath(new URL("../bin/effect.js", import.meta.url))

const ended = (child: ChildProcess, name: string): Promise<void> =>
  new Promise((resolve, reject) => {
    let errors = ""
    child.stderr?.on("data", (chunk) => (errors += chunk))
    child.on("error", reject)
    child.on("exit", (code) => (code === 0 ? resolve() : reject(new Error(`${name} ended with ${code}: ${errors}`))))
  })

/**
 * Trains each config in a process of its own, all at the same time. The tokens are counted from the time at which all runs
 * have made `warmUp` steps until the first one ends, so that all of them are at work meanwhile.
 */
export const measureTrainers = async (
  configs: ReadonlyArray<object>,
  {
    folder,
    backend,
    warmUp,
  }: {
    readonly folder: string
    readonly backend: string
    readonly warmUp: number
  },
): Promise<Load> => {
  const children = configs.map((config, at) => {
    const file = join(folder, `trainer-${at}.yaml`)
    // JSON is YAML, too.
    writeFileSync(file, JSON.stringify(config))
    const results = join(folder, `results-${at}`)
    const args = [command, "run", file, "--results-dir", results, "--backend", backend, "--quiet"]
    return spawn(process.execPath, args, { stdio: ["ignore", "ignore", "pipe"] })
  })
  const resident = new Map<number, number>()
  const cpu = new Map<number, number>()
  /** The CPU time of all processes at some times, in seconds. */
  const times: Array<{ readonly at: number; readonly cpuSeconds: number }> = []
  let proportionalBytes = 0
  const watch = (): void => {
    const all = children.flatMap(({ pid }) => (pid === undefined ? [] : withChildren(pid)))
    let proportional = 0
    for (const pid of all) {
      resident.set(pid, Math.max(resident.get(pid) ?? 0, bytesIn(`/proc/${pid}/status`, "VmHWM")))
      cpu.set(pid, Math.max(cpu.get(pid) ?? 0, cpuSecondsOf(pid)))
      proportional += bytesIn(`/proc/${pid}/smaps_rollup`, "Pss")
    }
    proportionalBytes = Math.max(proportionalBytes, proportional)
    times.push({ at: Date.now() / 1000, cpuSeconds: [...cpu.values()].reduce((sum, one) => sum + one, 0) })
  }
  const watching = setInterval(watch, 100)
  try {
    await Promise.all(children.map((child, at) => ended(child, `trainer ${at}`)))
  } finally {
    clearInterval(watching)
    for (const child of children) child.kill()
  }
  const runs = runsBelow(folder).map(stepsOf)
  const begin = Math.max(...runs.map((steps) => steps[warmUp - 1].at))
  const end = Math.min(...runs.map((steps) => steps[steps.length - 1].at))
  const counted = runs.flat().filter(({ at }) => at > begin && at <= end)
  const total = (key: "trained" | "generated"): number => counted.reduce((sum, step) => sum + step[key], 0)
  const cpuAt = (time: number): number => times.findLast(({ at }) => at <= time)?.cpuSeconds ?? 0
  return {
    trainedACoreSecond: total("trained") / (cpuAt(end) - cpuAt(begin)),
    trainedASecond: total("trained") / (end - begin),
    generatedASecond: total("generated") / (end - begin),
    residentBytes: [...resident.values()].reduce((sum, bytes) => sum + bytes, 0),
    proportionalBytes,
    seconds: end - begin,
  }
}
