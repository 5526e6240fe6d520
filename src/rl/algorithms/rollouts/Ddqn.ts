/**
 * Synchronous n-step double Q-learning without a replay buffer (after Mnih et al. 2016, arXiv:1602.01783): plays many
 * envs ε-greedily for a few steps, then learns from exactly these steps. The online network chooses the action after
 * the last step, and the target network values it (van Hasselt et al. 2015, arXiv:1509.06461).
 */
import { Effect } from "effect"
import * as Schema from "effect/Schema"
import * as Fields from "../../../base/config/fields.ts"
import * as Graph from "../../../tensor/graph/ops.ts"
import * as Optimisers from "../../../tensor/graph/optimisers.ts"
import * as Algorithm from "../../learner/Algorithm.ts"
import * as Learner from "../../learner/withFeatures.ts"
import * as Losses from "../../losses/qLearning.ts"
import * as Model from "../../model/Model.ts"

const { argMax, huber, mean, stopGradient, sub } = Graph

// --- Config: `DdqnOptions` are the settings in code; `DdqnConfig` checks them and fills in the defaults ---

export interface DdqnOptions extends Learner.LearningOptions, Learner.ExplorationOptions, Learner.NetworksOption {
  /** The activation function between layers. @default "relu" */
  readonly activation?: "tanh" | "relu"
  /** The learning rate of Adam. @default 0.001 */
  readonly learningRate?: Learner.Scheduled
  /** The number of env steps that each env takes between two updates. @default 5 */
  readonly nsteps?: number
  /** The λ of the targets: 1 gives the n-step return; a smaller λ mixes it with returns of fewer steps. @default 1 */
  readonly lambda?: number
  /**
   * The number of env steps between two copies of the online network into the target network; 0 never copies it. @default 1000
   */
  readonly updateTargetFreq?: number
  /** The number of passes over each rollout. @default 1 */
  readonly epochs?: number
  /** The number of minibatches that a rollout is shuffled into, in each pass. @default 1 */
  readonly minibatches?: number
  /** Computes action values from two heads, one for the value and one for the advantages. @default false */
  readonly dueling?: boolean
  /**
   * A loss of your own in place of double Q-learning's: a function of a minibatch and of the network's outputs, which
   * include the algorithm's loss. Only code can set one; null keeps the algorithm's. @default null
   */
  readonly loss?: DdqnOwnLoss | null
  /** The constant that keeps Adam from dividing by zero. @default 1e-8 */
  readonly adamEpsilon?: number
}

/** A loss of the user's own: a function of the columns of a minibatch and of the network's outputs. */
export type DdqnOwnLoss = (batch: Learner.Batch<Learner.BaseColumns>, out: DdqnLossOutputs) => Learner.LossResult

/** The outputs that a loss of the user's own gets. */
export interface DdqnLossOutputs extends Learner.AlgorithmsLoss {
  /** The values of all actions at the minibatch's observations, of shape [rows, actions]. */
  readonly values: Graph.Tensor
  /** Computes the values of all actions at other observations. */
  readonly evaluate: (observations: Graph.Tensor) => Graph.Tensor
}

export const DdqnConfig = Schema.Struct({
  ...Learner.learningFields,
  ...Learner.explorationFields,
  ...Learner.networkField,
  activation: Fields.withDefault(Schema.Literals(["tanh", "relu"]), "relu"),
  learningRate: Fields.withDefault(Learner.learningRateSetting, 1e-3),
  nsteps: Fields.withDefault(Fields.bounded("rolloutSteps"), 5),
  lambda: Fields.withDefault(Fields.fraction, 1),
  updateTargetFreq: Fields.withDefault(Fields.bounded("countOrNone"), 1000),
  epochs: Fields.withDefault(Fields.bounded("rounds"), 1),
  minibatches: Fields.withDefault(Fields.bounded("minibatches"), 1),
  dueling: Fields.withDefault(Schema.Boolean, false),
  loss: Fields.withDefault(Schema.NullOr(Fields.code<DdqnOwnLoss>()), null),
  adamEpsilon: Fields.withDefault(Fields.positive, 1e-8),
})
export type DdqnConfig = typeof DdqnConfig.Type

// --- Learner, which `make` below sets up for a task: network, rollout, returns, update ---

const setup = Effect.fnUntraced(function* (settings: DdqnConfig, task: Algorithm.Task) {
  const config = Learner.resolved(settings)
  const actions = yield* Learner.needsChoices("ddqn", task)
  const network = yield* Learner.build(() =>
    Model.qNetwork({ ...config, observationSpace: task.observationSpace, actions }),
  )
  const actor: Model.Actor<"values"> = {
    parameters: network.parameters,
    noiseSize: 2,
    memorySize: 0,
    keeps: ["values"],
    act: ({ weights, target, observations, noise, exploration }) => {
      const q = network.apply(weights, observations)
      return {
        actions: Learner.epsilonGreedy(q, noise, exploration, Model.maskOf(task.observationSpace, observations)),
        // The kept value of an observation is the target network's value of the action that the online network prefers.
        kept: { values: Losses.valueOfAction(network.apply(target, observations), argMax(q)) },
      }
    },
    greedy: ({ weights, observations }) => {
      const values = network.apply(weights, observations)
      return { actions: argMax(values), outputs: () => ({ q_values: values }) }
    },
  }
  const rollout = Learner.experience({
    name: "ddqn",
    task,
    actor,
    steps: config.nsteps,
    exploration: Learner.epsilonSchedule(config),
    returns: config,
  })
  /** Computes the loss: E[huber(Q(s, a) − target)]. */
  const loss = ({ weights, batch }: Learner.Minibatch<Learner.BaseColumns>): Learner.Loss => {
    const values = network.apply(weights, batch.observations)
    const q = Losses.valueOfAction(values, batch.actions)
    const loss = mean(huber(sub(q, stopGradient(batch.targets))))
    const metrics = { "losses/td_loss": loss, "losses/q_values": mean(q) }
    const evaluate = (observations: Graph.Tensor) => network.apply(weights, observations)
    return Learner.chosenLoss("loss", config.loss, batch, { loss, metrics, values, evaluate })
  }
  return Learner.rolloutLearner(Learner.withTarget(rollout, config.updateTargetFreq), {
    learningRate: Learner.learningRateOf(config),
    phases: [
      {
        name: "update",
        epochs: config.epochs,
        minibatches: config.minibatches,
        maxGradNorm: config.maxGradNorm,
        loss,
        optimiser: Learner.chosenOptimiser(config, ({ size, learningRate }) =>
          Optimisers.adam({ size, learningRate, epsilon: config.adamEpsilon }),
        ),
      },
    ],
  })
})

/**
 * Makes double DQN without replay; settings that are left out have their defaults.
 *
 * @example
 * ```ts
 * Train.run({ env: CartPole.env, numEnvs: 16, algorithm: Ddqn.make({ dueling: true }), totalSteps: 300_000 })
 * ```
 */
export const make: Algorithm.Make<DdqnOptions> = Algorithm.define({ name: "ddqn", config: DdqnConfig, setup }).make
