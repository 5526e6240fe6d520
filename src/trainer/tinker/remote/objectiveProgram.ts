/**
 * Computes an objective from log-probabilities that a server has computed: its loss, its metrics, and its slope at each
 * log-probability, with which the server computes the gradient. So every objective works on every server: its gradient is that of
 * Σ slope · log π.
 */
import { Effect } from "effect"
import { attempt } from "../../../base/config/attempt.ts"
import { columnsOf, type MetricSums, objectiveGraph, type TokenObjective } from "../../../rl/losses/Losses.ts"
import { Backend } from "../../../tensor/backend/Backend.ts"
import { GraphError } from "../../../tensor/graph/GraphError.ts"
import { gradients } from "../../../tensor/graph/gradients.ts"
import { input } from "../../../tensor/graph/ops.ts"
import type { ProgramSpec } from "../../../tensor/graph/Program.ts"
import type { Tensor } from "../../../tensor/graph/Tensor.ts"
import type { MicroBatch } from "../../batches/MicroBatch.ts"
import { columnArrays } from "../../trainer/gradientProgram.ts"

interface Size {
  readonly rows: number
  readonly width: number
}

/** The values of an objective over a micro-batch. */
interface ObjectiveValues {
  readonly loss: number
  readonly sums: MetricSums<number>
  /** The slope of the loss at the log-probability of each token. It is valid until the next call. */
  readonly slopes: ArrayLike<number>
}

const specOf = (objective: TokenObjective, { rows, width }: Size): ProgramSpec => {
  const column = (name: string): Tensor => input(name, [rows, width], name === "sequence_t" ? "i32" : "f32")
  const names = ["weight_t", "logProbability_t", ...columnsOf(objective)]
  const inputs = Object.fromEntries(names.map((name) => [name, column(name)]))
  const { logProbability_t, weight_t } = inputs
  const { loss, losses, metrics } = objectiveGraph(objective, { ...inputs, logProbability_t, weight_t })
  const [slopes] = gradients(loss, [logProbability_t])
  return { name: `${objective.type}.objective`, inputs, state: {}, outputs: { slopes, losses, ...metrics } }
}

/** Compiles an objective for micro-batches of a size. */
export const compileObjective = Effect.fnUntraced(function* (objective: TokenObjective, size: Size) {
  const spec = yield* attempt(() => specOf(objective, size), GraphError)
  const { feeds, results, run } = yield* (yield* Backend).compile(spec)
  return {
    run: Effect.fnUntraced(function* (microBatch: MicroBatch, logProbabilities: Float32Array) {
      feeds["weight_t"].set(microBatch.weights)
      feeds["logProbability_t"].set(logProbabilities)
      for (const [name, array] of Object.entries(columnArrays)) feeds[name]?.set(microBatch[array])
      yield* run
      const { slopes, losses, ...sums } = results
      const values: ObjectiveValues = {
        slopes,
        loss: losses[0],
        sums: { tokens: 0, ...Object.fromEntries(Object.entries(sums).map(([name, [sum]]) => [name, sum])) },
      }
      return values
    }),
  }
})

export type ObjectiveProgram = Effect.Success<ReturnType<typeof compileObjective>>
