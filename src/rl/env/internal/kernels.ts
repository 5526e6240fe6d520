/**
 * Remembers, for an env with several agents that runs elsewhere, how to open its games, so that opponents can play in
 * them.
 */
import type { Effect, Scope } from "effect"
import type { Env } from "../Env.ts"
import type { EnvError } from "../../../base/EnvError.ts"
import type { AsyncColumns, AsyncKernel } from "./asyncKernel.ts"

export type OpenKernel = (columns: AsyncColumns) => Effect.Effect<AsyncKernel, EnvError, Scope.Scope>

const kernels = new WeakMap<Env, OpenKernel>()

/** Records the function that opens the games of an env, and returns the env. */
export const withKernel = <E extends Env>(env: E, open: OpenKernel): E => {
  kernels.set(env, open)
  return env
}

/** Returns the function that opens the games of an env; undefined if the env is no game that runs elsewhere. */
export const kernelOpenerOf = (env: Env): OpenKernel | undefined => kernels.get(env)
