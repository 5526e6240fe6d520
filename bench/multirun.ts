/**
 * Measures multi-run trainers as processes of the `effect` command: how many tokens their runs train and generate in a
 * second, by the files that the runs leave, and how much memory the processes take, as Linux counts it.
 */
import { type ChildProcess, spawn } from "node:child_process"
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { setTimeout } from "node:timers/promises"
import { fileURLToPath } from "node:url"
import { MultirunLayout as Layout, Safetensors } from "effect-rl"
import { processLoad } from "./processLoad.ts"

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

/** Returns the steps of a run whose weights were published, in their order. */
const stepsOf = (run: string): ReadonlyArray<Step> =>
  publishedIn(run).map((number) => {
    const samples = join(run, Layout.rolloutsOf(number - 1), Layout.inRollouts.samples)
    const mask = Array.from(Safetensors.decode(readFileSync(samples))["mask"].data, Number)
    return {
      at: statSync(join(run, Layout.broadcast(number), Layout.stable)).mtimeMs / 1000,
      trained: mask.length,
      generated: mask.reduce((sum, one) => sum + one, 0),
    }
  })

/** Returns the numbers of the published steps. The weights of step N + 1 were trained on the samples of step N. */
const publishedIn = (run: string): ReadonlyArray<number> => {
  const folder = join(run, Layout.broadcasts)
  return (existsSync(folder) ? readdirSync(folder) : [])
    .flatMap((name) => Layout.stepOf(name) ?? [])
    .filter((number) => number > 0 && existsSync(join(run, Layout.broadcast(number), Layout.stable)))
    .sort((a, b) => a - b)
}

/** Returns the folders of the runs of all trainers whose results are below a folder. */
const runsBelow = (folder: string): ReadonlyArray<string> =>
  readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .flatMap(({ name }) => (name.startsWith("run_") ? [join(folder, name)] : runsBelow(join(folder, name))))

const command = fileURLToPath(new URL("../bin/effect.js", import.meta.url))

/** Waits for the end of a process, and fails if it ends before it was stopped. */
const ended = (child: ChildProcess, name: string, isStopped: () => boolean): Promise<void> =>
  new Promise((resolve, reject) => {
    let errors = ""
    child.stderr?.on("data", (chunk) => (errors += chunk))
    child.on("error", reject)
    child.on("exit", (code) =>
      isStopped() ? resolve() : reject(new Error(`${name} ended with ${code} before it was measured: ${errors}`)),
    )
  })

/** The length of a measurement in steps of a run. */
export interface Length {
  /** The steps that each run makes before the measurement begins. */
  readonly warmUp: number
  /** The steps that the runs make during the measurement, on average. */
  readonly steps: number
}

interface MeasureOptions extends Length {
  /** The folder for the configs and the results. */
  readonly folder: string
  readonly backend: string
  /** The number of runs that the trainers have together. */
  readonly runs: number
}

/**
 * Trains each config in a process of its own, all at the same time, and stops them after some steps. The configs need more
 * steps than are measured, so that all runs are at work during the whole measurement.
 */
export const measureTrainers = async (
  configs: ReadonlyArray<object>,
  { folder, backend, runs, warmUp, steps }: MeasureOptions,
): Promise<Load> => {
  const children = configs.map((config, at) => {
    const file = join(folder, `trainer-${at}.yaml`)
    // JSON is YAML, too.
    writeFileSync(file, JSON.stringify(config))
    const results = join(folder, `results-${at}`)
    const args = [command, "run", file, "--results-dir", results, "--backend", backend, "--quiet"]
    return spawn(process.execPath, args, { stdio: ["ignore", "ignore", "pipe"] })
  })
  const load = processLoad(children.flatMap(({ pid }) => (pid === undefined ? [] : [pid])))
  /** Waits until a condition holds for the numbers of steps that the runs have made. */
  const untilSteps = async (holds: (steps: ReadonlyArray<number>) => boolean): Promise<void> => {
    while (!holds(runsBelow(folder).map((run) => publishedIn(run).length))) {
      await setTimeout(100)
      load.watch()
    }
  }
  let isStopped = false
  const ends = Promise.all(children.map((child, at) => ended(child, `trainer ${at}`, () => isStopped)))
  const measure = async () => {
    const total = (steps: ReadonlyArray<number>): number => steps.reduce((sum, one) => sum + one, 0)
    let first = 0
    await untilSteps((made) => {
      first = total(made)
      return made.length === runs && made.every((one) => one >= warmUp)
    })
    const [begin, cpuBefore] = [Date.now() / 1000, load.cpuSeconds()]
    await untilSteps((made) => total(made) - first >= steps * runs)
    const [end, cpuAfter] = [Date.now() / 1000, load.cpuSeconds()]
    const counted = runsBelow(folder)
      .flatMap(stepsOf)
      .filter(({ at }) => at > begin && at <= end)
    const sum = (key: "trained" | "generated"): number => counted.reduce((sum, step) => sum + step[key], 0)
    return {
      trainedASecond: sum("trained") / (end - begin),
      generatedASecond: sum("generated") / (end - begin),
      trainedACoreSecond: sum("trained") / (cpuAfter - cpuBefore),
      residentBytes: load.residentBytes(),
      proportionalBytes: load.proportionalBytes(),
      seconds: end - begin,
    }
  }
  try {
    return await Promise.race([measure(), ends.then(() => Promise.reject(new Error("the trainers have ended")))])
  } finally {
    isStopped = true
    for (const child of children) child.kill()
    await ends.catch(() => undefined)
  }
}
