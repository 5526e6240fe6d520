/** Describes the learners of PPO, A2C and other algorithms that have one network of an actor and a critic. */
import { Effect } from "effect"
import type { ScheduleCourse, Schedule } from "../../../tensor/graph/schedules.ts"
import { actorCritic, type ActorCriticKept, type ActorCriticOptions, type Evaluation } from "../../model/ActorCritic.ts"
import { build, type Loss } from "../graphs.ts"
import type { Task } from "../Learner.ts"
import { learningRateOf } from "../parts.ts"
import type { Scheduled } from "../scheduled.ts"
import { checkSde, noiseSharing, type Sde } from "../stateDependent.ts"
import { type ColumnsOf, experience, type GeneralisedAdvantages } from "./Experience.ts"
import { checkMemory } from "./fields.ts"
import { rolloutLearner, type RolloutUpdate } from "./DescribedLearner.ts"
import { applied, type OwnLoss } from "./ownLoss.ts"
import type { Minibatch, Phase } from "./Phase.ts"

/** The settings that `actorCriticLearner` reads, with their defaults filled in. */
interface ActorCriticSettings
  extends Omit<ActorCriticOptions<never>, "observationSpace" | "actionSpace">, GeneralisedAdvantages {
  readonly nsteps: number
  readonly sequence: number
  readonly noiseRepeat: number
  readonly learningRate: Scheduled
  readonly schedule: ScheduleCourse | Schedule
  readonly loss: OwnLoss | null
  readonly sde?: Sde | null
  readonly rollouts?: RolloutUpdate<never>["rollouts"]
  readonly slices?: number
}

type ActorCriticColumns = ColumnsOf<ActorCriticKept>

/** The update of an algorithm: the loss of a minibatch, and the phase that minimises it. */
interface ActorCriticUpdate {
  readonly loss: (minibatch: Minibatch<ActorCriticColumns>, outputs: Evaluation) => Loss
  readonly phase: (loss: Phase<ActorCriticColumns>["loss"]) => Phase<ActorCriticColumns>
}

/**
 * Describes the learner of an algorithm with one network of an actor and a critic, whose update minimises one loss. It adds
 * what its settings ask for around the algorithm: a memory, state-dependent exploration, a loss of the user's own, minibatches in
 * slices, and rollouts in the graph.
 *
 * @example
 * ```ts
 * const settings = { hidden: [64], activation: "tanh", convolutions: null, lstm: 0, sequence: 0, noiseRepeat: 1 } as const
 * const returns = { nsteps: 5, gamma: 0.99, lambda: 1, learningRate: 1e-3, schedule: "linear" } as const
 * actorCriticLearner("mine", { ...settings, ...returns, loss: null }, task, {
 *   loss: ({ batch }, { value }) => ({ loss: Losses.valueLoss({ v_t: value, target_t: batch.targets }), metrics: {} }),
 *   phase: (loss) => ({ name: "update", epochs: 1, minibatches: 1, maxGradNorm: 0, optimiser: Optimisers.adam, loss }),
 * })
 * ```
 */
export const actorCriticLearner = Effect.fnUntraced(function* (
  name: string,
  config: ActorCriticSettings,
  task: Task,
  update: ActorCriticUpdate,
) {
  const { nsteps: steps, sequence, rollouts, slices = 1, sde = null } = config
  yield* checkSde(name, { ...config, sde }, task)
  yield* checkMemory(name, config)
  const network = yield* build(() => actorCritic({ ...task, ...config }))
  const own = yield* build(() => applied(config.loss, network, task))
  const noise = noiseSharing({ ...config, sde })
  const plain = experience({ name, task, actor: network, steps, sequence, ...noise, returns: config })
  const phase = update.phase((minibatch) => {
    const { batch, weights, recall } = minibatch
    const outputs = network.evaluate(weights, batch.observations, recall)
    return own.loss(minibatch, update.loss(minibatch, outputs), outputs)
  })
  return rolloutLearner(own.experience(plain), {
    learningRate: learningRateOf(config),
    phases: [{ ...phase, slices }],
    rollouts,
  })
})
