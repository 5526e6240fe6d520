import { Effect, Schema } from "effect"
import { fraction, nonNegative, positive, positiveInt, withDefault } from "../config/fields.ts"
import type { Box } from "../env/Space.ts"
import { sizeOf } from "../env/Space.ts"
import { normalFromUniform } from "../graph/distributions.ts"
import { orthogonal } from "../graph/initialisers.ts"
import { linear } from "../graph/layers.ts"
import {
  add,
  clip,
  equal,
  mean,
  minimum,
  mul,
  neg,
  square,
  state,
  stopGradient,
  sub,
  tanh,
  where,
} from "../graph/ops.ts"
import type { Tensor } from "../graph/Tensor.ts"
import { type Algorithm, define, type Task } from "../learner/Algorithm.ts"
import type { DensePolicy } from "../model/DensePolicy.ts"
import type { Td3Options } from "./options/Td3.ts"
import { buildThen } from "../learner/build.ts"
import { critic } from "../model/qNetwork.ts"
import { scaledActions } from "../model/scaledActions.ts"
import { type Declarations, networkFields, trunk, type Weights, denseLayers } from "../model/trunk.ts"
import { type Learnt, type ReplayBatch, replayFields } from "../learner/replay/definition.ts"
import { adamStep, polyak } from "../learner/replay/programs.ts"
import { replayLearner } from "../learner/replay/ReplayLearner.ts"
import { needsBoundedBox } from "../learner/requirements.ts"

/**
 * Twin delayed deep deterministic policy gradient (Fujimoto et al. 2018, arXiv:1802.09477): two critics of which the less
 * hopeful counts, target actions blurred by noise, an actor that learns less often than its critics.
 */
export const Td3Config = Schema.Struct({
  ...replayFields,
  ...networkFields,
  /** The number of steps for which actions are drawn with the same noise: more than 1 explores in longer pushes. */
  noiseRepeat: withDefault(positiveInt, 1),
  /** The activation function between layers. */
  activation: withDefault(Schema.Literals(["tanh", "relu"]), "relu"),
  /** The learning rate of the actor and of the critics. */
  learningRate: withDefault(positive, 1e-3),
  /** The share by which the target networks move towards the online networks, each time the actor learns. */
  tau: withDefault(fraction, 0.005),
  /** The standard deviation of the noise on actions in play, as a share of half an action's range. */
  explorationNoise: withDefault(nonNegative, 0.1),
  /** The standard deviation of the noise on target actions, as a share of half an action's range. */
  targetNoise: withDefault(nonNegative, 0.2),
  /** The bound of the noise on target actions, which is clipped to plus and minus this. */
  targetNoiseClip: withDefault(nonNegative, 0.5),
  /** The number of updates of the critics for each update of the actor. */
  policyDelay: withDefault(positiveInt, 2),
})
export type Td3Config = typeof Td3Config.Type

interface Nets {
  readonly actor: Declarations
  readonly critic: Declarations
  readonly actions: number
  readonly scale: ReturnType<typeof scaledActions>
  readonly act: (weights: Weights, observations: Tensor) => Tensor
  readonly judge: (weights: Weights, observations: Tensor, actions: Tensor) => readonly [Tensor, Tensor]
}

const networks = (config: Td3Config, { observationSpace }: Task, actionSpace: Box): Nets => {
  const actions = sizeOf(actionSpace)
  const below = trunk("actor", observationSpace, config)
  const head = linear(`actor.${below.depth}`, below.outputs, actions, orthogonal(0.01))
  const critics = [
    critic("critic1", observationSpace, actionSpace, config),
    critic("critic2", observationSpace, actionSpace, config),
  ]
  return {
    actor: { ...below.parameters, ...head.parameters },
    critic: { ...critics[0].parameters, ...critics[1].parameters },
    actions,
    scale: scaledActions(actionSpace),
    act: (weights, observations) => tanh(head.apply(weights, below.apply(weights, observations))),
    judge: (weights, observations, taken) => [
      critics[0].apply(weights, observations, taken),
      critics[1].apply(weights, observations, taken),
    ],
  }
}

