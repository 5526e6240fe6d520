/**
 * Applies the user's own loss in actor-critic algorithms: a function that gets a minibatch and the network's outputs.
 */
import { Effect } from "effect"
import type { Distribution } from "../../../tensor/graph/distributions.ts"
import { GraphError } from "../../../tensor/graph/GraphError.ts"
import type { Tensor } from "../../../tensor/graph/Tensor.ts"
import { type ActionSpace, sizeOf } from "../../env/Space.ts"
import type { ActorCritic, ActorCriticKept } from "../../model/ActorCritic.ts"
import { stream } from "../../../base/rng/Rng.ts"
import { actionColumn, type Batch, type Column, type Columns, copyRows, f32, i32, perUpdate } from "../Batch.ts"
import type { Task } from "../Learner.ts"
import type { NamedArrays } from "../../../tensor/graph/Parameters.ts"
import type { Loss } from "../graphs.ts"
import { namedVector } from "../learnerState.ts"
import { type AlgorithmsLoss, type LossResult, ownLoss } from "../ownLoss.ts"
import type { ColumnsOf, Experience, Feature } from "./Experience.ts"
import type { Minibatch } from "./Phase.ts"

/** The outputs of the network for observations: a distribution of actions for each row, and a value. */
export interface PolicyAndValue {
  readonly distribution: Distribution
  /** The critic's values, of shape [rows]. */
  readonly value: Tensor
}

/** The arguments of the user's own loss besides the minibatch: the network's outputs, and the algorithm's loss. */
export interface LossOutputs extends PolicyAndValue, AlgorithmsLoss {
  /** Evaluates the network on other observations [rows, size], with the weights that are learned. */
  readonly evaluate: (observations: Tensor) => PolicyAndValue
  /**
   * Scales a column to mean 0 and standard deviation 1 over the whole minibatch, even if `batch` is only a slice of it.
   */
  readonly standardised: Minibatch<unknown>["standardised"]
}

/** The columns of a minibatch. */
export type LossBatch = Batch<ColumnsOf<ActorCriticKept>>

/** A loss of the user's own, which replaces the algorithm's. `lossWith` makes one that also reads other data. */
export interface OwnLoss {
  (batch: LossBatch, out: LossOutputs, data: Readonly<Record<string, Tensor>>): LossResult
  readonly data?: LossData
}

/** Rows of data that a loss reads, such as `Demonstrations`. */
interface DataRows {
  readonly rows: number
}

interface LossData {
  readonly rows: number
  /** The number of rows that an update reads. */
  readonly batchSize: number
  readonly arrays: Readonly<Record<string, Float32Array | Int32Array>>
}

/** The names of the arrays in an object. */
type ArrayNames<D> = { [K in keyof D]: D[K] extends Float32Array | Int32Array ? K : never }[keyof D]

/**
 * Makes a loss that reads further data, such as demonstrations: each update draws `batchSize` of its rows, which all of its
 * minibatches read. Each array of `data` becomes a tensor. A run can be resumed only with equal data.
 *
 * @example
 * ```ts
 * const loss = lossWith(demonstrations, { batchSize: 64 }, (_, out, shown) => {
 *   const { distribution } = out.evaluate(shown.observations)
 *   return Graph.add(out.loss, Losses.behaviourCloning(distribution.logProbability(shown.actions)))
 * })
 * Ppo.make({ loss })
 * ```
 */
export function lossWith<D extends DataRows>(
  data: D,
  options: { readonly batchSize: number },
  loss: (batch: LossBatch, out: LossOutputs, data: Readonly<Record<ArrayNames<D>, Tensor>>) => LossResult,
): OwnLoss
export function lossWith(
  data: DataRows,
  { batchSize }: { readonly batchSize: number },
  loss: (batch: LossBatch, out: LossOutputs, data: Readonly<Record<string, Tensor>>) => LossResult,
): OwnLoss {
  const arrays = Object.fromEntries(
    Object.entries(data).flatMap(([name, array]: [string, unknown]) =>
      array instanceof Float32Array || array instanceof Int32Array ? [[name, array] as const] : [],
    ),
  )
  const own: OwnLoss = (batch, out, data) => loss(batch, out, data)
  // Give the new function the name of the user's, which a config shows.
  Object.defineProperty(own, "name", { value: loss.name === "" ? "lossWith" : loss.name })
  return Object.assign(own, { data: { rows: data.rows, batchSize, arrays } })
}

