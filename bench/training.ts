/** Measures whole training runs and the time of their parts, for the benchmarks that train an agent. */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, Layer, Record } from "effect"
import { Backend, type Program, type RunResult, Train } from "effect-rl"
import { backend, type BackendName, recorder, runStore } from "effect-rl/node"
import type { Measurement } from "./Bench.ts"

/** Measures a whole training, including the files that it writes, and the share of time that each part takes. */

type Training = Parameters<typeof Train.run>[0]

/** Wraps a backend so that it adds up the seconds spent in each compiled program, by the program's name. */
const timed = (inner: Backend["Service"], seconds: Map<string, number>): Backend["Service"] => {
  const timedProgram = (program: Program): Program => {
    const { runSync } = program
    if (runSync === undefined) return program
    const key = `${program.name} on ${program.device}`
    const timedRun = (): void => {
      const start = performance.now()
      runSync()
      seconds.set(key, (seconds.get(key) ?? 0) + (performance.now() - start) / 1000)
    }
    return { ...program, runSync: timedRun, run: Effect.sync(timedRun) }
  }
  return {
    name: inner.name,
    compile: (spec) => Effect.map(inner.compile(spec), timedProgram),
    compileAll: (specs, options) => Effect.map(inner.compileAll(specs, options), Record.map(timedProgram)),
  }
}

/** Trains once, with the files of a run in a temporary folder. If `seconds` is given, it gets the time of each program. */
export const trainOnce = async (
  training: Training,
  name: BackendName,
  seconds?: Map<string, number>,
): Promise<RunResult> => {
  const folder = mkdtempSync(join(tmpdir(), "effect-rl-bench-"))
  const compute =
    seconds === undefined
      ? backend(name)
      : Layer.effect(
          Backend,
          Effect.map(Backend, (inner) => timed(inner, seconds)),
        ).pipe(Layer.provide(backend(name)))
  try {
    return await Effect.runPromise(
      Train.run(training).pipe(Effect.provide(Layer.mergeAll(compute, runStore({ resultsDir: folder }), recorder()))),
    )
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Measures the env steps per second of a training from start to end, including compilation and recording. */
export const measureTraining = async (
  training: Training,
  name: BackendName = "auto",
  repeats = 3,
): Promise<Measurement> => {
  const results: Array<RunResult> = []
  for (let repeat = 0; repeat < repeats; repeat++) results.push(await trainOnce(training, name))
  const speeds = results.map((result) => result.stepsPerSecond).sort((a, b) => a - b)
  const seconds = new Map<string, number>()
  const profiled = await trainOnce(training, name, seconds)
  const shares = [...seconds].map(
    ([key, spent]) => [`${key} %`, Math.round((100 * spent) / profiled.wallSeconds)] as const,
  )
  const rest = 100 - shares.reduce((sum, [, share]) => sum + share, 0)
  const { meanReturn } = results[0]
  return {
    value: speeds[Math.floor(speeds.length / 2)],
    details: {
      ...Object.fromEntries(shares),
      "the rest %": rest,
      "mean return": meanReturn ?? "none",
      "peak MB": Math.round(process.resourceUsage().maxRSS / 1024),
    },
  }
}
