/** Computes the gradients of the runs whose tokens are in a micro-batch. */
import { Effect } from "effect"
import type { BackendError } from "../../backend/Backend.ts"
import type { MetricSums } from "../../losses/Losses.ts"
import type { MicroBatch } from "../batches/MicroBatch.ts"
import type { GradientProgram } from "./gradientProgram.ts"
import { isolate } from "./isolate.ts"

/** The results of a micro-batch for one of its runs. */
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
 * Computes the gradients of a micro-batch, a copy for each run in it. `programOf` returns the program for the objective
 * of a run. Runs with the same program are computed together; but if the numbers of one are not finite, each is computed
 * alone, so that such a run does not spoil the others. `scratch` is a micro-batch of the same shape, which is overwritten.
 *
 * @example
 * ```ts
 * for (const { index, gradient } of yield* gradientsOf(() => program, turn.microBatch, scratch))
 *   optimizer.accumulate({ index, generation }, gradient)
 * ```
 */
export const gradientsOf = Effect.fnUntraced(function* (
  programOf: (run: number) => GradientProgram,
  microBatch: MicroBatch,
  scratch: MicroBatch,
): Effect.fn.Return<ReadonlyArray<RunGradient>, BackendError> {
  // A rank without work has a micro-batch of padding only.
  if (microBatch.sequenceCount === 0) return []
  const resultOf = (program: GradientProgram, index: number): RunGradient => ({
    index,
    gradient: program.gradientOf(index).slice(),
    loss: program.lossOf(index),
    sums: program.sumsOf(index),
  })
  const runs = Array.from(microBatch.loraNumTokens.keys()).filter((run) => microBatch.loraNumTokens[run] > 0)
  const programs = new Set(runs.map(programOf))
  if (programs.size === 1) {
    const [program] = programs
    yield* program.run(microBatch)
    if (runs.length === 1 || runs.every((run) => isFinite(program.gradientOf(run))))
      return runs.map((run) => resultOf(program, run))
  }
  const alone: Array<RunGradient> = []
  for (const run of runs) {
    const program = programOf(run)
    isolate(microBatch, run, scratch)
    yield* program.run(scratch)
    alone.push(resultOf(program, run))
  }
  return alone
})

/** Adds the sums of metrics of two micro-batches. */
export const addSums = (a: MetricSums<number>, b: MetricSums<number>): MetricSums<number> => {
  const names = new Set([...Object.keys(a), ...Object.keys(b)])
  const valueIn = (sums: MetricSums<number>, name: string): number => Number(Reflect.get(sums, name) ?? 0)
  return { tokens: 0, ...Object.fromEntries([...names].map((name) => [name, valueIn(a, name) + valueIn(b, name)])) }
}
