import { Schema } from "effect"
import { positive, positiveInt, withDefault } from "../config/fields.ts"
import { define, type Task } from "./Algorithm.ts"
import { buildThen } from "./build.ts"
import { Planning } from "./network/valueIteration.ts"
import { ppoFields, ppoLoss, ppoPhase } from "./Ppo.ts"
import { actorCriticModel } from "./rollout/actorCriticModel.ts"
import { resolved } from "./rollout/fields.ts"
import { rolloutLearner } from "./rollout/RolloutLearner.ts"

/**
 * A value-iteration network (Tamar et al. 2016, arXiv:1602.02867) that learns by PPO: for maps [planes, height, width] on
 * which a way has to be found. (`Bc.make(shown, { planning: {} })` teaches the same network by demonstrations.)
 */
export const VinConfig = Schema.Struct({
  ...ppoFields,
  planning: withDefault(Planning, {}),
  hidden: withDefault(Schema.Array(positiveInt), []),
  learningRate: withDefault(positive, 1e-3),
})
export type VinConfig = typeof VinConfig.Type

const setup = (given: VinConfig, task: Task) => {
  const config = resolved(given)
  return buildThen(
    () => actorCriticModel({ ...task, ...config }),
    (model) =>
      rolloutLearner(
        {
          name: "vin",
          config,
          model,
          phases: [ppoPhase(config, (batch) => ppoLoss(config, batch, model.evaluate(batch)))],
        },
        task,
      ),
  )
}

/**
 * A planning PPO as a value, with any of its settings changed.
 *
 * @example
 * ```ts
 * Train.run({ env: GridWorld.env, numEnvs: 16, algorithm: Vin.make({ planning: { iterations: 20 } }), totalSteps: 500_000 })
 * ```
 */
export const { make } = define({ name: "vin", config: VinConfig, setup })
