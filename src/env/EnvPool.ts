/**
 * Declares the service that makes batches whose envs are stepped by worker threads. Training uses it if `workers` is
 * set. Threads are faster only for envs whose step takes longer than waking a thread.
 *
 * A function cannot be sent to a thread, so each worker imports the env: a built-in one (also with options or wrappers)
 * is made from its config; your own is imported from the module that exports it with `located`.
 *
 * @example
 * ```ts
 * export const river = EnvPool.located(Env.make(definition), import.meta.url)
 * export default Train.run({ env: river, numEnvs: 16, workers: 4, algorithm: Ppo.make(), totalSteps: 100_000 })
 * ```
 */
import { Context, Effect, type Scope } from "effect"
import type { BatchEnv, BatchOptions } from "./BatchEnv.ts"
import type { Env } from "./Env.ts"
import { type EnvError, invalid } from "./EnvError.ts"
import { envConfigOf } from "./Envs.ts"
import type { EnvConfig } from "./recipe.ts"

export interface PoolOptions extends Partial<Pick<BatchOptions, "autoReset" | "firstIndex">> {
  /** The number of threads. */
  readonly workers: number
  /** The number of seconds to wait for the threads to finish a step; after that, the step throws. Default: 60. */
  readonly timeoutSeconds?: number
}

/** The information by which a worker finds an env: its id, and the module that exports it or its config. */
export interface Place {
  readonly id: string
  readonly module?: string
  readonly config?: EnvConfig
}

const modules = new WeakMap<Env, string>()

/** Returns a copy of the env that workers can import from this module: `located(env, import.meta.url)`. */
export const located = <E extends Env>(env: E, module: string): E => {
  const copy = { ...env }
  modules.set(copy, module)
  return copy
}

/** Returns the `Place` of an env; undefined if workers can't find it, because it has neither a module nor a config. */
export const placeOf = (env: Env): Place | undefined => {
  const module = modules.get(env)
  if (module !== undefined) return { id: env.id, module }
  const config = envConfigOf(env)
  return config === undefined ? undefined : { id: env.id, config }
}

export interface EnvPoolService {
  /** Makes a batch that is stepped by threads, which end with the scope. Its results equal those of `Batch.make`. */
  readonly make: (env: Env, numEnvs: number, options: PoolOptions) => Effect.Effect<BatchEnv, EnvError, Scope.Scope>
}

/** The service. By default `make` fails; the Layers of `effect-rl/node` provide one that starts threads. */
export const EnvPool = Context.Reference<EnvPoolService>("effect-rl/env/EnvPool", {
  defaultValue: () => ({
    make: (env, _numEnvs, { workers }) =>
      Effect.fail(
        invalid(
          env.id,
          `${workers} workers need threads, which this platform doesn't have; provide the Layers of effect-rl/node`,
        ),
      ),
  }),
})
