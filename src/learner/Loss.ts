import { add } from "../graph/ops.ts"
import type { Tensor } from "../graph/Tensor.ts"

/** The result of a loss function: the number to minimise, and the metrics to report. */
export interface Loss {
  /** The scalar to minimise. */
  readonly loss: Tensor
  /** Scalars that are averaged over the minibatches of an update, by their names in TensorBoard. */
  readonly metrics: Readonly<Record<string, Tensor>>
  /** A condition: if it is false for a minibatch, that minibatch is not applied and the update ends. */
  readonly continueWhile?: Tensor | undefined
}

/**
 * Adds further losses and their metrics to a first loss.
 *
 * @example
 * ```ts
 * const value = { loss: Graph.constant(1), metrics: {} }
 * const both = addLosses(value, { loss: Graph.constant(2), metrics: { "losses/extra": Graph.constant(2) } })
 * both.loss // 3
 * ```
 */
export const addLosses = (first: Loss, ...others: ReadonlyArray<Loss>): Loss =>
  others.reduce(
    (sum, { loss, metrics }) => ({ ...sum, loss: add(sum.loss, loss), metrics: { ...sum.metrics, ...metrics } }),
    first,
  )
