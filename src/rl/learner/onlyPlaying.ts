/**
 * Makes algorithms that can play a saved policy, but not learn. An algorithm that learns from data or from an expert is
 * made in code, so a run's saved config cannot make it again; but an algorithm from this file needs only the checkpoint
 * to validate, render or export the policy.
 */
import { Effect, type Schema } from "effect"
import { Backend } from "../../tensor/backend/Backend.ts"
import type { Plain } from "../../base/config/Config.ts"
import { layout } from "../../tensor/graph/Parameters.ts"
import type { Actor } from "../model/Actor.ts"
import { policies } from "./acting.ts"
import { type Algorithm, define } from "./Algorithm.ts"
import { type Learner, type Task } from "./Learner.ts"
import { build } from "./graphs.ts"
import { weightsIn } from "./learnerState.ts"

/**
 * Makes the algorithm `name`, whose learner only plays. `actorOf` builds the same network as the learner that trained
 * the policy.
 *
 * @example
 * ```ts
 * const saved = onlyPlaying("bc", Bc.BcConfig, (config, task) => Model.actorCritic({ ...task, ...config, lstm: 0 }))
 * ```
 */
export const onlyPlaying = <S extends Schema.Codec<Plain, Plain>>(
  name: string,
  config: S,
  actorOf: (config: S["Type"], task: Task) => Actor<string>,
): Algorithm =>
  define({
    name,
    config,
    setup: Effect.fnUntraced(function* (settings, task) {
      const actor = yield* build(() => actorOf(settings, task))
      const parameters = layout(actor.parameters)
      let theta: Float32Array = new Float32Array(parameters.size)
      const cannotLearn = Effect.die(new Error(`${name}: a learner that only plays was asked to learn`))
      const learner: Learner = {
        devices: {},
        capabilities: { onlyPlays: true },
        rollout: () => cannotLearn,
        update: () => cannotLearn,
        metrics: () => ({}),
        ...policies(
          yield* Backend,
          { name, task, actor, layout: parameters },
          Effect.sync(() => theta),
        ),
        weights: Effect.sync(() => parameters.toNamed(theta)),
        state: Effect.succeed({}),
        // The checkpoint may hold other networks, such as critics, which playing does not need.
        restore: Effect.fnUntraced(function* (weights) {
          theta = yield* weightsIn(parameters, weights)
        }),
      }
      return learner
    }),
  }).make()
