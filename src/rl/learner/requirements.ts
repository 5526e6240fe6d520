/** Checks that an algorithm can learn in a task's spaces. Algorithms call these functions before the first step. */
import { Effect } from "effect"
import { ConfigError } from "../../base/config/Config.ts"
import { type Box, display } from "../env/Space.ts"
import { imageShapeOf } from "../model/observations.ts"
import type { Task } from "./Learner.ts"

/** Fails with a message that begins with the algorithm's name: "dqn needs discrete actions". */
const unsuited = (algorithm: string, problem: string): Effect.Effect<never, ConfigError> =>
  Effect.fail(ConfigError.at({ source: algorithm }, "algorithm", `${algorithm} ${problem}`))

/**
 * Returns the number of actions of a discrete action space; fails if there are several choices, or real numbers.
 *
 * @example
 * ```ts
 * needsChoices("dqn", task) // Effect<number, ConfigError>
 * ```
 */
export const needsChoices = (algorithm: string, { actionSpace }: Task): Effect.Effect<number, ConfigError> =>
  actionSpace._tag === "Discrete"
    ? Effect.succeed(actionSpace.n)
    : actionSpace._tag === "Box"
      ? unsuited(algorithm, "needs discrete actions; for real numbers there are sac, td3 and ppo")
      : unsuited(algorithm, `needs discrete actions, found ${display(actionSpace)}; ppo and a2c take several choices`)

/**
 * Fails unless observations are images and actions are discrete: the auxiliary tasks of UNREAL need both.
 *
 * @example
 * ```ts
 * needsImagesAndChoices("unreal", task) // Effect<void, ConfigError>
 * ```
 */
export const needsImagesAndChoices = (algorithm: string, task: Task): Effect.Effect<void, ConfigError> => {
  const { observationSpace: space } = task
  if (imageShapeOf(space) !== undefined) return Effect.asVoid(needsChoices(algorithm, task))
  const found = space._tag === "Box" ? `[${space.shape.join(", ")}]` : display(space)
  return unsuited(algorithm, `needs images [channels, height, width], found observations of ${found}`)
}

/**
 * Returns the action space if it is continuous and has finite bounds; otherwise fails.
 *
 * @example
 * ```ts
 * needsBoundedBox("sac", task) // Effect<Box, ConfigError>
 * ```
 */
export const needsBoundedBox = (algorithm: string, { actionSpace }: Task): Effect.Effect<Box, ConfigError> =>
  actionSpace._tag !== "Box"
    ? unsuited(algorithm, "needs actions that are real numbers; for choices there are dqn, ddqn and ppo")
    : [...actionSpace.low, ...actionSpace.high].every(Number.isFinite)
      ? Effect.succeed(actionSpace)
      : unsuited(algorithm, "needs an action space with finite bounds; Wrapper.clipAction or rescaleAction can help")
