import { Effect, Schema } from "effect"
import { layers, withDefault } from "../config/fields.ts"
import { type Algorithm, define } from "../learner/Algorithm.ts"
import type { RandalOptions } from "./options/Randal.ts"
import { rndFields, rndLearner } from "./Rnd.ts"
import { auxiliaryFields, auxiliaryTasks, checkTasks } from "../learner/unreal/auxiliaryTasks.ts"

/** RANDAL: RND's bonus for what is new and UNREAL's tasks beside, on one network. For images and discrete actions. */
export const RandalConfig = Schema.Struct({
  ...rndFields,
  ...auxiliaryFields,
  /** The sizes of the hidden layers. */
  hidden: withDefault(layers, [128]),
})
export type RandalConfig = typeof RandalConfig.Type

/**
 * RANDAL as a value, with any of its settings changed.
 *
 * @example
 * ```ts
 * Train.run({ env: PixelMaze.env, numEnvs: 32, algorithm: Randal.make(), totalSteps: 1_000_000 })
 * ```
 */
export const make: (options?: RandalOptions) => Algorithm = define({
  name: "randal",
  config: RandalConfig,
  setup: (config, task) =>
    Effect.andThen(
      checkTasks("randal", config, task),
      rndLearner("randal", config, task, (model) => auxiliaryTasks(config, model, task)),
    ),
}).make
