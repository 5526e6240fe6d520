import { Effect, Schema } from "effect"
import { layers, positive, positiveInt, withDefault } from "../config/fields.ts"
import { type Algorithm, define, type Task } from "../learner/Algorithm.ts"
import { build } from "../learner/build.ts"
import { addLosses } from "../learner/Loss.ts"
import { experience, generalisedAdvantages } from "../learner/rollout/Experience.ts"
import { learningRateOf, resolved } from "../learner/rollout/fields.ts"
import { rolloutLearner } from "../learner/rollout/RolloutLearner.ts"
import { withAuxiliary } from "../learner/rollout/withAuxiliary.ts"
import { withMemory } from "../learner/rollout/withMemory.ts"
import { auxiliaryFields, auxiliaryTasks, checkTasks } from "../learner/unreal/auxiliaryTasks.ts"
import { actorCritic } from "../model/ActorCritic.ts"
import { a2cFields, a2cLoss, a2cPhase } from "./A2c.ts"
import type { UnrealOptions } from "./options/Unreal.ts"

/**
 * UNREAL (Jaderberg et al. 2016, arXiv:1611.05397): A2C, with `lstm` one with a memory, whose network also learns to
 * control pixels, to predict rewards, and to value steps that it replays. For images and discrete actions.
 */

// --- Config ---

export const UnrealConfig = Schema.Struct({
  ...a2cFields,
  ...auxiliaryFields,
  /** The sizes of the hidden layers. */
  hidden: withDefault(layers, [128]),
  /** The number of env steps that each env takes between two updates. */
  nsteps: withDefault(positiveInt, 20),
  /** The learning rate of RMSProp. */
  learningRate: withDefault(positive, 7e-4),
})
export type UnrealConfig = typeof UnrealConfig.Type

// --- Networks, rollout, returns, update ---

const setup = Effect.fnUntraced(function* (settings: UnrealConfig, task: Task) {
  const config = resolved(settings)
  yield* checkTasks("unreal", config, task)
  const network = yield* build(() => actorCritic({ ...task, ...config }))
  const tasks = yield* build(() => auxiliaryTasks(config, network, task))
  const plain = experience({
    name: "unreal",
    task,
    actor: network,
    steps: config.nsteps,
    noiseRepeat: config.noiseRepeat,
    returns: generalisedAdvantages(config),
  })
  return yield* rolloutLearner(withAuxiliary(withMemory(plain, config.sequence), tasks), {
    learningRate: learningRateOf(config),
    phases: [
      a2cPhase(config, (minibatch) => {
        const { batch, weights, recall } = minibatch
        const main = a2cLoss(config, batch, network.evaluate(weights, batch.observations, recall))
        return addLosses(main, tasks.loss(minibatch))
      }),
    ],
  })
})

/**
 * UNREAL as a value, with any of its settings changed.
 *
 * @example
 * ```ts
 * Train.run({ env: PixelMaze.env, numEnvs: 16, algorithm: Unreal.make({ lstm: 128 }), totalSteps: 500_000 })
 * ```
 */
export const make: (options?: UnrealOptions) => Algorithm = define({ name: "unreal", config: UnrealConfig, setup }).make
