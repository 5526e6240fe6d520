import { Effect, Schema } from "effect"
import { layers, withDefault } from "../config/fields.ts"
import { type Algorithm, define, type Task } from "../learner/Algorithm.ts"
import { build } from "../learner/build.ts"
import { addLosses } from "../learner/Loss.ts"
import { learningRateOf, resolved } from "../learner/rollout/fields.ts"
import { rolloutLearner } from "../learner/rollout/RolloutLearner.ts"
import { withAuxiliary } from "../learner/rollout/withAuxiliary.ts"
import { auxiliaryFields, auxiliaryTasks, checkTasks } from "../learner/unreal/auxiliaryTasks.ts"
import type { RandalOptions } from "./options/Randal.ts"
import { ppoPhase } from "./Ppo.ts"
import { rndFields, rndLoss, rndRollout } from "./Rnd.ts"

/** RANDAL: RND's bonus for new observations and UNREAL's auxiliary tasks, on one network. For images and discrete actions. */

// --- Config ---

export const RandalConfig = Schema.Struct({
  ...rndFields,
  ...auxiliaryFields,
  /** The sizes of the hidden layers. */
  hidden: withDefault(layers, [128]),
})
export type RandalConfig = typeof RandalConfig.Type

// --- Networks, rollout and returns are RND's; the update adds the auxiliary tasks' loss ---

const setup = Effect.fnUntraced(function* (settings: RandalConfig, task: Task) {
  const config = resolved(settings)
  yield* checkTasks("randal", config, task)
  const { rollout, ...networks } = yield* build(() => rndRollout("randal", config, task))
  const tasks = yield* build(() => auxiliaryTasks(config, networks.network, task))
  return yield* rolloutLearner(withAuxiliary(rollout, tasks), {
    learningRate: learningRateOf(config),
    phases: [ppoPhase(config, (minibatch) => addLosses(rndLoss(config, networks, minibatch), tasks.loss(minibatch)))],
  })
})

/**
 * RANDAL as a value, with any of its settings changed.
 *
 * @example
 * ```ts
 * Train.run({ env: PixelMaze.env, numEnvs: 32, algorithm: Randal.make(), totalSteps: 1_000_000 })
 * ```
 */
export const make: (options?: RandalOptions) => Algorithm = define({ name: "randal", config: RandalConfig, setup }).make
