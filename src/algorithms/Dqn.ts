import { Effect, Schema } from "effect"
import { layers, naturalInt, positive, positiveInt, withDefault } from "../config/fields.ts"
import { abs, argMax, huber, mean, sub } from "../graph/ops.ts"
import { type Algorithm, define, type Task } from "../learner/Algorithm.ts"
import type { Batch } from "../learner/Batch.ts"
import { build } from "../learner/build.ts"
import { epsilonGreedy, epsilonSchedule, explorationFields } from "../learner/exploration.ts"
import { Prioritised, replayFields } from "../learner/replay/fields.ts"
import { replayExperience, withPriorities, withTargets } from "../learner/replay/ReplayExperience.ts"
import { type Learning, replayLearner, type Update } from "../learner/replay/ReplayLearner.ts"
import { adamStep } from "../learner/replay/steps.ts"
import { needsChoices } from "../learner/requirements.ts"
import { doubleQValue, qLearningValue, tdTarget, valueOfAction, weightedMean } from "../losses/qLearning.ts"
import type { Actor } from "../model/Actor.ts"
import { type QNetwork, qNetwork } from "../model/qNetwork.ts"
import { networkFields, type Weights } from "../model/trunk.ts"
import type { ReplayColumns } from "../learner/replay/columns.ts"
import type { DqnOptions } from "./options/Dqn.ts"

// --- Config ---

/**
 * Deep Q-learning with a replay buffer (Mnih et al. 2015), and improvements that Rainbow (Hessel et al. 2018,
 * arXiv:1710.02298) combines, each with a setting: double Q-learning, dueling networks, prioritised replay, n-step targets.
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

// --- Network and replay ---

/** The online network acts and learns; the target network becomes a copy of it every `updateTargetFreq` env steps. */
const setup = Effect.fnUntraced(function* (config: DqnConfig, task: Task) {
  const actions = yield* needsChoices("dqn", task)
  const network = yield* build(() => qNetwork({ ...config, observationSpace: task.observationSpace, actions }))
  const actor: Actor = {
    parameters: network.parameters,
    noiseSize: 2,
    memorySize: 0,
    keeps: [],
    act: ({ weights, observations, noise, exploration }) => ({
      actions: epsilonGreedy(network.apply(weights, observations), noise, exploration),
      kept: {},
    }),
    greedy: ({ weights, observations }) => ({ actions: argMax(network.apply(weights, observations)) }),
  }
  const exploration = epsilonSchedule(config)
  const experience = replayExperience({ name: "dqn", task, config, actor, exploration, networks: {} })
  const targeted = withTargets(experience, ["actor"], { copyEvery: config.updateTargetFreq })
  return yield* replayLearner(withPriorities(targeted, config.prioritised), {
    scalars: { learningRate: config.learningRate },
    noiseSize: 0,
    update: (learning) => update(config, network, learning),
  })
})

// --- Targets and update ---

/** One gradient step on a batch with Adam. */
const update = (config: DqnConfig, network: QNetwork, learning: Learning<never, "actor", "learningRate">): Update => {
  const { batch, networks, targets, scalars } = learning
  const { loss, errors, metrics } = dqnLoss(config, network, {
    batch,
    online: networks.actor.weights,
    target: targets.actor.weights,
  })
  const step = adamStep(networks.actor, loss, {
    learningRate: scalars.learningRate,
    epsilon: config.adamEpsilon,
    maxGradNorm: config.maxGradNorm,
  })
  return { states: step.states, metrics, errors }
}

/**
 * The loss of DQN: L = E[w · huber(Q(s, a) − y)] with the target y = r + γⁿ Q′(s′, a′), where a′ is the online network's
 * choice (`double`) or the target network's, and w is the importance weight of prioritised replay, if that is on.
 */
export const dqnLoss = (
  config: Pick<DqnConfig, "double" | "prioritised">,
  network: Pick<QNetwork, "apply">,
  {
    batch,
    online,
    target,
  }: { readonly batch: Batch<ReplayColumns>; readonly online: Weights; readonly target: Weights },
) => {
  const { observations, actions, rewards, nextObservations, discounts } = batch
  const q_t = network.apply(target, nextObservations)
  const v_t = config.double
    ? doubleQValue({ q_t, selector_t: network.apply(online, nextObservations) })
    : qLearningValue({ q_t })
  const targets = tdTarget({ r_t: rewards, discount_t: discounts, v_t })
  const values = valueOfAction(network.apply(online, observations), actions)
  const errors = sub(values, targets)
  const rowLoss = huber(errors)
  return {
    loss: weightedMean(rowLoss, config.prioritised === null ? undefined : batch.importance),
    errors: abs(errors),
    metrics: { "losses/td_loss": mean(rowLoss), "losses/q_values": mean(values) },
  }
}

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
