import { spawn } from "node:child_process"
import { readFile, rename, writeFile } from "node:fs/promises"
import { availableParallelism } from "node:os"
import { dirname, join } from "node:path"
import { Effect, Schema } from "effect"
import { decodeReturnFile } from "../experiment/evaluation.ts"
import { aggregate, aggregateCurves } from "../experiment/statistics.ts"
import { RunResult } from "../train/RunResult.ts"
import { UsageError } from "./UsageError.ts"

/** The same training with several seeds: each in a process of its own, as many at a time as there are cores for. */

/** `1..10`, `1,2,5`, or a mixture. */
export const parseSeeds = (text: string): Effect.Effect<ReadonlyArray<number>, UsageError> => {
  const seeds = text.split(",").flatMap((part) => {
    const [, from, to = from] = /^(\d+)(?:\.\.(\d+))?$/.exec(part.trim()) ?? []
    const length = Number(to) - Number(from) + 1
    return from === undefined || !(length >= 1 && length <= 10_000)
      ? [undefined]
      : Array.from({ length }, (_, index) => Number(from) + index)
  })
  const known = seeds.filter((seed) => seed !== undefined)
  const isFine = known.length === seeds.length && new Set(known).size === known.length
  return isFine
    ? Effect.succeed(known)
    : Effect.fail(
        new UsageError({ message: `--seeds ${text}: expected seeds like 1..10 or 1,2,5, none of them twice` }),
      )
}

export interface SeedsOptions {
  readonly seeds: ReadonlyArray<number>
  readonly jobs: number | undefined
  /** The command that trains with one seed, but for that. */
  readonly args: ReadonlyArray<string>
  readonly report: (line: string) => Effect.Effect<void>
}

/** Where the folders of runs that belong together get their common time from. */
export const timeVariable = "EFFECT_RL_TIME"

interface Ended {
  readonly seed: number
  readonly result?: RunResult
  readonly problem?: string
}

export const runSeeds = Effect.fnUntraced(function* ({ seeds, jobs, args, report }: SeedsOptions) {
  const time = new Date().toISOString()
  const ended = yield* Effect.forEach(
    seeds,
    (seed) => Effect.tap(trainOne(seed, args, time), (one) => report(lineOf(one))),
    { concurrency: jobs ?? Math.max(1, availableParallelism()) },
  )
  const finished = ended.flatMap(({ result }) => (result === undefined ? [] : [result]))
  const failed = ended.filter(({ result }) => result === undefined)
  const metrics = yield* summarise(ended, finished)
  if (finished.length > 0) {
    const folder = dirname(finished[0].runDir)
    yield* Effect.promise(() => writeWhole(join(folder, "metrics.json"), `${JSON.stringify(metrics, null, 2)}\n`))
    yield* report(`${folder}/metrics.json`)
  }
  return { metrics, failed: failed.length }
})

/** Whoever reads the file meanwhile sees the old one or the new one. */
const writeWhole = async (path: string, text: string): Promise<void> => {
  await writeFile(`${path}.tmp`, text)
  await rename(`${path}.tmp`, path)
}

const scoreOf = ({ validation, meanReturn }: RunResult): number | null => validation?.meanReturn ?? meanReturn

const lineOf = ({ seed, result, problem }: Ended): string => {
  if (result === undefined) return `seed ${seed}: failed: ${problem ?? ""}`
  const score = scoreOf(result)
  return `seed ${seed}: ${score === null ? "no score" : score.toFixed(1)} after ${result.steps} steps in ${result.wallSeconds.toFixed(1)} s  ${result.runDir}`
}

/** The score is that of the last validation; without any, the mean return of the last episodes. */
const summarise = Effect.fnUntraced(function* (ended: ReadonlyArray<Ended>, finished: ReadonlyArray<RunResult>) {
  const scores = finished.map(scoreOf).filter((score) => score !== null)
  const curves = yield* Effect.forEach(finished, ({ runDir }) =>
    Effect.promise(() => readFile(join(runDir, "return.json"), "utf8")).pipe(
      Effect.flatMap(decodeReturnFile),
      Effect.map((records) => records.map(({ step, returns_mean: value }) => ({ step, value }))),
      Effect.orDie,
    ),
  )
  return {
    seeds: ended.map(({ seed, result, problem }) => ({
      seed,
      ...(result === undefined
        ? { failed: problem ?? "" }
        : { score: scoreOf(result), steps: result.steps, wall_seconds: result.wallSeconds, digest: result.digest }),
    })),
    score: scores.length === 0 ? null : aggregate(scores),
    curve: curves.length === 0 ? [] : aggregateCurves(curves),
  }
})

/** One training; that it failed is a result. An interruption is passed on, and waited for: it saves first. */
const trainOne = (seed: number, args: ReadonlyArray<string>, time: string): Effect.Effect<Ended> =>
  Effect.callback((resume) => {
    const child = spawn(
      process.execPath,
      [process.argv[1], "run", ...args, "--seed", String(seed), "--json", "--quiet"],
      {
        stdio: ["ignore", "pipe", "pipe"],
        env: { ...process.env, [timeVariable]: time },
      },
    )
    let stdout = ""
    let stderr = ""
    child.stdout.on("data", (chunk) => (stdout += String(chunk)))
    child.stderr.on("data", (chunk) => (stderr += String(chunk)))
    const closed = new Promise<void>((resolve) => child.on("close", () => resolve()))
    child.on("close", (code) => {
      if (code === 0) {
        const line = stdout.trim().split("\n").at(-1) ?? ""
        resume(Effect.map(Effect.orDie(decodeResult(line)), (result) => ({ seed, result })))
      } else {
        resume(Effect.succeed({ seed, problem: stderr.trim().replace(/\s*\n\s*/g, "; ") || `exit code ${code}` }))
      }
    })
    return Effect.andThen(
      Effect.sync(() => child.kill("SIGINT")),
      Effect.promise(() => closed),
    )
  })

const decodeResult = Schema.decodeUnknownEffect(Schema.fromJsonString(RunResult))
