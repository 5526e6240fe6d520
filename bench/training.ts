/** Measures whole training runs and the time of their parts, for the benchmarks that train an agent. */
import { Effect, Layer, Record } from "effect"
import { Backend, type Program, type RunResult, Train } from "effect-rl"
import { backend, type BackendName, recorder, runStore } from "effect-rl/node"
import { multiplyAddsOf } from "../src/tensor/backend/auto.ts"
import type { ProgramSpec } from "../src/tensor/graph/Program.ts"
import { topologicalOrder } from "../src/tensor/graph/Tensor.ts"
import { rootsOf } from "../src/tensor/graph/validate.ts"
import type { Measurement } from "./Bench.ts"
import { chosenBackend } from "./chosenBackend.ts"
import { gigaflops } from "./limit.ts"
import { temporaryFolder } from "./measuring.ts"

/** Measures a whole training, including the files that it writes, and the share of time that each part takes. */

type Training = Parameters<typeof Train.run>[0]

/** Counts the seconds that each program of a training ran, by its name, and the operations of the products of all programs. */
interface Profile {
  readonly seconds: Map<string, number>
  operations: number
}

/** Counts the floating-point operations of the products in a graph: a multiplication and an addition each. */
const operationsOf = (spec: ProgramSpec): number =>
  topologicalOrder(rootsOf(spec)).reduce((sum, tensor) => sum + 2 * multiplyAddsOf(tensor), 0)

/** Wraps a backend so that each run of a compiled program adds to the profile. */
const profiled = (inner: Backend["Service"], profile: Profile): Backend["Service"] => {
  const { seconds } = profile
  const wrapped = (program: Program, spec: ProgramSpec): Program => {
    const { runSync } = program
    if (runSync === undefined) return program
    const key = `${program.name} on ${program.device}`
    const operations = operationsOf(spec)
    const timedRun = (): void => {
      const start = performance.now()
      runSync()
      seconds.set(key, (seconds.get(key) ?? 0) + (performance.now() - start) / 1000)
      profile.operations += operations * program.iterations()
    }
    return { ...program, runSync: timedRun, run: Effect.sync(timedRun) }
  }
  return {
    name: inner.name,
    compile: (spec) => Effect.map(inner.compile(spec), (program) => wrapped(program, spec)),
    compileAll: (specs, options) =>
      Effect.map(
        inner.compileAll(specs, options),
        Record.map((program, name) => wrapped(program, specs[name])),
      ),
  }
}

/** Trains once, with the files of a run in a temporary folder. If `profile` is given, it gets the time of each program. */
export const trainOnce = async (training: Training, name: BackendName, profile?: Profile): Promise<RunResult> => {
  const { folder, remove } = temporaryFolder()
  const compute =
    profile === undefined
      ? backend(name)
      : Layer.effect(
          Backend,
          Effect.map(Backend, (inner) => profiled(inner, profile)),
        ).pipe(Layer.provide(backend(name)))
  try {
    return await Effect.runPromise(
      Train.run(training).pipe(Effect.provide(Layer.mergeAll(compute, runStore({ resultsDir: folder }), recorder()))),
    )
  } finally {
    remove()
  }
}

/** Measures the env steps per second of a training from start to end, including compilation and recording. */
export const measureTraining = async (training: Training, repeats = 3): Promise<Measurement> => {
  const name = chosenBackend("auto")
  const results: Array<RunResult> = []
  for (let repeat = 0; repeat < repeats; repeat++) results.push(await trainOnce(training, name))
  // A run's own `stepsPerSecond` does not count the time in which it compiles.
  const speeds = results.map(({ steps, wallSeconds }) => steps / wallSeconds).sort((a, b) => a - b)
  const profile: Profile = { seconds: new Map(), operations: 0 }
  const { steps, wallSeconds } = await trainOnce(training, name, profile)
  const shares = [...profile.seconds].map(
    ([key, spent]) => [`${key} %`, Math.round((100 * spent) / wallSeconds)] as const,
  )
  const rest = 100 - shares.reduce((sum, [, share]) => sum + share, 0)
  const { meanReturn } = results[0]
  const value = speeds[Math.floor(speeds.length / 2)]
  return {
    value,
    details: {
      [gigaflops]: ((profile.operations / steps) * value) / 1e9,
      ...Object.fromEntries(shares),
      "the rest %": rest,
      "mean return": meanReturn ?? "none",
      "peak MB": Math.round(process.resourceUsage().maxRSS / 1024),
    },
  }
}
