/**
 * Computes the losses of DQN over whole batches, with their targets: for values, for values of a network with a memory,
 * and for distributions of returns. Each also computes the error of each row, which prioritised replay uses as
 * priority.
 */
import {
  abs,
  add,
  constant,
  exp,
  gather,
  huber,
  max,
  mean,
  mul,
  reshape,
  slice,
  stopGradient,
  sub,
} from "../../tensor/graph/ops.ts"
import type { Tensor } from "../../tensor/graph/Tensor.ts"
import type { QNetwork, RecurrentQNetwork } from "../model/qNetwork.ts"
import type { Weights } from "../model/trunk.ts"
import { type DistributionalQNetwork, expectedReturn, type ValueDistribution } from "../model/valueDistribution.ts"
import {
  doubleQValue,
  qLearningValue,
  rescaled,
  tdTarget,
  unrescaled,
  valueOfAction,
  weightedMean,
} from "./qLearning.ts"
import type { Tensors } from "./shapes.ts"
import {
  categoricalDivergence,
  categoricalTarget,
  distributionOfAction,
  distributionOfBest,
  quantileLoss,
  quantileTarget,
} from "./valueDistributions.ts"

/** The tensors that a loss reads: a batch, and weights of the network. */
export interface DqnInputs<B> {
  readonly batch: B
  readonly online: Weights
  /**
   * The online weights with which double Q-learning chooses the next action: the same as `online`, with another draw of
   * noise.
   */
  readonly selector?: Weights
  readonly targetNetwork: Weights
}

type Learned = "observations" | "actions" | "rewards" | "discounts" | "importance"
/** The columns of a batch of transitions. */
export type TransitionTensors = Tensors<Learned | "nextObservations">
/** The columns of a batch of sequences of steps. */
export type SequenceTensors = Tensors<Learned | "fresh" | "memory" | "next" | "valid">

/** The result of a loss, with the error of each row. */
export interface DqnLoss extends Tensors<"loss" | "errors"> {
  readonly metrics: Readonly<Record<string, Tensor>>
}

/** The outputs of a network for observations. */
export interface ActionValues {
  /** The values of all actions, of shape [rows, actions]. If there are distributions, these are their means. */
  readonly values: Tensor
  /**
   * The quantiles, or the log probabilities of the categories, of shape [rows, actions, count]; absent if the network
   * computes only values.
   */
  readonly distributions?: Tensor
}

/** The settings that the losses read. */
interface LossConfig {
  readonly double: boolean
  /** If it is not null, rows are multiplied by the batch's `importance`. */
  readonly prioritised: object | null
}
interface ValueConfig extends LossConfig {
  readonly rescale: boolean
}

/** Returns the importance weights of prioritised replay; undefined without it. */
const importanceIn = ({ prioritised }: LossConfig, batch: { readonly importance: Tensor }): Tensor | undefined =>
  prioritised === null ? undefined : batch.importance

/**
 * Computes the target y = r + d v with the batch's discount d; with `rescale`, y = h(r + d h⁻¹(v)) if the network's values
 * are on the scale of h (`rescaled`).
 */
const targetOf = ({ rescale }: ValueConfig, at: Parameters<typeof tdTarget>[0]): Tensor =>
  rescale ? rescaled(tdTarget({ ...at, v_t: unrescaled(at.v_t) })) : tdTarget(at)

/**
 * Computes the loss of DQN: L = E[w · huber(Q(s, a) − y)] with the target y = r + γⁿ Q′(s′, a′). Q′ is the target
 * network, a′ the action that the online network (if `double`) or the target network chooses, and w the importance
 * weight of prioritised replay (1 without it). The batch's `discounts` hold γⁿ, and 0 where the episode terminated. If it
 * was truncated after k ≤ n steps, they hold γᵏ, and s′ is its final observation. With `rescale` the values are on another
 * scale: see `targetOf`. Also returns the absolute error of each row.
 */
export const dqnLoss = (
  config: ValueConfig,
  network: Pick<QNetwork, "apply">,
  at: DqnInputs<TransitionTensors>,
): DqnLoss & ActionValues => {
  const { batch, online, selector = online, targetNetwork } = at
  const { observations, actions, rewards, nextObservations, discounts } = batch
  const q_t = network.apply(targetNetwork, nextObservations)
  const v_t = config.double
    ? doubleQValue({ q_t, selector_t: network.apply(selector, nextObservations) })
    : qLearningValue({ q_t })
  const targets = targetOf(config, { r_t: rewards, discount_t: discounts, v_t })
  const values = network.apply(online, observations)
  const taken = valueOfAction(values, actions)
  const errors = sub(taken, targets)
  const rowLoss = huber(errors)
  return {
    loss: weightedMean(rowLoss, importanceIn(config, batch)),
    errors: abs(errors),
    metrics: { "losses/td_loss": mean(rowLoss), "losses/q_values": mean(taken) },
    values,
  }
}

/** The weight of the largest error of a sequence in its priority, as in R2D2; the mean error has the rest. */
const largestShare = 0.9

/**
 * Computes the loss of `dqnLoss` for a network with a memory: L = E[w · mean_t huber(Q(s_t, a_t) − y_t)] over sequences with
 * importance weights w. Both networks read each sequence from the stored memory on; the first `burnIn` observations only warm it
 * up, without a gradient. The error of a sequence is 0.9 max_t |δ_t| + 0.1 mean_t |δ_t| with δ = Q − y.
 */
