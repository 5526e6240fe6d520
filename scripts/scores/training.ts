/** Trains the rows of docs/scores.md by `effect run`, and by Stable-Baselines3, and makes a result of each finished training. */
import { execFileSync, spawn } from "node:child_process"
import { existsSync, globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { availableParallelism, cpus, tmpdir } from "node:os"
import { basename, dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { Schema } from "effect"
import { isPlain, type Plain } from "../../src/base/config/Config.ts"
import { canonical } from "../../src/base/text/canonical.ts"
import { jsonText } from "../../src/base/text/jsonText.ts"
import { nameOf, type Row } from "./rows.ts"
import { evaluationEpisodes, readSettings, resultOf, writeResult, writeSettings } from "./ScoreResult.ts"

const root = fileURLToPath(new URL("../../", import.meta.url))

const machine = `${cpus()[0]?.model.trim() ?? "unknown"}, ${availableParallelism()} cores`

const presetOf = (row: Row): string => `examples/presets/${nameOf(row)}.yaml`

/** The settings of a training that the row decides; the preset has the others. */
const rowWords = (row: Row): ReadonlyArray<string> => [
  "--total-steps",
  String(row.steps),
  "--set",
  `validation.every_steps=${row.steps}`,
  "--set",
  `validation.episodes=${evaluationEpisodes}`,
]

/** Returns the command with which a reader can repeat a training. */
const commandOf = (row: Row, seed: number): string =>
  `npx effect run --preset ${nameOf(row)} ${rowWords(row).join(" ")} --seed ${seed}`

// --- What a finished run has in its folder ---

const json = <A>(schema: Schema.Codec<A, unknown>, file: string): A =>
  Schema.decodeUnknownSync(jsonText(schema))(readFileSync(file, "utf8"))

const lines = <A>(schema: Schema.Codec<A, unknown>, file: string): ReadonlyArray<A> =>
  readFileSync(file, "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => Schema.decodeUnknownSync(jsonText(schema))(line))

const Metrics = Schema.Struct({ steps: Schema.Int, wall_seconds: Schema.Finite, digest: Schema.String })
const Commit = Schema.Struct({ commit: Schema.String })
const ScoreLine = Schema.Struct({ step_index: Schema.Int, score: Schema.Finite })
const SystemLine = Schema.Struct({ timestamp: Schema.String, seconds: Schema.Finite, cpu: Schema.Finite })

/** Adds up the CPU seconds of a run: each line has the use of cores since the line before, or since the run went on. */
const cpuSecondsOf = (samples: ReadonlyArray<typeof SystemLine.Type>): number =>
  samples.reduce((sum, { seconds, cpu }, index) => {
    const before = index === 0 ? 0 : samples[index - 1].seconds
    return sum + cpu * (seconds >= before ? seconds - before : seconds)
  }, 0)

/** The settings that differ between the seeds of a row, or that results don't depend on. */
const leftOut = new Set(["seed", "name", "description", "workers", "checkpoint"])

/** Returns the settings of a run that its results depend on, without its seed. */
const settingsIn = (run: string): Plain => {
  const config: unknown = JSON.parse(readFileSync(join(run, "config.json"), "utf8"))
  if (!isPlain(config)) throw new Error(`${run}/config.json: expected an object`)
  return Object.fromEntries(Object.entries(config).filter(([key]) => !leftOut.has(key)))
}

/** Tells whether files differ from the commit, besides those of docs/, into which results are written. */
const hasChanges = (): boolean =>
  execFileSync("git", ["status", "--porcelain", "--", ".", ":!docs"], { cwd: root, encoding: "utf8" }).trim() !== ""

/** Makes the result of a finished run. Throws if its settings differ from those of the row's other seeds. */
const resultIn = (run: string, row: Row, seed: number, results: string) => {
  const metrics = json(Metrics, join(run, "metrics.json"))
  const { commit } = json(Commit, join(run, "git.json"))
  const settings = settingsIn(run)
  const earlier = readSettings(results, row)
  if (earlier !== undefined && canonical(earlier) !== canonical(settings))
    throw new Error(
      `${nameOf(row)}: seed ${seed} has other settings than the results that are there; delete ${join(results, "effect-rl", nameOf(row))} to begin the row again`,
    )
  const scores = globSync(join(run, "scores/val/*.jsonl"))
  if (scores.length !== 1) throw new Error(`${run}: expected one validation, found ${scores.length}`)
  const episodes = lines(ScoreLine, join(run, "scores/train/scores.jsonl"))
  const facts = {
    trainer: "effect-rl",
    algorithm: row.algorithm,
    env: row.env,
    seed,
    steps: metrics.steps,
    seconds: metrics.wall_seconds,
    cpu_seconds: Number(cpuSecondsOf(lines(SystemLine, join(run, "system.jsonl"))).toFixed(1)),
    machine,
    command: commandOf(row, seed),
    version: hasChanges() ? `${commit} with changes` : commit,
    digest: metrics.digest,
  } as const
  const ended = episodes.map(({ step_index: step, score: value }) => ({ step, value }))
  return {
    settings,
    result: resultOf(
      facts,
      ended,
      lines(ScoreLine, scores[0]).map(({ score }) => score),
    ),
  }
}

/** Makes results of the runs of a row that are finished and have none yet; returns their seeds. */
export const collect = (
  row: Row,
  results: string,
  work: string,
  wanted: ReadonlyArray<number>,
): ReadonlyArray<number> =>
  globSync(join(work, nameOf(row), "*/*/*/*/return.json")).flatMap((file) => {
    const run = dirname(file)
    const seed = Number(basename(run))
    if (!wanted.includes(seed)) return []
    const { settings, result } = resultIn(run, row, seed, results)
    writeSettings(results, row, settings)
    writeResult(results, result)
    return [seed]
  })

// --- Processes ---

/** Ends the process that is under way; undefined between two. */
let stopChild: (() => void) | undefined
let stopped = false

/** Lets Ctrl-C and a termination stop the training that is under way, which saves itself, and nothing more is started. */
export const stopBySignals = (): void => {
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    process.on(signal, () => {
      stopped = true
      if (stopChild === undefined) process.exit(130)
      stopChild()
    })
  }
}

export const isStopped = (): boolean => stopped

/** Runs a program, whose messages go to the terminal, and returns its exit code. */
const exitCode = (program: string, words: ReadonlyArray<string>): Promise<number> =>
  new Promise((resolve, reject) => {
    const child = spawn(program, words, { cwd: root, stdio: ["ignore", "ignore", "inherit"] })
    stopChild = () => void child.kill("SIGINT")
    child.once("error", reject)
    child.once("close", (code) => {
      stopChild = undefined
      resolve(code ?? 1)
    })
  })

/** The options with which `npm run scores` trains. */
export interface TrainingOptions {
  readonly results: string
  /** The folder of the runs, with their checkpoints. */
  readonly work: string
  readonly jobs: number
  readonly cluster: string | undefined
  readonly python: string
}

/**
 * Trains these seeds of a row by a sweep, or resumes the sweep that was interrupted. Throws if one of them fails.
 */
export const train = async (row: Row, seeds: ReadonlyArray<number>, options: TrainingOptions): Promise<void> => {
  const { results, work, jobs, cluster } = options
  if (!existsSync(join(root, presetOf(row)))) throw new Error(`${nameOf(row)}: there is no file ${presetOf(row)}`)
  const folder = join(work, nameOf(row))
  const begun = globSync(join(folder, "*/*/*/*/config.yaml")).map((file) => Number(basename(dirname(file))))
  const command = (resumes: boolean, some: ReadonlyArray<number>) => [
    join(root, "bin/effect.js"),
    "run",
    presetOf(row),
    ...rowWords(row),
    "--seeds",
    some.join(","),
    "--jobs",
    String(jobs),
    "--results-dir",
    folder,
    "--quiet",
    ...(cluster === undefined ? [] : ["--cluster", cluster]),
    ...(resumes ? ["--resume", "latest"] : []),
  ]
  const code = await exitCode(
    process.execPath,
    command(
      seeds.some((seed) => begun.includes(seed)),
      seeds,
    ),
  )
  const finished = collect(row, results, work, seeds)
  if (code !== 0 && !stopped && finished.length < seeds.length)
    throw new Error(`${nameOf(row)}: the training failed; its folder is ${folder}`)
}

const Outcome = Schema.Struct({
  version: Schema.String,
  steps: Schema.Int,
  seconds: Schema.Finite,
  cpu_seconds: Schema.Finite,
  training: Schema.Array(Schema.Tuple([Schema.Int, Schema.Finite])),
  evaluation: Schema.Array(Schema.Finite),
})

/** Trains a seed of a row by Stable-Baselines3 with the settings that the row's own trainings had. */
export const trainPeer = async (row: Row, seed: number, { results, python }: TrainingOptions): Promise<void> => {
  const settings = readSettings(results, row)
  if (settings === undefined)
    throw new Error(
      `${nameOf(row)}: Stable-Baselines3 gets the settings of the row's own trainings, of which none has finished`,
    )
  const folder = mkdtempSync(join(tmpdir(), "effect-rl-scores-"))
  try {
    const [task, out] = ["task.json", "outcome.json"].map((name) => join(folder, name))
    writeFileSync(
      task,
      JSON.stringify({ settings, env: row.env, seed, steps: row.steps, episodes: evaluationEpisodes, out }),
    )
    const code = await exitCode(python, [join(root, "scripts/scores/sb3.py"), task])
    if (stopped) return
    if (code !== 0) throw new Error(`${nameOf(row)}: Stable-Baselines3 did not train; the message above says why`)
    const { version, training, evaluation, ...measured } = json(Outcome, out)
    const facts = {
      trainer: "stable-baselines3",
      algorithm: row.algorithm,
      env: row.env,
      seed,
      machine,
      command: `npm run scores -- --only ${nameOf(row)} --python ${basename(python)}`,
      version,
      digest: null,
      ...measured,
    } as const
    writeResult(
      results,
      resultOf(
        facts,
        training.map(([step, value]) => ({ step, value })),
        evaluation,
      ),
    )
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
