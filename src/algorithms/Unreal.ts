import { Effect, Schema } from "effect"
import { layers, positive, positiveInt, withDefault } from "../config/fields.ts"
import { a2cFields, a2cPhase } from "./A2c.ts"
import { type Algorithm, define, type Task } from "../learner/Algorithm.ts"
import type { UnrealOptions } from "./options/Unreal.ts"
import { buildThen } from "../learner/build.ts"
import { actorCriticModel } from "../learner/rollout/actorCriticModel.ts"
import { resolved } from "../learner/rollout/fields.ts"
import { rolloutLearner } from "../learner/rollout/RolloutLearner.ts"
import { auxiliaryFields, auxiliaryTasks, checkTasks } from "../learner/unreal/auxiliaryTasks.ts"

/**
 * UNREAL (Jaderberg et al. 2016, arXiv:1611.05397): A2C, with `lstm` a remembering one, whose network also learns to
 * control pixels, to foresee rewards and to value what it replays. For images and discrete actions.
 */
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

const setup = (given: UnrealConfig, task: Task) => {
  const config = resolved(given)
  return Effect.andThen(
    checkTasks("unreal", config, task),
    buildThen(
      () => {
        const model = actorCriticModel({ ...task, ...config })
        return { model, auxiliary: auxiliaryTasks(config, model, task) }
      },
      ({ model, auxiliary }) =>
        rolloutLearner({ name: "unreal", config, model, auxiliary, phases: [a2cPhase(config, model)] }, task),
    ),
  )
}

/**
 * UNREAL as a value, with any of its settings changed.
 *
 * @example
 * ```ts
 * Train.run({ env: PixelMaze.env, numEnvs: 16, algorithm: Unreal.make({ lstm: 128 }), totalSteps: 500_000 })
 * ```
 */
export const make: (options?: UnrealOptions) => Algorithm = define({ name: "unreal", config: UnrealConfig, setup }).make
