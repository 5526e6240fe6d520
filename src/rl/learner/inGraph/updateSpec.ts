/**
 * Describes the update of a learner whose rollouts are played in the graph. It reads the rollout from states that both
 * programs share.
 */
import * as G from "../../../tensor/graph/ops.ts"
import type { ParameterLayout } from "../../../tensor/graph/Parameters.ts"
import type { ProgramSpec, StateSpec } from "../../../tensor/graph/Program.ts"
import type { Tensor } from "../../../tensor/graph/Tensor.ts"
import type { Task } from "../Learner.ts"
import type { Batch, Column, Columns } from "../Batch.ts"
import { standardised } from "../../losses/policyGradient.ts"
import { netOf } from "../graphs.ts"
import type { Phase } from "../rollout/Phase.ts"
import { gradientStep } from "../rollout/update.ts"
import { tensorsOf } from "../scheduled.ts"
import { advantagesOf } from "./advantages.ts"
import { columnState, followingColumns, stepColumns } from "./rolloutSpec.ts"

interface UpdateProgram<C extends Columns> {
  readonly name: string
  readonly task: Task
  readonly layout: ParameterLayout
  readonly steps: number
  readonly columns: C
  readonly phase: Phase<C>
  readonly gamma: number
  readonly lambda: number
  readonly learningRateShares: Readonly<Record<string, number>>
}

/**
 * Describes the program `update`. It computes advantages and targets once, then runs the graph for each minibatch,
 * which gathers its rows from the columns of the rollout: the feed `row` lists all rows, and `indices` those of each
 * minibatch.
 */
export const updateSpec = <C extends Columns>(program: UpdateProgram<C>): ProgramSpec => {
  const { name, task, layout, steps, columns, phase } = program
  const rows = steps * task.numEnvs
  const batch = rows / phase.minibatches
  const net = netOf(layout, "theta")
  const row = G.input("row", [batch], "i32")
  const learningRate = G.input("learningRate", [])

  const states: Record<string, StateSpec> = {}
  /** Returns a column of the rollout, [steps, numEnvs, ...shape]. */
  const whole = (key: string, { shape }: Pick<Column, "shape"> = { shape: [] }): Tensor =>
    (states[columnState(key)] ??= { tensor: G.state(columnState(key), [steps, task.numEnvs, ...shape]) }).tensor
  const [rewards, nextValues, ended] = stepColumns.map((key) => whole(key))
  const values = whole("values")
  const advantages = advantagesOf({ rewards, values, nextValues, ended }, program)
  const targets = G.add(advantages, values)
  const following: Readonly<Record<string, Tensor>> = { advantages, targets }

  const { states: learned, ...step } = gradientStep(
    phase,
    net,
    {
      batch: batchOf(columns, (key, column) => {
        const all = following[key] ?? whole(key, column)
        return G.cast(G.gather(G.reshape(all, [rows, ...column.shape]), row), column.dtype)
      }),
      weights: net.weights,
      fixed: {},
      recall: undefined,
      standardised,
    },
    learningRate,
    program.learningRateShares,
  )
  return {
    name: `${name}.${phase.name}`,
    inputs: { row, learningRate, ...tensorsOf(phase.scheduledInputs) },
    state: { ...learned, ...states },
    outputs: { ...step.outputs, "losses/explained_variance": explainedVariance(values, targets) },
    minibatches: {
      rows,
      batch,
      count: phase.epochs * phase.minibatches,
      gathered: ["row"],
      ...(step.continueWhile === undefined ? {} : { continueWhile: step.continueWhile }),
    },
  }
}

/** Returns the columns of the rollout that are stored: all but those that the update computes. */
export const storedColumns = (columns: Columns): Columns =>
  Object.fromEntries(Object.entries(columns).filter(([key]) => !followingColumns.some((other) => other === key)))

/** Returns the columns as tensors, each made when it is first read. */
function batchOf<C extends Columns>(columns: C, read: (key: string, column: Column) => Tensor): Batch<C>
function batchOf(columns: Columns, read: (key: string, column: Column) => Tensor): object {
  const tensors: Record<string, Tensor> = {}
  const batch: Record<string, Tensor> = {}
  for (const [key, column] of Object.entries(columns))
    Object.defineProperty(batch, key, { enumerable: true, get: () => (tensors[key] ??= read(key, column)) })
  return batch
}

/** Computes 1 − Var(targets − values) / Var(targets): 1 for a perfect critic; 0 if the targets are all equal. */
const explainedVariance = (values: Tensor, targets: Tensor): Tensor => {
  const spread = G.variance(targets)
  const unexplained = G.div(G.variance(G.sub(targets, values)), G.maximum(spread, 1e-30))
  return G.where(G.greater(spread, 0), G.sub(1, unexplained), 0)
}
