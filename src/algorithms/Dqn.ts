import { Effect, Schema } from "effect"
import { layers, naturalInt, positive, positiveInt, withDefault } from "../config/fields.ts"
import { abs, add, argMax, huber, max, mean, mul, oneHot, stopGradient, sub, sum } from "../graph/ops.ts"
import type { Tensor } from "../graph/Tensor.ts"
import { type Algorithm, define, type Task } from "../learner/Algorithm.ts"
import type { DqnOptions } from "./options/Dqn.ts"
import { buildThen } from "../learner/build.ts"
import { epsilonAt, epsilonGreedy, explorationFields } from "../learner/exploration.ts"
import { type QNetwork, qNetwork } from "../model/qNetwork.ts"
import { networkFields } from "../model/trunk.ts"
import { Prioritised, type ReplayBatch, replayFields } from "../learner/replay/definition.ts"
import { adamStep } from "../learner/replay/programs.ts"
import { replayLearner } from "../learner/replay/ReplayLearner.ts"
import { needsChoices } from "../learner/requirements.ts"

/**
 * Deep Q-learning from a replay memory (Mnih et al. 2015), with the improvements that Rainbow (Hessel et al. 2018,
 * arXiv:1710.02298) gathers, each to be chosen: double Q-learning, dueling networks, prioritised replay, several steps.
 */
export const DqnConfig = Schema.Struct({
  ...replayFields,
  ...explorationFields,
  ...networkFields,
  /** The sizes of the hidden layers. */
  hidden: withDefault(layers, [128, 128]),
  /** The activation function between layers. */
  activation: withDefault(Schema.Literals(["tanh", "relu"]), "relu"),
  /** The learning rate of Adam. */
  learningRate: withDefault(positive, 5e-4),
  /** The number of transitions that the replay buffer holds. */
  bufferSize: withDefault(positiveInt, 100_000),
  /** The number of transitions that an update learns from. */
  batchSize: withDefault(positiveInt, 64),
  /** The number of env steps between two updates, over all envs. */
  trainEvery: withDefault(positiveInt, 4),
  /** The number of env steps between two copies of the online network into the target network; 0 never copies it. */
  updateTargetFreq: withDefault(naturalInt, 1000),
  /** Chooses the next action by the online network and values it by the target network (van Hasselt et al. 2015). */
  double: withDefault(Schema.Boolean, true),
  /** Computes action values from two heads, one for the value and one for the advantages. */
  dueling: withDefault(Schema.Boolean, false),
  /** Prioritised replay: `{}` draws transitions with larger errors more often, null draws uniformly. */
  prioritised: withDefault(Schema.NullOr(Prioritised), null),
  /** The constant that keeps Adam from dividing by zero. */
  adamEpsilon: withDefault(positive, 1e-8),
})
export type DqnConfig = typeof DqnConfig.Type

/** Of each row's values, that of its action. */
export const valueOfAction = (values: Tensor, actions: Tensor): Tensor =>
  sum(mul(values, oneHot(actions, values.shape[1])), -1)

/** E[w · huber(Q(s, a) − (r + γⁿ Q'(s', a')))]. */
export const dqnLoss = (config: DqnConfig, network: QNetwork, batch: ReplayBatch) => {
  const { actor, targets, observations, actions, rewards, nextObservations, discounts, importance } = batch
  const after = network.apply(targets.actor.weights, nextObservations)
  const best = config.double
    ? valueOfAction(after, argMax(network.apply(actor.weights, nextObservations)))
    : max(after, -1)
  const aims = stopGradient(add(rewards, mul(discounts, best)))
  const values = valueOfAction(network.apply(actor.weights, observations), actions)
  const errors = sub(values, aims)
  const rowLoss = huber(errors)
  return {
    loss: mean(importance === undefined ? rowLoss : mul(importance, rowLoss)),
    errors: abs(errors),
    metrics: { "losses/td_loss": mean(rowLoss), "losses/q_values": mean(values) },
  }
}

const setup = (config: DqnConfig, task: Task) =>
  Effect.flatMap(needsChoices("dqn", task), (actions) =>
    buildThen(
      () => qNetwork({ ...config, observationSpace: task.observationSpace, actions }),
      (network) =>
        replayLearner(
          {
            name: "dqn",
            config,
            actor: network.parameters,
            targets: ["actor"],
            targetEvery: config.updateTargetFreq,
            noise: { act: 2, learn: 0 },
            act: ({ weights, observations, noise, exploration }) =>
              epsilonGreedy(network.apply(weights, observations), noise, exploration),
            greedy: (weights, observations) => argMax(network.apply(weights, observations)),
            exploration: (step) => epsilonAt(config, step, task.totalSteps),
            scalars: () => ({ learningRate: config.learningRate }),
            learn: (batch) => {
              const { loss, errors, metrics } = dqnLoss(config, network, batch)
              const { states } = adamStep("actor", batch.actor, loss, {
                learningRate: batch.scalar("learningRate"),
                epsilon: config.adamEpsilon,
                maxGradNorm: config.maxGradNorm,
              })
              return { states, metrics, errors }
            },
          },
          task,
        ),
    ),
  )

/**
 * DQN as a value, with any of its settings changed.
 *
 * @example
 * ```ts
 * const rainbowish = Dqn.make({ dueling: true, prioritised: {}, nsteps: 3 })
 * Train.run({ env: Acrobot.env, numEnvs: 4, algorithm: rainbowish, totalSteps: 100_000 })
 * ```
 */
export const make: (options?: DqnOptions) => Algorithm = define({ name: "dqn", config: DqnConfig, setup }).make
