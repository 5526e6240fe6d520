import { Effect } from "effect"
import type { Columns } from "../Batch.ts"
import { namedVector } from "../learnerState.ts"
import type { Experience } from "./Experience.ts"

/**
 * Adds a target network, which the actor can read: a copy of the learned weights that is renewed every
 * `everySteps` env steps, or never if that is 0.
 *
 * @example
 * ```ts
 * const plain = Learner.experience({ name: "ddqn", task, actor: network, steps: 5, returns: () => {} })
 * withTarget(plain, 1000).hasTarget // true
 * ```
 */
export const withTarget = <C extends Columns>(experience: Experience<C>, everySteps: number): Experience<C> => ({
  ...experience,
  hasTarget: true,
  features: [
    ...experience.features,
    ({ act }) => {
      const update = (weights: Float32Array) => act.write("target", weights)
      return Effect.succeed({
        initialise: update,
        target: { everySteps, update },
        state: Effect.map(act.read("target"), (weights) => ({ learner: { target: namedVector(weights) } })),
        restore: Effect.fnUntraced(function* (files) {
          const { length } = yield* act.read("target")
          yield* update(yield* files.floats("learner", "target", [length]))
        }),
      })
    },
  ],
})