/** The parts that a loss of the user's own adds to a learner; without such a loss, they change nothing. */
export interface AppliedLoss {
  /** Adds the loss's data to an experience, and its columns. A run is resumed only with equal data. */
  readonly experience: <C extends ColumnsOf<ActorCriticKept>>(experience: Experience<C>) => Experience<C>
  /** Computes the loss of a minibatch from the algorithm's loss and the outputs of the network. */
  readonly loss: (minibatch: Minibatch<ColumnsOf<ActorCriticKept>>, algorithms: Loss, outputs: PolicyAndValue) => Loss
}

/**
 * Applies a loss of the user's own, which replaces the algorithm's; null keeps it.
 *
 * @example
 * ```ts
 * const own = applied(null, network, task)
 * const rollout = own.experience(Learner.experience({ name: "mine", task, actor: network, steps: 8, returns: () => {} }))
 * rollout.features // []
 * ```
 */
export const applied = (own: OwnLoss | null, network: Evaluating, task: Task): AppliedLoss => {
  if (own === null) return { experience: (plain) => plain, loss: (_, loss) => loss }
  const { data } = own
  const columns = data === undefined ? {} : dataColumns(data, task)
  return {
    experience: (plain) =>
      data === undefined
        ? plain
        : {
            ...plain,
            columns: { ...plain.columns, ...prefixed(columns) },
            features: [...plain.features, drawing(data, task)],
            data: { ...plain.data, ...arraysOf(data) },
          },
    loss: ({ batch, weights, standardised }, algorithms, { distribution, value }) => {
      const tensors: Readonly<Record<string, Tensor>> = batch
      const { loss, metrics } = algorithms
      const evaluate: LossOutputs["evaluate"] = (observations) => network.evaluate(weights, observations)
      return ownLoss("loss", algorithms, () =>
        own(
          batch,
          { loss, metrics, distribution, value, evaluate, standardised },
          Object.fromEntries(Object.keys(columns).map((name) => [name, tensors[`${prefix}${name}`]])),
        ),
      )
    },
  }
}

/** The part of a network that a loss needs. For observations that the loss evaluates, its memory is empty. */
type Evaluating = Pick<ActorCritic, "evaluate">

/** The prefix of the columns that hold the data of a loss. */
const prefix = "data."

const arraysOf = ({ arrays }: LossData): NamedArrays =>
  Object.fromEntries(Object.entries(arrays).map(([name, array]) => [`${prefix}${name}`, namedVector(array)]))

const prefixed = (columns: Columns): Columns =>
  Object.fromEntries(Object.entries(columns).map(([name, column]) => [`${prefix}${name}`, column]))

/** Declares the columns of a loss's data. Throws a GraphError if an array does not fit. */
const dataColumns = ({ rows, batchSize, arrays }: LossData, task: Task): Columns =>
  Object.fromEntries(
    Object.entries(arrays).map(([name, array]) => {
      const width = array.length / rows
      if (!Number.isInteger(width) || width < 1) {
        const message = `algorithm.loss: data.${name}: expected a multiple of the ${rows} rows, found ${array.length} numbers`
        throw new GraphError({ op: "loss", message, shapes: [], where: "" })
      }
      const { shape, dtype } = columnOf(name, width, array, task.actionSpace)
      return [name, perUpdate({ shape: [batchSize, ...shape], dtype })]
    }),
  )

/**
 * Returns the column of an array. Actions have the shape that the distribution takes; other rows of several numbers are
 * vectors.
 */
const columnOf = (name: string, width: number, array: Float32Array | Int32Array, actions: ActionSpace): Column =>
  name === "actions" && width === sizeOf(actions)
    ? actionColumn(actions)
    : array instanceof Int32Array
      ? i32(...(width === 1 ? [] : [width]))
      : f32(...(width === 1 && name !== "observations" ? [] : [width]))

/** Makes the feature that draws the rows of an update. */
const drawing =
  <C extends Columns>({ rows, batchSize, arrays }: LossData, { seed }: Task): Feature<C> =>
  () =>
    Effect.succeed({
      beforeUpdate: (iteration, feeds) => {
        const random = stream(seed, "data", iteration)
        const drawn = Int32Array.from({ length: batchSize }, () => random.integer(rows))
        for (const [name, array] of Object.entries(arrays)) {
          const feed = feeds[`${prefix}${name}`]
          // If the loss does not read a column, the program has no input for it.
          if (feed !== undefined) copyRows(array, drawn, feed)
        }
      },
    })
