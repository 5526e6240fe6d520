/** Applies losses of the user's own, which replace those of algorithms, and checks their results. */
import { Predicate } from "effect"
import { display } from "../../base/config/Config.ts"
import { messageOf } from "../../base/text/text.ts"
import { GraphError } from "../../tensor/graph/GraphError.ts"
import { shapeText } from "../../tensor/graph/ops/core.ts"
import type { Tensor } from "../../tensor/graph/Tensor.ts"
import type { Loss } from "./graphs.ts"

/** The prefix of the metric that records the value of the user's own loss; the name of the setting follows. */
export const ownPrefix = "losses/own_"

/** The loss of a minibatch: a scalar, or a scalar with metrics to record. */
export type LossResult = Tensor | { readonly loss: Tensor; readonly metrics: Readonly<Record<string, Tensor>> }

/** The algorithm's own loss, to which a loss of the user's own can add terms. */
export interface AlgorithmsLoss {
  /** The algorithm's loss, a scalar. */
  readonly loss: Tensor
  /** The algorithm's metrics by name. */
  readonly metrics: Readonly<Record<string, Tensor>>
}

/**
 * Returns the loss that a network learns from: the user's own, a function of a batch and of the networks' outputs, or the
 * algorithm's if `own` is null. `setting` is the name of the own loss in a config, for errors.
 *
 * @example
 * ```ts
 * const out = { loss: Graph.constant(1), metrics: {} }
 * chosenLoss("critic_loss", null, transitionBatch, out).loss // 1
 * chosenLoss("critic_loss", () => Graph.constant(2), transitionBatch, out).loss // 2
 * ```
 */
export const chosenLoss = <B, Outputs extends AlgorithmsLoss>(
  setting: "loss" | "actor_loss" | "critic_loss",
  own: ((batch: B, out: Outputs) => LossResult) | null,
  batch: NoInfer<B>,
  out: NoInfer<Outputs>,
): Loss => (own === null ? out : ownLoss(setting, out, () => own(batch, out)))

/**
 * Computes the user's own loss by calling `own`, and adds its value and its metrics to the metrics of the algorithm's
 * loss. Throws a GraphError that names the setting, such as `loss`, if `own` throws, or if its loss or a metric is not
 * one number of the graph.
 *
 * @example
 * ```ts
 * const algorithms = { loss: Graph.constant(1), metrics: {} }
 * ownLoss("loss", algorithms, () => Graph.mul(algorithms.loss, 2)).loss // 2
 * ```
 */
export const ownLoss = (setting: string, { metrics, limit }: Loss, own: () => LossResult): Loss => {
  const result = guarded(setting, own)
  const userLoss = hasMetrics(result) ? result : { loss: result, metrics: {} }
  expectScalar(setting, userLoss.loss)
  for (const [name, metric] of Object.entries({ ...userLoss.metrics })) expectScalar(`${setting}: ${name}`, metric)
  return {
    loss: userLoss.loss,
    metrics: { [`${ownPrefix}${setting}`]: userLoss.loss, ...metrics, ...userLoss.metrics },
    limit,
  }
}

const hasMetrics = (result: LossResult): result is Exclude<LossResult, Tensor> => Predicate.hasProperty(result, "loss")

/** Runs the user's function. An exception becomes a GraphError that names the setting. */
const guarded = <A>(setting: string, body: () => A): A => {
  try {
    return body()
  } catch (error) {
    throw new GraphError({ op: "loss", message: `algorithm.${setting}: ${messageOf(error)}`, shapes: [], where: "" })
  }
}

/** Throws a GraphError unless a value is a scalar tensor: the user's function may be JavaScript and return anything. */
const expectScalar = (place: string, value: Tensor): void => {
  const isTensor = Predicate.hasProperty(value, "op")
  if (isTensor && value.shape.length === 0 && value.dtype === "f32") return
  const found = isTensor ? `${value.dtype} of shape ${shapeText(value.shape)}` : display(value)
  const message = `algorithm.${place}: expected a scalar, such as Graph.mean(…) of the rows, found ${found}`
  throw new GraphError({ op: "loss", message, shapes: isTensor ? [value.shape] : [], where: "" })
}
