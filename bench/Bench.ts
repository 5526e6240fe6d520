/**
 * Defines benchmarks and their timing. Times are medians of many batches, and comparisons alternate between the two sides,
 * because machines are noisy and their speed changes during a measurement.
 *
 * To add one, put a file into `bench/benches/` whose default export is a Bench, or a list of them:
 *
 * ```ts
 * import { defineBench } from "../Bench.ts"
 *
 * export default defineBench({
 *   name: "sum-1000",
 *   unit: "µs",
 *   higherIsBetter: false,
 *   about: "Adding up a thousand floats",
 *   run: async ({ time }) => {
 *     const numbers = new Float32Array(1000)
 *     return { value: time(() => numbers.reduce((a, b) => a + b)).seconds * 1e6 }
 *   },
 * })
 * ```
 */
export interface Bench {
  /** The name of the benchmark. `--only` selects benchmarks by it. */
  readonly name: string
  readonly unit: string
  readonly higherIsBetter: boolean
  /** Describes in one line what is measured. */
  readonly about: string
  readonly run: (context: Context) => Promise<Measurement>
}

export interface Measurement {
  readonly value: number
  /** Further values that the table shows, such as shares, ratios and settings. */
  readonly details?: Readonly<Record<string, number | string>>
}

export interface Timing {
  /** The time of one call in seconds: the median over the batches. */
  readonly seconds: number
  /** The time of one call in seconds, in the fastest batch. */
  readonly best: number
  /** The interquartile range of the batches, as a share of the median. */
  readonly spread: number
  readonly calls: number
}

export interface TimingOptions {
  /** The measurement lasts at least this many seconds; 1 by default. */
  readonly minimumSeconds?: number
}

export interface Ratio {
  /** The median of (time of a) / (time of b). The two batches of a pair are measured one directly after the other. */
  readonly ratio: number
  readonly a: Timing
  readonly b: Timing
}

export interface Context {
  readonly time: (work: () => unknown, options?: TimingOptions) => Timing
  readonly timeAsync: (work: () => Promise<unknown>, options?: TimingOptions) => Promise<Timing>
  /** Measures a and b alternately, one batch each, so that other load on the machine slows both. */
  readonly ratio: (a: () => unknown, b: () => unknown, options?: TimingOptions) => Ratio
}

export const defineBench = (bench: Bench): Bench => bench

/** The length of a batch: long compared with the clock's resolution, and short enough to measure many batches. */
const batchSeconds = 0.005
const fewestBatches = 11

const now = (): number => performance.now() / 1000

/** Keeps results alive, so that the compiler doesn't remove work whose result is unused. */
let sink: unknown

const batch = (work: () => unknown, calls: number): number => {
  const start = now()
  for (let call = 0; call < calls; call++) sink = work()
  return (now() - start) / calls
}

/** Warms up until the code is compiled, and returns the number of calls that fill a batch. */
const callsABatch = (work: () => unknown): number => {
  const until = now() + 0.25
  let calls = 1
  let seconds = batch(work, 1)
  while (now() < until) {
    calls = Math.max(1, Math.min(calls * 4, Math.ceil(batchSeconds / Math.max(seconds, 1e-9))))
    seconds = batch(work, calls)
  }
  return Math.max(1, Math.ceil(batchSeconds / Math.max(seconds, 1e-9)))
}

const quantile = (sorted: ReadonlyArray<number>, share: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))]

const median = (numbers: ReadonlyArray<number>): number => quantile(ascending(numbers), 0.5)

const ascending = (numbers: ReadonlyArray<number>): ReadonlyArray<number> => [...numbers].sort((a, b) => a - b)

const timingOf = (batches: ReadonlyArray<number>, calls: number): Timing => {
  const sorted = ascending(batches)
  const seconds = quantile(sorted, 0.5)
  return {
    seconds,
    best: sorted[0],
    spread: (quantile(sorted, 0.75) - quantile(sorted, 0.25)) / seconds,
    calls: calls * batches.length,
  }
}

const time: Context["time"] = (work, { minimumSeconds = 1 } = {}) => {
  const calls = callsABatch(work)
  const batches: Array<number> = []
  const until = now() + minimumSeconds
  while (now() < until || batches.length < fewestBatches) batches.push(batch(work, calls))
  return timingOf(batches, calls)
}

const timeAsync: Context["timeAsync"] = async (work, { minimumSeconds = 1 } = {}) => {
  const once = async (calls: number): Promise<number> => {
    const start = now()
    for (let call = 0; call < calls; call++) sink = await work()
    return (now() - start) / calls
  }
  const warm = now() + 0.25
  let seconds = await once(1)
  while (now() < warm) seconds = await once(1)
  const calls = Math.max(1, Math.ceil(batchSeconds / Math.max(seconds, 1e-9)))
  const batches: Array<number> = []
  const until = now() + minimumSeconds
  while (now() < until || batches.length < fewestBatches) batches.push(await once(calls))
  return timingOf(batches, calls)
}

const ratio: Context["ratio"] = (a, b, { minimumSeconds = 1 } = {}) => {
  const calls = { a: callsABatch(a), b: callsABatch(b) }
  const batches: { readonly a: Array<number>; readonly b: Array<number> } = { a: [], b: [] }
  const until = now() + minimumSeconds
  while (now() < until || batches.a.length < fewestBatches) {
    batches.a.push(batch(a, calls.a))
    batches.b.push(batch(b, calls.b))
  }
  return {
    ratio: median(batches.a.map((seconds, index) => seconds / batches.b[index])),
    a: timingOf(batches.a, calls.a),
    b: timingOf(batches.b, calls.b),
  }
}

export const context: Context = { time, timeAsync, ratio }

/** Returns the last result. Nobody calls it, but the compiler cannot know that. */
export const lastResult = (): unknown => sink