export const sequenceLoss = (
  config: ValueConfig & { readonly length: number; readonly burnIn: number },
  network: Pick<RecurrentQNetwork, "evaluate">,
  { batch, online, selector = online, targetNetwork }: DqnInputs<SequenceTensors>,
): DqnLoss => {
  const { length, burnIn } = config
  const { actions, rewards, discounts, next, valid } = batch
  const [sequences, observations] = batch.observations.shape
  const rows = sequences * length
  const learnedOn = observations - burnIn
  const valuesBy = (weights: Weights) => afterBurnIn(network, weights, batch, burnIn)
  const all = valuesBy(online)
  const q_t = valuesBy(targetNetwork)
  const v_t = config.double
    ? doubleQValue({ q_t, selector_t: selector === online ? all : valuesBy(selector) })
    : qLearningValue({ q_t })
  // `next` counts within a sequence, but the rows of values are in one list, so add each sequence's first row.
  const firstRows = constant(
    Int32Array.from({ length: sequences }, (_, index) => index * learnedOn),
    [sequences, 1],
  )
  const flat = (column: Tensor): Tensor => reshape(column, [rows])
  const targets = targetOf(config, {
    r_t: flat(rewards),
    discount_t: flat(discounts),
    v_t: flat(gather(v_t, add(next, firstRows))),
  })
  const [, actionCount] = all.shape
  const learned = slice(reshape(all, [sequences, learnedOn, actionCount]), [0, 0, 0], [sequences, length, actionCount])
  const values = valueOfAction(reshape(learned, [rows, actionCount]), flat(actions))
  const errors = reshape(mul(sub(values, targets), flat(valid)), [sequences, length])
  const rowLoss = huber(errors)
  const sizes = abs(errors)
  return {
    loss: weightedMean(mean(rowLoss, -1), importanceIn(config, batch)),
    errors: add(mul(max(sizes, -1), largestShare), mul(mean(sizes, -1), 1 - largestShare)),
    metrics: { "losses/td_loss": mean(rowLoss), "losses/q_values": mean(values) },
  }
}

/** Computes the values of all observations of sequences after the burn-in, of shape [sequences × observations, actions]. */
const afterBurnIn = (
  network: Pick<RecurrentQNetwork, "evaluate">,
  weights: Weights,
  { observations, fresh, memory }: Tensors<"observations" | "fresh" | "memory">,
  burnIn: number,
): Tensor => {
  const [sequences, count, width] = observations.shape
  const evaluate = (from: number, to: number, state: Tensor) => {
    const steps = to - from
    const own = slice(observations, [0, from, 0], [sequences, steps, width])
    const begins = reshape(slice(fresh, [0, from], [sequences, steps]), [sequences * steps])
    return network.evaluate(weights, reshape(own, [sequences * steps, width]), { state, fresh: begins })
  }
  const warm = burnIn === 0 ? memory : stopGradient(evaluate(0, burnIn, memory).memory)
  return evaluate(burnIn, count, warm).values
}

/**
 * Computes the loss of distributions: L = E[w · D(Z(s, a), r + γⁿ Z′(s′, a′))]. The online network computes the
 * distribution Z, the target network Z′, and the means choose a′, as in `dqnLoss`. D is the loss of quantile regression
 * (QR-DQN, Dabney et al. 2017, arXiv:1710.10044), or the divergence from the target that is projected on the categories
 * (C51, Bellemare et al. 2017, arXiv:1707.06887). The loss of each row is also its error for prioritised replay, as in
 * Rainbow.
 */
export const distributionalLoss = (
  config: LossConfig & { readonly distribution: ValueDistribution },
  network: Pick<DistributionalQNetwork, "apply" | "distributions" | "valuesOf">,
  at: DqnInputs<TransitionTensors>,
): DqnLoss & Required<ActionValues> => {
  const { batch, online, selector = online, targetNetwork } = at
  const { observations, actions, rewards, nextObservations, discounts } = batch
  const { distribution } = config
  const all_t = network.distributions(targetNetwork, nextObservations)
  const selector_t = config.double
    ? network.apply(selector, nextObservations)
    : network.valuesOf(all_t, nextObservations)
  const best_t = distributionOfBest(all_t, selector_t)
  const distributions = network.distributions(online, observations)
  const taken_tm1 = distributionOfAction(distributions, actions)
  const [r_t, discount_t] = [rewards, discounts]
  const rowLoss =
    distribution.type === "quantiles"
      ? quantileLoss({
          quantiles_tm1: taken_tm1,
          target: quantileTarget({ r_t, discount_t, quantiles_t: best_t }),
        })
      : categoricalDivergence({
          logProbabilities_tm1: taken_tm1,
          target: categoricalTarget({ r_t, discount_t, probabilities_t: exp(best_t), categories: distribution }),
        })
  const values = expectedReturn(distribution, taken_tm1)
  return {
    loss: weightedMean(rowLoss, importanceIn(config, batch)),
    errors: rowLoss,
    metrics: { "losses/td_loss": mean(rowLoss), "losses/q_values": mean(values) },
    values: network.valuesOf(distributions, observations),
    distributions,
  }
}
