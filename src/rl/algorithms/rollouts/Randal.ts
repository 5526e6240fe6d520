/** RANDAL is PPO with the bonus of RND and the auxiliary tasks of UNREAL. It needs images and discrete actions. */
import { Effect } from "effect"
import * as Schema from "effect/Schema"
import * as Fields from "../../../base/config/fields.ts"
import * as Algorithm from "../../learner/Algorithm.ts"
import * as Learner from "../../learner/withFeatures.ts"
import {
  auxiliaryFields,
  type AuxiliaryOptions,
  auxiliaryTasks,
  checkTasks,
} from "../../learner/unreal/auxiliaryTasks.ts"
import { ppoPhase } from "./Ppo.ts"
import { rndFields, type RndOptions, rndLoss, rndRollout } from "./Rnd.ts"

// --- Config: `RandalOptions` are the settings in code; `RandalConfig` checks them and fills in the defaults ---

export interface RandalOptions extends RndOptions, AuxiliaryOptions {
  /** The sizes of the hidden layers. @default [128] */
  readonly hidden?: ReadonlyArray<number>
}

export const RandalConfig = Schema.Struct({
  ...rndFields,
  ...auxiliaryFields,
  hidden: Fields.withDefault(Fields.layers, [128]),
})
export type RandalConfig = typeof RandalConfig.Type

// --- Networks, rollout and returns as in RND; the update adds the loss of the auxiliary tasks ---

const setup = Effect.fnUntraced(function* (settings: RandalConfig, task: Algorithm.Task) {
  const config = Learner.resolved(settings)
  yield* checkTasks("randal", config, task)
  yield* Learner.checkMemory("randal", config)
  const { rollout, ...networks } = yield* Learner.build(() => rndRollout("randal", config, task))
  const tasks = yield* Learner.build(() => auxiliaryTasks(config, networks.network, task))
  return Learner.rolloutLearner(Learner.withAuxiliary(rollout, tasks), {
    learningRate: Learner.learningRateOf(config),
    phases: [
      ppoPhase(config, (minibatch) => Learner.addLosses(rndLoss(config, networks, minibatch), tasks.loss(minibatch))),
    ],
  })
})

/**
 * Makes RANDAL; settings that are left out have their defaults.
 *
 * @example
 * ```ts
 * Train.run({ env: PixelMaze.env, numEnvs: 32, algorithm: Randal.make(), totalSteps: 1_000_000 })
 * ```
 */
export const make: Algorithm.Make<RandalOptions> = Algorithm.define({
  name: "randal",
  config: RandalConfig,
  setup,
}).make
