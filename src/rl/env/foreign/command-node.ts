/**
 * Makes an env that runs in another program, in any language, which speaks the protocol of docs/foreign-envs.md. The
 * program is started once to describe the env, and then `processes` times for each batch.
 *
 * @example
 * ```ts
 * import { ForeignEnv } from "effect-rl/node"
 *
 * const corridor = ForeignEnv.command(["python3", "corridor.py"], { id: "corridor", options: { length: 8 } })
 * ```
 */
import { toCamelCase, toSnakeCase } from "../../../base/config/Config.ts"
import type { Env } from "../Env.ts"
import { withRecipe } from "../recipe.ts"
import { describedBy, foreignEnv } from "./foreignEnv.ts"
import { askOnce, connectTo, type Command } from "../../../spread/programs/process-node.ts"
import { makeRequest } from "./protocol.ts"

export interface CommandEnvOptions {
  /** The env's id in effect-rl, which is also its name in the program. */
  readonly id: string
  /** Options that the program gets as JSON, with keys in snake_case. Default: none. */
  readonly options?: Readonly<Record<string, unknown>>
  /** The number of processes among which the envs of a batch are divided. Results don't depend on it. Default: 1. */
  readonly processes?: number
  /** The number of seconds after which a step without a reply fails. Default: 60. */
  readonly timeoutSeconds?: number
  /**
   * The names of the environment variables that the program gets, besides `PATH`, `HOME` and others that hold no secrets.
   * Default: none.
   */
  readonly variables?: ReadonlyArray<string>
}

/** Makes an env that runs in another program. Throws an `EnvError` if the program does not describe such an env. */
export const command = (program: readonly [string, ...ReadonlyArray<string>], options: CommandEnvOptions): Env => {
  const { id, processes, timeoutSeconds, variables, options: envOptions } = options
  const recipe = { command: program, id, options: envOptions, processes, timeoutSeconds, variables }
  const env = envOf({ command: program, timeoutSeconds, variables }, id, envOptions ?? {}, processes ?? 1)
  return withRecipe(env, "ForeignEnv", asConfig(recipe))
}

/** Converts options to the form of a config: keys in camelCase, without undefined values. */
export const asConfig = (options: object): object => Object(toCamelCase(options))

/** Starts the program to read the env's description, and makes the env with this id. */
export const envOf = (program: Command, id: string, options: object, processes: number): Env => {
  const foreign = { id, name: id, options: toSnakeCase(options), processes }
  const reply = askOnce(id, program, makeRequest(foreign.name, foreign.options, 0))
  return foreignEnv(foreign, describedBy(id, reply), connectTo(id, program))
}
