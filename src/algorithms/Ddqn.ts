import { Effect, Schema } from "effect"
import { fraction, naturalInt, positive, positiveInt, withDefault } from "../config/fields.ts"
import { argMax, huber, mean, stopGradient, sub } from "../graph/ops.ts"
import { adam } from "../graph/optimisers.ts"
import { type Algorithm, define, type Task } from "../learner/Algorithm.ts"
import { build } from "../learner/build.ts"
import { epsilonGreedy, epsilonSchedule, explorationFields } from "../learner/exploration.ts"
import type { Loss } from "../learner/Loss.ts"
import { needsChoices } from "../learner/requirements.ts"
import { experience, generalisedAdvantages } from "../learner/rollout/Experience.ts"
import { learningFields, learningRateOf, resolved } from "../learner/rollout/fields.ts"
import type { BaseColumns } from "../learner/rollout/Rollout.ts"
import { rolloutLearner } from "../learner/rollout/RolloutLearner.ts"
import type { Minibatch } from "../learner/rollout/update.ts"
import { withTarget } from "../learner/rollout/withTarget.ts"
import { valueOfAction } from "../losses/qLearning.ts"
import type { Actor } from "../model/Actor.ts"
import { qNetwork } from "../model/qNetwork.ts"
import { networkFields } from "../model/trunk.ts"
import type { DdqnOptions } from "./options/Ddqn.ts"

/**
 * Synchronous n-step double Q-learning: many envs are played ε-greedily for a few steps, and the network learns from
 * exactly those, without a replay buffer (after Mnih et al. 2016, arXiv:1602.01783). The online network chooses the
 * action after the last step, and the target network values it (van Hasselt et al. 2015, arXiv:1509.06461).
 */

// --- Config ---

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

// --- Network, rollout, returns, update ---

const setup = Effect.fnUntraced(function* (settings: DdqnConfig, task: Task) {
  const config = resolved(settings)
  const actions = yield* needsChoices("ddqn", task)
  const network = yield* build(() => qNetwork({ ...config, observationSpace: task.observationSpace, actions }))
  const actor: Actor<"values"> = {
    parameters: network.parameters,
    noiseSize: 2,
    memorySize: 0,
    keeps: ["values"],
    act: ({ weights, target, observations, noise, exploration }) => {
      const q = network.apply(weights, observations)
      return {
        actions: epsilonGreedy(q, noise, exploration),
        kept: { values: valueOfAction(network.apply(target, observations), argMax(q)) },
      }
    },
    greedy: ({ weights, observations }) => ({ actions: argMax(network.apply(weights, observations)) }),
  }
  const rollout = experience({
    name: "ddqn",
    task,
    actor,
    steps: config.nsteps,
    exploration: epsilonSchedule(config),
    returns: generalisedAdvantages(config),
  })
  /** E[huber(Q(s, a) − target)] */
  const loss = ({ weights, batch }: Minibatch<BaseColumns>): Loss => {
    const q = valueOfAction(network.apply(weights, batch.observations), batch.actions)
    const loss = mean(huber(sub(q, stopGradient(batch.targets))))
    return { loss, metrics: { "losses/td_loss": loss, "losses/q_values": mean(q) } }
  }
  return yield* rolloutLearner(withTarget(rollout, config.updateTargetFreq), {
    learningRate: learningRateOf(config),
    phases: [
      {
        name: "update",
        epochs: config.epochs,
        minibatches: config.minibatches,
        maxGradNorm: config.maxGradNorm,
        loss,
        optimiser: ({ size, learningRate }) => adam({ size, learningRate, epsilon: config.adamEpsilon }),
      },
    ],
  })
})

/**
 * Double DQN without replay as a value, with any of its settings changed.
 *
 * @example
 * ```ts
 * Train.run({ env: CartPole.env, numEnvs: 16, algorithm: Ddqn.make({ dueling: true }), totalSteps: 300_000 })
 * ```
 */
export const make: (options?: DdqnOptions) => Algorithm = define({ name: "ddqn", config: DdqnConfig, setup }).make