const learn = (config: Td3Config, { act, judge, scale }: Nets, batch: ReplayBatch): Learnt => {
  const { actor, critic: critics, targets, observations, nextObservations, rewards, discounts, importance } = batch
  const learningRate = batch.scalar("learningRate")
  const { maxGradNorm, targetNoise, targetNoiseClip } = config

  const blur = clip(mul(normalFromUniform(batch.noise), targetNoise), -targetNoiseClip, targetNoiseClip)
  const nextAction = clip(add(act(targets.actor.weights, nextObservations), blur), -1, 1)
  const [hope, doubt] = judge(targets.critic.weights, nextObservations, nextAction)
  const aims = stopGradient(add(rewards, mul(discounts, minimum(hope, doubt))))
  const [first, second] = judge(critics.weights, observations, scale.fromEnv(batch.actions))
  const rowLoss = add(square(sub(first, aims)), square(sub(second, aims)))
  const criticLoss = mean(importance === undefined ? rowLoss : mul(importance, rowLoss))
  const criticStep = adamStep("critic", critics, criticLoss, { learningRate, maxGradNorm })

  const [judged] = judge(critics.layout.tensorsOf(criticStep.next), observations, act(actor.weights, observations))
  const actorLoss = neg(mean(judged))
  const actorStep = adamStep("actor", actor, actorLoss, { learningRate, maxGradNorm })
  const delayed: Learnt["states"] = {
    ...actorStep.states,
    ...polyak("actor", targets.actor, actorStep.next, config.tau),
    ...polyak("critic", targets.critic, criticStep.next, config.tau),
  }

  // Counts 1 … delay; the actor and all targets move when it is full.
  const count = state("updates", [])
  const full = equal(count, config.policyDelay - 1)
  return {
    states: {
      ...criticStep.states,
      ...Object.fromEntries(
        Object.entries(delayed).map(([key, { tensor, next }]) => [key, { tensor, next: where(full, next, tensor) }]),
      ),
      updates: { tensor: count, next: where(full, 0, add(count, 1)) },
    },
    metrics: { "losses/critic_loss": criticLoss, "losses/actor_loss": actorLoss, "losses/q_values": mean(first) },
    errors: sub(minimum(first, second), aims),
  }
}

const tanhDense = (config: Td3Config, space: Box): DensePolicy | undefined => {
  const layers = denseLayers("actor", space, config, "tanh")
  return layers === undefined ? undefined : { ...layers, scaled: true }
}

const setup = (config: Td3Config, task: Task) =>
  Effect.flatMap(needsBoundedBox("td3", task), (actionSpace) =>
    buildThen(
      () => networks(config, task, actionSpace),
      (nets) =>
        replayLearner(
          {
            name: "td3",
            config,
            actor: nets.actor,
            dense: tanhDense(config, task.observationSpace),
            critic: nets.critic,
            targets: ["actor", "critic"],
            noise: { act: 2 * nets.actions, learn: 2 * nets.actions },
            act: ({ weights, observations, noise }) => {
              const blur = mul(normalFromUniform(noise), config.explorationNoise)
              return nets.scale.toEnv(clip(add(nets.act(weights, observations), blur), -1, 1))
            },
            greedy: (weights, observations) => nets.scale.toEnv(nets.act(weights, observations)),
            scalars: () => ({ learningRate: config.learningRate }),
            learn: (batch) => learn(config, nets, batch),
          },
          task,
        ),
    ),
  )

/**
 * TD3 as a value, with any of its settings changed.
 *
 * @example
 * ```ts
 * Train.run({ env: Pendulum.env, numEnvs: 1, algorithm: Td3.make({ batchSize: 128 }), totalSteps: 20_000 })
 * ```
 */
export const make: (options?: Td3Options) => Algorithm = define({ name: "td3", config: Td3Config, setup }).make
