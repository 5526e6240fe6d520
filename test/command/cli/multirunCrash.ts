import { createHash } from "node:crypto"
import { existsSync, mkdirSync, readdirSync, readFileSync } from "node:fs"
import { basename, join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { stringify } from "yaml"
import { type Plain, toSnakeCase } from "../../../src/base/config/Config.ts"
import { decode as decodeEvents } from "../../../src/base/formats/tfevents.ts"
import * as Layout from "../../../src/trainer/Layout.ts"
import { stream } from "../../../src/base/rng/Rng.ts"
import * as RunLayout from "../../../src/run/Layout.ts"
import { configOf, runConfig, validated } from "../../trainer/smallTraining.ts"
import { runsIn } from "./crash.ts"
import { effect, resultOf, root, start, type Started, write } from "./effect.ts"
import { filesIn, linesOf, timeless } from "./experiment.ts"

/** A multi-run trainer whose processes are killed at random moments, and what it leaves. */

/** The process to kill: the trainer, one of its other ranks, or a process beside it that plays or answers. */
export type Victim = "trainer" | "rank" | "orchestrator" | "server"

/** A training that was killed and resumed until it was finished. */
export interface Campaign {
  /** How often each process was killed. */
  readonly kills: ReadonlyMap<Victim, number>
  readonly digest: string
  /** The content of all files that two equal trainings must share, by path. */
  readonly left: Readonly<Record<string, unknown>>
}

export interface CampaignOptions {
  readonly seed: number
  readonly kills: number
  readonly victims: ReadonlyArray<Victim>
  readonly config: Plain
}

interface TwoRuns {
  readonly trainer?: Plain
  readonly orchestrators?: "inside" | "outside"
}

/**
 * The config of two runs of different lengths, which imitate for two steps and then play in step with the trainer. `steps` must
 * be odd. A trainer that loses a rank saves its runs, also at steps without a checkpoint otherwise. With an odd number, the last
 * two checkpoints of each run are of neighbouring steps, so no other one is kept.
 */
export const twoRuns = (steps: number, { trainer = {}, ...more }: TwoRuns = {}): Plain => {
  if (steps % 2 === 0) throw new Error(`twoRuns: expected an odd number of steps, found ${steps}`)
  const run = (seed: number, every: number, more: Plain) =>
    runConfig(seed, {
      ...validated,
      supervised: { steps: 2, lr: 0.02 },
      checkpoint: { every, keep: 2 },
      transcripts: { every: 2, groups: 1 },
      ...more,
    })
  return {
    ...configOf(
      {
        a: run(1, 2, { max_steps: steps, weights: { every: 5 } }),
        b: run(2, 1, { max_steps: Math.ceil((2 * steps) / 3) }),
      },
      { trainer },
    ),
    // A server can still read the broadcast before the newest.
    broadcast: { keep: 2 },
    ...more,
  }
}

/** Files that tell of the process, or say what other files have said. */
const ofTheProcess: ReadonlySet<string> = new Set([
  "run.lease",
  RunLayout.log,
  RunLayout.system,
  RunLayout.config,
  RunLayout.configJson,
  "manifest.json",
  "latest",
  basename(Layout.token),
])

/** The whole trainer's own curves, which tell how fast it worked. */
const ofTheTrainer: ReadonlySet<string> = new Set([RunLayout.tensorBoard, RunLayout.progressCsv])

const curvesIn = (file: string) =>
  decodeEvents(readFileSync(file)).events.map(({ step, scalars }) => ({ step, scalars }))

/** Returns the content of each file in a trainer's folder, as far as it depends on neither the clock nor the folder. */
export const leftBy = (directory: string): Readonly<Record<string, unknown>> => {
  const textOf = (path: string): string => readFileSync(join(directory, path), "utf8").replaceAll(directory, "RUN")
  const contentOf = (path: string): unknown => {
    const file = join(directory, path)
    if (path.endsWith(".tfevents")) return curvesIn(file)
    if (path.endsWith(".jsonl")) return linesOf(file).map(timeless)
    if (path.endsWith(".json")) return timeless(toSnakeCase(JSON.parse(textOf(path))))
    if (path.endsWith(".safetensors")) return createHash("sha256").update(readFileSync(file)).digest("hex")
    return textOf(path)
  }
  return Object.fromEntries(
    filesIn(directory)
      .filter((path) => !ofTheProcess.has(basename(path)) && !ofTheTrainer.has(path))
      .map((path) => [path, contentOf(path)]),
  )
}

/** Counts the steps whose samples exist, and adds those of the newest checkpoints. */
const progressOf = (directory: string): number => {
  const stepsIn = (folder: string): ReadonlyArray<number> =>
    existsSync(folder) ? readdirSync(folder).flatMap((name) => Layout.stepOf(name) ?? []) : []
  return readdirSync(directory)
    .filter(Layout.isRunName)
    .map((run) => join(directory, run))
    .reduce(
      (sum, run) =>
        sum + stepsIn(join(run, Layout.rollouts)).length + Math.max(0, ...stepsIn(join(run, Layout.checkpoints))),
      0,
    )
}

/** Returns the processes that a process has started. */
const childrenOf = (pid: number | undefined): ReadonlyArray<number> => {
  try {
    return readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").split(" ").filter(Boolean).map(Number)
  } catch {
    return [] // It has ended.
  }
}

const argumentsOf = (file: string, results: string): ReadonlyArray<string> =>
  ["run", file, "--results-dir", results, "--backend", "wasm"].concat("--csv", "--json", "--quiet")

/** Trains without a kill. */
export const uninterrupted = async (within: string, config: Plain): Promise<Omit<Campaign, "kills">> => {
  const file = write(within, "whole.yaml", stringify(config))
  const outcome = await effect(argumentsOf(file, join(within, "whole")), root)
  if (outcome.code !== 0) throw new Error(outcome.stderr)
  const { digest, runDir } = resultOf(outcome)
  return { digest, left: leftBy(runDir) }
}

/**
 * Starts a training and kills one of its processes at a random moment, again and again, until there were enough kills or
 * the training has ended; a killed trainer is resumed.
 */
export const killed = async (within: string, { seed, kills, victims, config }: CampaignOptions): Promise<Campaign> => {
  const folder = join(within, `killed-${seed}`)
  mkdirSync(folder)
  const random = stream(seed, "prove", "multirun")
  const file = write(folder, "killed.yaml", stringify(config))
  const results = join(folder, "results")
  const counts = new Map<Victim, number>()
  let isOver = false
  const train = (): Started => {
    const [directory] = runsIn(results)
    const resume = directory === undefined ? [] : ["--resume", directory]
    const started = start([...argumentsOf(file, results), ...resume])
    void started.ended.then(({ signal }) => void (isOver ||= signal !== "SIGKILL"))
    return started
  }
  const progress = (): number => runsIn(results).reduce((sum, directory) => sum + progressOf(directory), 0)
  /** Waits for some progress and then some milliseconds, or, while the trainer starts, for some milliseconds alone. */
  const randomMoment = async (victim: Victim): Promise<void> => {
    const isEarly = victim !== "rank" && random.uniform() < 0.2
    const wanted = isEarly ? 0 : progress() + 1 + random.integer(6)
    while (!isOver && progress() < wanted) await sleep(3)
    await sleep(random.uniform() * (isEarly ? 2000 : 100))
  }
  let trainer = train()
  const beside = victims.some((victim) => victim === "orchestrator" || victim === "server")
  const helpers = beside ? await startBeside(() => runsIn(results)[0]) : undefined
  const kill = async (victim: Victim): Promise<boolean> => {
    if (victim === "orchestrator" || victim === "server") {
      await helpers?.[victim].restart()
      return !isOver
    }
    if (victim === "trainer") {
      trainer.child.kill("SIGKILL")
      await trainer.ended
      if (isOver) return false
      trainer = train()
      return true
    }
    let ranks = childrenOf(trainer.child.pid)
    while (!isOver && ranks.length === 0) {
      await sleep(3)
      ranks = childrenOf(trainer.child.pid)
    }
    if (isOver) return false
    process.kill(ranks[random.integer(ranks.length)], "SIGKILL")
    return true
  }
  try {
    for (let count = 0; count < kills; count++) {
      const victim = victims[random.integer(victims.length)]
      await randomMoment(victim)
      if (!(await kill(victim))) break
      counts.set(victim, (counts.get(victim) ?? 0) + 1)
    }
    const outcome = await trainer.ended
    if (outcome.code !== 0) throw new Error(`${outcome.stderr}\n${[...counts].join(" ")}`)
    const player = await helpers?.orchestrator.started().ended
    if (player !== undefined && player.code !== 0) throw new Error(player.stderr)
    const { digest, runDir } = resultOf(outcome)
    return { kills: counts, digest, left: leftBy(runDir) }
  } finally {
    await Promise.all([stopped(trainer), helpers?.stop()])
  }
}

const stopped = async ({ child, ended }: Started): Promise<void> => {
  child.kill("SIGKILL")
  await ended
}

/** Keeps a process that can be killed and started again. */
const restartable = async (begin: () => Promise<Started>) => {
  let current = await begin()
  return {
    started: () => current,
    restart: async (): Promise<void> => {
      await stopped(current)
      current = await begin()
    },
  }
}

/** Starts an inference server and an orchestrator for the trainer in a folder, as soon as the folder exists. */
const startBeside = async (folder: () => string | undefined) => {
  let directory = folder()
  for (; directory === undefined; directory = folder()) await sleep(3)
  const trainer = directory
  let port = "0"
  const server = await restartable(async () => {
    const started = start(["serve", trainer, "--port", port, "--backend", "wasm", "--json"])
    const line = await new Promise<string>((resolve) => {
      started.child.stdout?.once("data", (data) => resolve(String(data)))
      void started.ended.then(({ stderr }) => resolve(stderr))
    })
    const found = /:(\d+)\/v1/.exec(line)?.[1]
    if (found === undefined) throw new Error(line)
    port = found
    return started
  })
  const orchestrator = await restartable(async () =>
    start(["orchestrate", trainer, "--server", `http://127.0.0.1:${port}`, "--json", "--quiet"]),
  )
  const stop = () => Promise.all([server, orchestrator].map(({ started }) => stopped(started())))
  return { server, orchestrator, stop }
}

/** Returns the paths of the files that differ, or that only one of two trainings left. */
export const differences = (
  one: Readonly<Record<string, unknown>>,
  other: Readonly<Record<string, unknown>>,
): ReadonlyArray<string> =>
  [...new Set([...Object.keys(one), ...Object.keys(other)])].filter(
    (path) => JSON.stringify(one[path]) !== JSON.stringify(other[path]),
  )
