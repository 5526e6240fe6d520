/** Measures how long each function of the WebAssembly modules ran, by the profiler of V8. */
import { type Profiler, Session } from "node:inspector/promises"
import type { Measurement } from "./Bench.ts"

/** The environment variable that makes the process of a benchmark show its kernels. */
export const kernelsVariable = "EFFECT_RL_BENCH_KERNELS"

const intervalMicroseconds = 100

/** Runs a benchmark; the details of the measurement are the seconds that the slowest kernels took. */
export const withKernels = async (run: () => Promise<Measurement>): Promise<Measurement> => {
  const session = new Session()
  session.connect()
  await session.post("Profiler.enable")
  await session.post("Profiler.setSamplingInterval", { interval: intervalMicroseconds })
  await session.post("Profiler.start")
  const { value } = await run()
  const { profile } = await session.post("Profiler.stop")
  session.disconnect()
  return { value, details: slowest(profile, 30) }
}

/** Adds up the time of the samples by the names of functions: the kernels, and all other code as one. */
const slowest = (
  { nodes, samples = [], timeDeltas = [] }: Profiler.Profile,
  most: number,
): Readonly<Record<string, number>> => {
  const names = new Map(
    nodes.map(({ callFrame: { functionName, url }, id }) => [id, url.startsWith("wasm:") ? functionName : ""]),
  )
  const microseconds = new Map<string, number>()
  samples.forEach((id, i) => {
    // A sample's function ran until the next sample.
    const name = names.get(id) || "all other code"
    microseconds.set(name, (microseconds.get(name) ?? 0) + (timeDeltas[i + 1] ?? 0))
  })
  const sorted = [...microseconds].toSorted(([, a], [, b]) => b - a).slice(0, most)
  return Object.fromEntries(sorted.map(([name, time]) => [`\n  ${name}: s`, time / 1e6]))
}
