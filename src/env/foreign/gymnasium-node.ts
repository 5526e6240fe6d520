/**
 * Makes envs of Gymnasium, which Python processes step. They need Python 3.9 or later with the package `gymnasium`; the error
 * of a missing one says how to install it.
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
import { fileURLToPath } from "node:url"
import { Layer } from "effect"
import type { Env } from "../Env.ts"
import { withRecipe } from "../recipe.ts"
import { asConfig, command, envOf } from "./command-node.ts"
import { ForeignEnvs } from "./options.ts"

export interface Options {
  /** The arguments of `gymnasium.make`, with keys in snake_case or camelCase. Default: none. */
  readonly options?: Readonly<Record<string, unknown>>
  /** The wrappers of `gymnasium.wrappers` around the env, from the inside to the outside, with arguments. Default: none. */
  readonly wrappers?: ReadonlyArray<{ readonly name: string; readonly [argument: string]: unknown }>
  /** Whether masks in the env's info (`info["action_mask"]`, as Taxi has) forbid actions. Default: true. */
  readonly actionMasks?: boolean
  /** The number of processes among which the envs of a batch are divided. Results don't depend on it. Default: 1. */
  readonly processes?: number
  /** The Python program. Default: `python3`. */
  readonly python?: string
  /** The number of seconds after which a step without a reply fails. Default: 60. */
  readonly timeoutSeconds?: number
}

const script = fileURLToPath(new URL("./effect_rl_env.py", import.meta.url))
const install =
  "install Python 3.9 or later, then: python3 -m pip install gymnasium; or set `python` to another program"

/** Makes the env of Gymnasium with this id. Throws an `EnvError` if there is no Python, no Gymnasium or no such env. */
export const env = (id: string, options: Options = {}): Env => {
  const {
    options: given = {},
    wrappers = [],
    actionMasks = true,
    processes = 1,
    python = "python3",
    timeoutSeconds,
  } = options
  const program = { command: [python, "-u", script], timeoutSeconds, install }
  const all = { ...given, ...(wrappers.length > 0 && { wrappers }), ...(!actionMasks && { actionMasks }) }
  const made = envOf(program, id, all, processes)
  return withRecipe(made, "Gymnasium", asConfig({ id, ...options }))
}

/** Provides the processes for envs that configs name. */
export const layer: Layer.Layer<never> = Layer.succeed(ForeignEnvs, {
  gymnasium: ({ id, wrappers, ...options }) =>
    env(id, { ...options, wrappers: wrappers.map((wrapper) => ({ ...wrapper, name: String(wrapper.name) })) }),
  command: ({ command: program, id, ...options }) => command(program, { id, ...options }),
})
