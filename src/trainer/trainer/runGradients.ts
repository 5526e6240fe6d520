/** Computes the gradients of the runs that have tokens in a micro-batch. */
import { Effect } from "effect"
import type { BackendError } from "../../tensor/backend/Backend.ts"
import type { MetricSums } from "../../rl/losses/Losses.ts"
import type { MicroBatch } from "../batches/MicroBatch.ts"
import type { References } from "../reference/references.ts"
import type { GradientProgram } from "./gradientProgram.ts"
import { isolate } from "./isolate.ts"

/** The results of one run in a micro-batch. */
export interface RunGradient {
  /** The index of the run. */
  readonly index: number
  readonly gradient: Float32Array
  readonly loss: number
  /** Sums of metrics over the run's tokens. */
  readonly sums: MetricSums<number>
}

const isFinite = (numbers: Float32Array): boolean => {
  for (let at = 0; at < numbers.length; at++) if (!Number.isFinite(numbers[at])) return false
  return true
}

/**
 * Computes the gradient of each run in a micro-batch. The gradients are valid until the next call. `programOf` returns the
 * program for the objective of a run. Runs with the same program are computed together; but if a result is not finite, each
 * run is computed alone, so that the broken run does not affect the others. `scratch` is a micro-batch of the same shape,
 * which is overwritten. `referencesOf` returns the thread that computes the reference model of a program, if there is one.
 */
export const gradientsOf = Effect.fnUntraced(function* (
  programOf: (run: number) => GradientProgram,
  microBatch: MicroBatch,
  scratch: MicroBatch,
  referencesOf: (program: GradientProgram) => References | undefined = () => undefined,
): Effect.fn.Return<ReadonlyArray<RunGradient>, BackendError> {
  // A rank without samples has a micro-batch that is only padding.
  if (microBatch.sequenceCount === 0) return []
  const resultOf = (program: GradientProgram, index: number): RunGradient => ({
    index,
    gradient: program.gradientOf(index),
    loss: program.lossOf(index),
    sums: program.sumsOf(index),
  })
  const run = Effect.fnUntraced(function* (program: GradientProgram, batch: MicroBatch) {
    yield* program.run(batch, yield* referencesOf(program)?.of(batch) ?? Effect.undefined)
  })
  const runs = Array.from(microBatch.loraNumTokens.keys()).filter((run) => microBatch.loraNumTokens[run] > 0)
  const programs = new Set(runs.map(programOf))
  if (programs.size === 1) {
    const [program] = programs
    yield* run(program, microBatch)
    if (runs.length === 1 || runs.every((index) => isFinite(program.gradientOf(index))))
      return runs.map((index) => resultOf(program, index))
  }
  const alone: Array<RunGradient> = []
  for (const index of runs) {
    const program = programOf(index)
    isolate(microBatch, index, scratch)
    yield* run(program, scratch)
    const result = resultOf(program, index)
    // Copy the gradient: the program overwrites its results when it runs for the next one.
    alone.push({ ...result, gradient: result.gradient.slice() })
  }
  return alone
})

/** Adds the sums of metrics of two micro-batches. */
export const addSums = (a: MetricSums<number>, b: MetricSums<number>): MetricSums<number> => {
  const names = new Set([...Object.keys(a), ...Object.keys(b)])
  const valueIn = (sums: MetricSums<number>, name: string): number => Number(Reflect.get(sums, name) ?? 0)
  return { tokens: 0, ...Object.fromEntries([...names].map((name) => [name, valueIn(a, name) + valueIn(b, name)])) }
}
