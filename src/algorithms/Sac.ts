import { Effect, Schema } from "effect"
import { fraction, positive, positiveInt, withDefault } from "../config/fields.ts"
import type { Box } from "../env/Space.ts"
import { sizeOf } from "../env/Space.ts"
import { type SquashedGaussian, squashedGaussian } from "../graph/distributions.ts"
import { orthogonal } from "../graph/initialisers.ts"
import { linear } from "../graph/layers.ts"
import {
  add,
  clip,
  exp,
  mean,
  minimum,
  mul,
  neg,
  reshape,
  slice,
  square,
  state,
  stopGradient,
  sub,
} from "../graph/ops.ts"
import { adam } from "../graph/optimisers.ts"
import type { Tensor } from "../graph/Tensor.ts"
import { type Algorithm, define, type Task } from "../learner/Algorithm.ts"
import type { DensePolicy } from "../model/DensePolicy.ts"
import type { SacOptions } from "./options/Sac.ts"
import { buildThen } from "../learner/build.ts"
import { critic } from "../model/qNetwork.ts"
import { scaledActions } from "../model/scaledActions.ts"
import { type Declarations, networkFields, trunk, type Weights, denseLayers } from "../model/trunk.ts"
import { type Learnt, type ReplayBatch, replayFields } from "../learner/replay/definition.ts"
import { adamStep, polyak } from "../learner/replay/programs.ts"
import { replayLearner } from "../learner/replay/ReplayLearner.ts"
import { needsBoundedBox } from "../learner/requirements.ts"

/**
 * Soft actor-critic (Haarnoja et al. 2018, arXiv:1812.05905): a squashed Gaussian that is paid for its entropy, two
 * critics of which the less hopeful counts, and a temperature that holds the entropy at a target.
 */
export const SacConfig = Schema.Struct({
  ...replayFields,
  ...networkFields,
  /** The number of steps for which actions are drawn with the same noise: more than 1 explores in longer pushes. */
  noiseRepeat: withDefault(positiveInt, 1),
  /** The activation function between layers. */
  activation: withDefault(Schema.Literals(["tanh", "relu"]), "relu"),
  /** The learning rate of the actor and of the temperature, and of the critics unless `criticLearningRate` is set. */
  learningRate: withDefault(positive, 3e-4),
  /** The learning rate of the critics; null takes the actor's. */
  criticLearningRate: withDefault(Schema.NullOr(positive), null),
  /** The share by which the target critics move towards the critics in each update. */
  tau: withDefault(fraction, 0.005),
  /** The entropy temperature, which is the weight of the policy's entropy; null learns it. */
  alpha: withDefault(Schema.NullOr(positive), null),
  /**
   * The entropy that a learned temperature keeps, for actions in −1 … 1; null is minus the number of an action's
   * elements.
   */
  targetEntropy: withDefault(Schema.NullOr(Schema.Finite), null),
})
export type SacConfig = typeof SacConfig.Type

interface Nets {
  readonly actor: Declarations
  readonly critic: Declarations
  readonly actions: number
  readonly scale: ReturnType<typeof scaledActions>
  readonly policy: (weights: Weights, observations: Tensor) => SquashedGaussian
  /** The less hopeful critic; and both. */
  readonly judge: (weights: Weights, observations: Tensor, actions: Tensor) => readonly [Tensor, Tensor]
}

const lowestLogDeviation = -20
const highestLogDeviation = 2

const networks = (config: SacConfig, { observationSpace }: Task, actionSpace: Box): Nets => {
  const actions = sizeOf(actionSpace)
  const below = trunk("actor", observationSpace, config)
  const means = linear("actor.mean", below.outputs, actions, orthogonal(0.01))
  const deviations = linear("actor.logStd", below.outputs, actions, orthogonal(0.01))
  const critics = [
    critic("critic1", observationSpace, actionSpace, config),
    critic("critic2", observationSpace, actionSpace, config),
  ]
  return {
    actor: { ...below.parameters, ...means.parameters, ...deviations.parameters },
    critic: { ...critics[0].parameters, ...critics[1].parameters },
    actions,
    scale: scaledActions(actionSpace),
    policy: (weights, observations) => {
      const features = below.apply(weights, observations)
      const logDeviation = clip(deviations.apply(weights, features), lowestLogDeviation, highestLogDeviation)
      return squashedGaussian(means.apply(weights, features), logDeviation)
    },
    judge: (weights, observations, taken) => [
      critics[0].apply(weights, observations, taken),
      critics[1].apply(weights, observations, taken),
    ],
  }
}

