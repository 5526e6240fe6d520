import { spawn } from "node:child_process"
import { readFile, rename, writeFile } from "node:fs/promises"
import { availableParallelism } from "node:os"
import { dirname, join } from "node:path"
import { Effect, Schema } from "effect"
import { oneLine } from "../config/text.ts"
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

interface Finished {
  readonly seed: number
  readonly result: RunResult
  readonly curve: ReadonlyArray<{ readonly step: number; readonly value: number }>
}

interface Failed {
  readonly seed: number
  readonly problem: string
}

type Ended = Finished | Failed

const isFinished = (ended: Ended): ended is Finished => "result" in ended

export const runSeeds = Effect.fnUntraced(function* ({ seeds, jobs, args, report }: SeedsOptions) {
  const time = new Date().toISOString()
  const ended = yield* Effect.forEach(
    seeds,
    (seed) => Effect.tap(trainOne(seed, args, time), (one) => report(lineOf(one))),
    { concurrency: jobs ?? Math.max(1, availableParallelism()) },
  )
  const finished = ended.filter(isFinished)
  const metrics = summarise(ended, finished)
  if (finished.length > 0) {
    const folder = dirname(finished[0].result.runDir)
    yield* Effect.promise(() => writeWhole(join(folder, "metrics.json"), `${JSON.stringify(metrics, null, 2)}\n`))
    yield* report(`${folder}/metrics.json`)
  }
  return { metrics, failed: ended.length - finished.length }
})

/** Whoever reads the file meanwhile sees the old one or the new one. */
const writeWhole = async (path: string, text: string): Promise<void> => {
  await writeFile(`${path}.tmp`, text)
  await rename(`${path}.tmp`, path)
}

const scoreOf = ({ validation, meanReturn }: RunResult): number | null => validation?.meanReturn ?? meanReturn

const lineOf = (ended: Ended): string => {
  if (!isFinished(ended)) return `seed ${ended.seed}: failed: ${ended.problem}`
  const { seed, result } = ended
  const score = scoreOf(result)
  return `seed ${seed}: ${score === null ? "no score" : score.toFixed(1)} after ${result.steps} steps in ${result.wallSeconds.toFixed(1)} s  ${result.runDir}`
}

/** The score is that of the last validation; without any, the mean return of the last episodes. */
const summarise = (ended: ReadonlyArray<Ended>, finished: ReadonlyArray<Finished>) => {
  const scores = finished.map(({ result }) => scoreOf(result)).filter((score) => score !== null)
  const curves = finished.map(({ curve }) => curve)
  return {
    seeds: ended.map((one) => {
      if (!isFinished(one)) return { seed: one.seed, failed: one.problem }
      const { seed, result } = one
      return {
        seed,
        score: scoreOf(result),
        steps: result.steps,
        wall_seconds: result.wallSeconds,
        digest: result.digest,
      }
    }),
    score: scores.length === 0 ? null : aggregate(scores),
    curve: curves.length === 0 ? [] : aggregateCurves(curves),
  }
}

/** One training; that it failed, in whatever way, is a result. */
const trainOne = (seed: number, args: ReadonlyArray<string>, time: string): Effect.Effect<Ended> =>
  Effect.gen(function* () {
    const line = (yield* outputOf(seed, args, time)).trim().split("\n").at(-1) ?? ""
    const result = yield* decodeResult(line)
    const records = yield* Effect.flatMap(
      Effect.tryPromise(() => readFile(join(result.runDir, "return.json"), "utf8")),
      decodeReturnFile,
    )
    return { seed, result, curve: records.map(({ step, returns_mean: value }) => ({ step, value })) }
  }).pipe(Effect.catch((error) => Effect.succeed({ seed, problem: oneLine(error.message) })))

class ChildFailed extends Schema.TaggedError<ChildFailed>()("ChildFailed", { message: Schema.String }) {}

/** What a process of its own says on stdout. An interruption is passed on to it, and waited for: it saves first. */
const outputOf = (seed: number, args: ReadonlyArray<string>, time: string): Effect.Effect<string, ChildFailed> =>
  Effect.callback((resume) => {
    const command = [process.argv[1], "run", ...args, "--seed", String(seed), "--json", "--quiet"]
    const child = spawn(process.execPath, command, {
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...process.env, [timeVariable]: time },
    })
    let stdout = ""
    let stderr = ""
    child.stdout.setEncoding("utf8").on("data", (text: string) => (stdout += text))
    child.stderr.setEncoding("utf8").on("data", (text: string) => (stderr += text))
    const fail = (message: string): void => resume(Effect.fail(new ChildFailed({ message })))
    const closed = new Promise<void>((resolve) => {
      child.once("error", (error) => {
        fail(error.message)
        resolve()
      })
      child.once("close", (code, signal) => {
        if (code === 0) resume(Effect.succeed(stdout))
        else fail(stderr.trim() || (signal === null ? `exit code ${code}` : `ended by ${signal}`))
        resolve()
      })
    })
    return Effect.sync(() => child.kill("SIGINT")).pipe(
      Effect.andThen(Effect.promise(() => closed)),
      // How to go on with it.
      Effect.andThen(Effect.sync(() => void process.stderr.write(stderr))),
    )
  })

const decodeResult = Schema.decodeUnknownEffect(Schema.fromJsonString(RunResult))
