/**
 * UNREAL (Jaderberg et al. 2016, arXiv:1611.05397): A2C whose network also learns to control pixels, to predict
 * rewards, and to value earlier steps again. With `lstm` it has a memory. UNREAL needs images and discrete actions.
 */
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
import * as Model from "../../model/ActorCritic.ts"
import { a2cFields, type A2cBaseOptions, a2cLoss, a2cPhase } from "./A2c.ts"

// --- Config: `UnrealOptions` are the settings in code; `UnrealConfig` checks them and fills in the defaults ---

export interface UnrealOptions extends A2cBaseOptions, AuxiliaryOptions {
  /** The sizes of the hidden layers. @default [128] */
  readonly hidden?: ReadonlyArray<number>
  /** The number of env steps that each env takes between two updates. @default 20 */
  readonly nsteps?: number
}

export const UnrealConfig = Schema.Struct({
  ...a2cFields,
  ...auxiliaryFields,
  hidden: Fields.withDefault(Fields.layers, [128]),
  nsteps: Fields.withDefault(Fields.bounded("rolloutSteps"), 20),
})
export type UnrealConfig = typeof UnrealConfig.Type

// --- Learner, which `make` below sets up for a task: networks, rollout, returns, update ---

const setup = Effect.fnUntraced(function* (settings: UnrealConfig, task: Algorithm.Task) {
  const config = Learner.resolved(settings)
  const { nsteps: steps, noiseRepeat, sequence } = config
  yield* checkTasks("unreal", config, task)
  yield* Learner.checkMemory("unreal", config)
  const network = yield* Learner.build(() => Model.actorCritic({ ...task, ...config }))
  const tasks = yield* Learner.build(() => auxiliaryTasks(config, network, task))
  const own = yield* Learner.build(() => Learner.applied(config.loss, network, task))
  const plain = own.experience(
    Learner.experience({ name: "unreal", task, actor: network, steps, noiseRepeat, sequence, returns: config }),
  )
  return Learner.rolloutLearner(Learner.withAuxiliary(plain, tasks), {
    learningRate: Learner.learningRateOf(config),
    phases: [
      a2cPhase(config, (minibatch) => {
        const { batch, weights, recall } = minibatch
        const outputs = network.evaluate(weights, batch.observations, recall)
        const main = own.loss(minibatch, a2cLoss(config, batch, outputs), outputs)
        return Learner.addLosses(main, tasks.loss(minibatch))
      }),
    ],
  })
})

/**
 * Makes UNREAL; settings that are left out have their defaults.
 *
 * @example
 * ```ts
 * Train.run({ env: PixelMaze.env, numEnvs: 16, algorithm: Unreal.make({ lstm: 128 }), totalSteps: 500_000 })
 * ```
 */
export const make: Algorithm.Make<UnrealOptions> = Algorithm.define({
  name: "unreal",
  config: UnrealConfig,
  setup,
}).make
