/**
 * Adds up the gradients of each run's current step over its micro-batches, in the order in which they were packed. So a
 * sum has the same bits however many ranks share the work.
 */
import { Effect } from "effect"
import type { BackendError } from "../../backend/Backend.ts"
import type { MetricSums } from "../../losses/Losses.ts"
import { makeMicroBatch, type MicroBatch, type MicroBatchShape } from "../batches/MicroBatch.ts"
import type { GradientProgram } from "./gradientProgram.ts"
import { isolate } from "./isolate.ts"

/** What the micro-batches of a run's step have added up to so far. */
export interface StepSum {
  readonly gradient: Float32Array
  loss: number
  /**
   * Sums of the metrics. If a micro-batch holds tokens of several runs, each of these runs gets the sums of the whole.
   */
  sums: MetricSums<number>
}

const isFinite = (numbers: Float32Array): boolean => {
  for (let at = 0; at < numbers.length; at++) if (!Number.isFinite(numbers[at])) return false
  return true
}

/** The gradients of the steps that the runs are at. `size` is the number of numbers of a gradient. */
export class StepGradients {
  private readonly steps = new Map<number, StepSum>()
  private readonly size: number
  private readonly scratch: MicroBatch

  constructor(shape: MicroBatchShape, size: number) {
    this.size = size
    this.scratch = makeMicroBatch(shape)
  }

  /**
   * Computes the gradients of a micro-batch, and adds them to those of its runs. A run whose numbers are not finite does
   * not change the sums of others.
   */
  readonly add = Effect.fnUntraced(
    { self: this },
    function* (
      this: StepGradients,
      program: GradientProgram,
      microBatch: MicroBatch,
    ): Effect.fn.Return<void, BackendError> {
      // A rank without work has a micro-batch of padding only.
      if (microBatch.sequenceCount === 0) return
      const runs = Array.from(microBatch.loraNumTokens.keys()).filter((run) => microBatch.loraNumTokens[run] > 0)
      yield* program.run(microBatch)
      if (runs.length === 1 || runs.every((run) => isFinite(program.gradientOf(run)))) {
        for (const run of runs) this.addResults(run, program)
        return
      }
      for (const run of runs) {
        isolate(microBatch, run, this.scratch)
        yield* program.run(this.scratch)
        this.addResults(run, program)
      }
    },
  )

  /** Returns the sums of a run's step, and forgets them; undefined if nothing was added. */
  take(run: number): StepSum | undefined {
    const step = this.steps.get(run)
    this.steps.delete(run)
    return step
  }

  private addResults(run: number, program: GradientProgram): void {
    const step = this.steps.get(run) ?? { gradient: new Float32Array(this.size), loss: 0, sums: { tokens: 0 } }
    this.steps.set(run, step)
    const { gradient } = step
    const slopes = program.gradientOf(run)
    for (let at = 0; at < gradient.length; at++) gradient[at] += slopes[at]
    step.loss += program.loss()
    step.sums = plus(step.sums, program.sums())
  }
}

const plus = (a: MetricSums<number>, b: MetricSums<number>): MetricSums<number> => {
  const names = new Set([...Object.keys(a), ...Object.keys(b)])
  const valueIn = (sums: MetricSums<number>, name: string): number => Number(Reflect.get(sums, name) ?? 0)
  return { tokens: 0, ...Object.fromEntries([...names].map((name) => [name, valueIn(a, name) + valueIn(b, name)])) }
}
