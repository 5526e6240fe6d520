import { Effect, Schema } from "effect"
import { fraction, naturalInt, positive, positiveInt, withDefault } from "../config/fields.ts"
import { argMax, huber, mean, stopGradient, sub } from "../graph/ops.ts"
import { adam } from "../graph/optimisers.ts"
import { type Algorithm, define, type Task } from "../learner/Algorithm.ts"
import type { DdqnOptions } from "./options/Ddqn.ts"
import { buildThen } from "../learner/build.ts"
import { valueOfAction } from "../losses/qLearning.ts"
import { epsilonAt, epsilonGreedy, explorationFields } from "../learner/exploration.ts"
import { qNetwork } from "../model/qNetwork.ts"
import { networkFields } from "../model/trunk.ts"
import { needsChoices } from "../learner/requirements.ts"
import { learningFields, resolved } from "../learner/rollout/fields.ts"
import type { Model } from "../learner/rollout/programs.ts"
import { rolloutLearner } from "../learner/rollout/RolloutLearner.ts"

/**
 * Synchronous n-step double Q-learning: many envs are played ε-greedily for a few steps, and the network learns from
 * exactly those, without a replay memory (after Mnih et al. 2016, arXiv:1602.01783). What comes after the last step is
 * worth what the target network says of the action that the network would choose (van Hasselt et al. 2015).
 */
export const DdqnConfig = Schema.Struct({
  ...learningFields,
  ...explorationFields,
  ...networkFields,
  /** The activation function between layers. */
  activation: withDefault(Schema.Literals(["tanh", "relu"]), "relu"),
  /** The learning rate of Adam. */
  learningRate: withDefault(positive, 1e-3),
  /** The number of env steps that each env takes between two updates. */
  nsteps: withDefault(positiveInt, 5),
  /** The λ of the targets: 1 gives the n-step return, a smaller value mixes it with shorter ones. */
  lambda: withDefault(fraction, 1),
  /** The number of env steps between two copies of the online network into the target network; 0 never copies it. */
  updateTargetFreq: withDefault(naturalInt, 1000),
  /** The number of passes over each rollout. */
  epochs: withDefault(positiveInt, 1),
  /** The number of minibatches that a rollout is shuffled into, in each pass. */
  minibatches: withDefault(positiveInt, 1),
  /** Computes action values from two heads, one for the value and one for the advantages. */
  dueling: withDefault(Schema.Boolean, false),
  /** The constant that keeps Adam from dividing by zero. */
  adamEpsilon: withDefault(positive, 1e-8),
})
export type DdqnConfig = typeof DdqnConfig.Type

const setup = (given: DdqnConfig, task: Task) => {
  const config = resolved(given)
  return Effect.flatMap(needsChoices("ddqn", task), (actions) =>
    buildThen(
      () => qNetwork({ ...config, observationSpace: task.observationSpace, actions }),
      (network) => {
        const model: Model = {
          parameters: network.parameters,
          noiseSize: 2,
          memorySize: 0,
          also: [],
          act: ({ weights, target, observations, noise, exploration }) => {
            const values = network.apply(weights, observations)
            return {
              actions: epsilonGreedy(values, noise, exploration),
              values: valueOfAction(network.apply(target, observations), argMax(values)),
            }
          },
          greedy: ({ weights, observations }) => ({ actions: argMax(network.apply(weights, observations)) }),
        }
        return rolloutLearner(
          {
            name: "ddqn",
            config,
            model,
            exploration: (step) => epsilonAt(config, step, task.totalSteps),
            target: { everySteps: config.updateTargetFreq },
            phases: [
              {
                name: "update",
                epochs: config.epochs,
                minibatches: config.minibatches,
                maxGradNorm: config.maxGradNorm,
                loss: ({ weights, column }) => {
                  const values = valueOfAction(network.apply(weights, column("observations")), column("actions"))
                  const loss = mean(huber(sub(values, stopGradient(column("targets")))))
                  return { loss, metrics: { "losses/td_loss": loss, "losses/q_values": mean(values) } }
                },
                optimiser: ({ size, learningRate }) => adam({ size, learningRate, epsilon: config.adamEpsilon }),
              },
            ],
          },
          task,
        )
      },
    ),
  )
}

/**
 * Double DQN without replay as a value, with any of its settings changed.
 *
 * @example
 * ```ts
 * Train.run({ env: CartPole.env, numEnvs: 16, algorithm: Ddqn.make({ dueling: true }), totalSteps: 300_000 })
 * ```
 */
export const make: (options?: DdqnOptions) => Algorithm = define({ name: "ddqn", config: DdqnConfig, setup }).make
