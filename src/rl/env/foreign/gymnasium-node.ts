/**
 * Makes envs of Gymnasium, which run in Python processes. They need Python 3.9 or later with the package `gymnasium`;
 * if one is missing, the error says how to install it.
 *
 * @example
 * ```ts
 * import { Ppo, Train } from "effect-rl"
 * import { Gymnasium } from "effect-rl/node"
 *
 * export default Train.run({
 *   env: Gymnasium.env("LunarLander-v3", { processes: 2 }),
 *   numEnvs: 16,
 *   algorithm: Ppo.make(),
 *   totalSteps: 1_000_000,
 * })
 * ```
 */
import type { Env } from "../Env.ts"
import { withRecipe } from "../recipe.ts"
import { asConfig } from "./command-node.ts"
import { pythonEnv, type PythonOptions } from "./python-node.ts"

export interface GymnasiumOptions extends PythonOptions {
  /** The arguments of `gymnasium.make`, with keys in snake_case or camelCase. Default: none. */
  readonly options?: Readonly<Record<string, unknown>>
  /**
   * The wrappers around the env, from the inside to the outside, with arguments: names of `gymnasium.wrappers`, or a module
   * and its class, such as `effect_rl_wrappers.FireReset`. Default: none.
   */
  readonly wrappers?: ReadonlyArray<{ readonly name: string; readonly [argument: string]: unknown }>
  /** Whether masks in the env's info (`info["action_mask"]`, as Taxi has) forbid actions. Default: true. */
  readonly actionMasks?: boolean
  /**
   * Whether records and validations have whole games with the env's own rewards, whatever the wrappers do: clip rewards, or end
   * an episode with each life. Default: false.
   */
  readonly gameScores?: boolean
}

/** Makes the env of Gymnasium with this id. Throws an `EnvError` if there is no Python, no Gymnasium or no such env. */
export const env = (id: string, options: GymnasiumOptions = {}): Env => {
  const { options: ownOptions = {}, wrappers = [], actionMasks = true, gameScores = false } = options
  const all = {
    ...ownOptions,
    ...(wrappers.length > 0 && { wrappers }),
    ...(!actionMasks && { actionMasks }),
    ...(gameScores && { gameScores }),
  }
  const gymnasiumEnv = pythonEnv({ script: "effect_rl_env.py", needs: "gymnasium" }, id, all, options)
  return withRecipe(gymnasiumEnv, "Gymnasium", asConfig({ id, ...options }))
}
