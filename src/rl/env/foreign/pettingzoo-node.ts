/**
 * Makes games of PettingZoo, which run in Python processes. As with `MultiEnv`, a batch has a row for each agent of
 * each game, so any algorithm trains one policy for all agents. They need Python 3.9 or later with the packages
 * `pettingzoo` and `gymnasium`; if one is missing, the error says how to install it.
 *
 * @example
 * ```ts
 * import { Ppo, Train } from "effect-rl"
 * import { PettingZoo } from "effect-rl/node"
 *
 * export default Train.run({
 *   env: PettingZoo.env("butterfly/pistonball_v6", { options: { n_pistons: 10, continuous: false } }),
 *   numEnvs: 40,
 *   algorithm: Ppo.make(),
 *   totalSteps: 1_000_000,
 * })
 * ```
 */
import type { Env } from "../Env.ts"
import { invalid } from "../../../base/EnvError.ts"
import type * as MultiEnv from "../MultiEnv.ts"
import { withRecipe } from "../recipe.ts"
import { asConfig } from "./command-node.ts"
import { pythonEnv, type PythonOptions } from "./python-node.ts"

export interface PettingZooOptions extends PythonOptions {
  /** The arguments of the function that makes the game, with keys in snake_case or camelCase. Default: none. */
  readonly options?: Readonly<Record<string, unknown>>
  /**
   * The wrappers around the game, from the inside to the outside, with arguments: each the name of a function of Python, such
   * as `supersuit.pad_observations_v0`. Default: none.
   */
  readonly wrappers?: ReadonlyArray<{ readonly name: string; readonly [argument: string]: unknown }>
  /** Whether all agents act at once (`parallel`) or take turns (`aec`). Default: at once, if the game can do so. */
  readonly api?: "parallel" | "aec"
}

const isGame = (env: Env): env is MultiEnv.GameElsewhere => env.agents !== undefined

/**
 * Makes a game of PettingZoo, by its id such as `classic/tictactoe_v3`, or by the Python module that makes it, such as
 * `mpe2.simple_spread_v3`. Throws an `EnvError` if there is no Python, no PettingZoo or no such game, or if its agents have
 * different spaces.
 */
export const env = (id: string, options: PettingZooOptions = {}): MultiEnv.GameElsewhere => {
  const { options: ownOptions = {}, wrappers = [], api } = options
  const all = { ...ownOptions, ...(wrappers.length > 0 && { wrappers }), ...(api !== undefined && { api }) }
  const game = pythonEnv({ script: "effect_rl_pettingzoo.py", needs: "pettingzoo gymnasium" }, id, all, options)
  if (!isGame(game)) throw invalid(id, "its program names no agents")
  return withRecipe(game, "PettingZoo", asConfig({ id, ...options }))
}