/** The mean and the deviations of an action are one layer's outputs. */
const squashedDense = (config: SacConfig, space: Box): DensePolicy | undefined => {
  const below = denseLayers("actor", space, config)
  if (below === undefined) return undefined
  const last = { names: ["actor.mean", "actor.logStd"], activation: "identity" } as const
  return { layers: [...below.layers.slice(0, -1), last], head: "sample_and_squash", scaled: true }
}

const learn = (config: SacConfig, { actions, policy, judge, scale }: Nets, batch: ReplayBatch): Learnt => {
  const {
    actor,
    critic: critics,
    targets,
    observations,
    nextObservations,
    rewards,
    discounts,
    importance,
    rows,
  } = batch
  const actorRate = batch.scalar("learningRate")
  const logAlpha = state("logAlpha", [1])
  const alpha = config.alpha ?? exp(logAlpha)
  const noise = (part: number): Tensor => slice(batch.noise, [0, part * 2 * actions], [rows, 2 * actions])

  const next = policy(actor.weights, nextObservations)
  const nextAction = next.sampleBoth(noise(0))
  const [hope, doubt] = judge(targets.critic.weights, nextObservations, nextAction.action)
  const nextValue = sub(minimum(hope, doubt), mul(alpha, next.logProbabilityOfRaw(nextAction.raw)))
  const aims = stopGradient(add(rewards, mul(discounts, nextValue)))

  const [first, second] = judge(critics.weights, observations, scale.fromEnv(batch.actions))
  const rowLoss = add(square(sub(first, aims)), square(sub(second, aims)))
  const criticLoss = mul(mean(importance === undefined ? rowLoss : mul(importance, rowLoss)), 0.5)
  const criticStep = adamStep("critic", critics, criticLoss, {
    learningRate: batch.scalar("criticLearningRate"),
    maxGradNorm: config.maxGradNorm,
  })

  // The actor is judged by the critics as they are after their own step.
  const now = policy(actor.weights, observations)
  const action = now.sampleBoth(noise(1))
  const logProbability = now.logProbabilityOfRaw(action.raw)
  const [one, other] = judge(critics.layout.tensorsOf(criticStep.next), observations, action.action)
  const actorLoss = mean(sub(mul(alpha, logProbability), minimum(one, other)))
  const actorStep = adamStep("actor", actor, actorLoss, { learningRate: actorRate, maxGradNorm: config.maxGradNorm })

  const surplus = reshape(neg(mean(add(logProbability, config.targetEntropy ?? -actions))), [1])
  const temperature = adam({ name: "alpha.adam", size: 1, learningRate: actorRate }).update(logAlpha, surplus)
  return {
    states: {
      ...actorStep.states,
      ...criticStep.states,
      ...polyak("critic", targets.critic, criticStep.next, config.tau),
      ...(config.alpha === null
        ? { logAlpha: { tensor: logAlpha, next: temperature.next }, ...temperature.moments }
        : {}),
    },
    metrics: {
      "losses/critic_loss": criticLoss,
      "losses/actor_loss": actorLoss,
      "losses/q_values": mean(first),
      "losses/entropy": neg(mean(logProbability)),
      ...(config.alpha === null ? { "charts/alpha": mean(exp(logAlpha)) } : {}),
    },
    errors: sub(minimum(first, second), aims),
  }
}

const setup = (config: SacConfig, task: Task) =>
  Effect.flatMap(needsBoundedBox("sac", task), (actionSpace) =>
    buildThen(
      () => networks(config, task, actionSpace),
      (nets) =>
        replayLearner(
          {
            name: "sac",
            config,
            actor: nets.actor,
            dense: squashedDense(config, task.observationSpace),
            critic: nets.critic,
            targets: ["critic"],
            noise: { act: 2 * nets.actions, learn: 4 * nets.actions },
            act: ({ weights, observations, noise }) =>
              nets.scale.toEnv(nets.policy(weights, observations).sample(noise)),
            greedy: (weights, observations) => nets.scale.toEnv(nets.policy(weights, observations).mode()),
            scalars: () => ({
              learningRate: config.learningRate,
              criticLearningRate: config.criticLearningRate ?? config.learningRate,
            }),
            learn: (batch) => learn(config, nets, batch),
          },
          task,
        ),
    ),
  )

/**
 * SAC as a value, with any of its settings changed.
 *
 * @example
 * ```ts
 * Train.run({ env: Pendulum.env, numEnvs: 1, algorithm: Sac.make({ learningRate: 1e-3 }), totalSteps: 20_000 })
 * ```
 */
export const make: (options?: SacOptions) => Algorithm = define({ name: "sac", config: SacConfig, setup }).make
