/**
 * Declares the service that makes batches whose envs are stepped by worker threads. Training uses it if `workers` is
 * set. Threads are faster only for envs whose step takes longer than waking a thread.
 *
 * A function cannot be sent to a thread, so each worker gets the env itself: it makes a built-in env (also with options
 * or wrappers) from its config, and imports your own env from your module, which must export `located(env, …)`.
 *
 * @example
 * ```ts
 * export const river = EnvPool.located(Env.make(definition), import.meta.url)
 * export default Train.run({ env: river, numEnvs: 16, workers: 4, algorithm: Ppo.make(), totalSteps: 100_000 })
 * ```
 */
import { Context, Effect, type Scope } from "effect"
import type { BatchEnv, EnvBatchOptions } from "./BatchEnv.ts"
import type { Env } from "./Env.ts"
import { type EnvError, invalid } from "../../base/EnvError.ts"
import { envConfigOf } from "./Envs.ts"
import type { EnvConfig } from "./recipe.ts"

export interface PoolOptions extends Partial<Pick<EnvBatchOptions, "autoReset" | "firstIndex">> {
  /** The number of threads. */
  readonly workers: number
  /** The number of seconds to wait for the threads to finish a step; after that, the step throws. Default: 60. */
  readonly timeoutSeconds?: number
}

/** Tells a worker how to get an env with this id: either from its config, or from the module that exports it. */
export interface EnvSource {
  readonly id: string
  readonly module?: string
  readonly config?: EnvConfig
}

const modules = new WeakMap<Env, string>()

/** Returns a copy of the env that workers import from the module with this URL: `located(env, import.meta.url)`. */
export const located = <E extends Env>(env: E, module: string): E => {
  const copy = { ...env }
  modules.set(copy, module)
  return copy
}

/** Returns the `EnvSource` of an env; undefined if workers can't find it, because it has neither a module nor a config. */
export const placeOf = (env: Env): EnvSource | undefined => {
  const module = modules.get(env)
  if (module !== undefined) return { id: env.id, module }
  const config = envConfigOf(env)
  return config === undefined ? undefined : { id: env.id, config }
}

export interface EnvPoolService {
  /** Makes a batch stepped by threads, with the same results as `Batch.make`. Closing the scope ends the threads. */
  readonly make: (env: Env, numEnvs: number, options: PoolOptions) => Effect.Effect<BatchEnv, EnvError, Scope.Scope>
}

/** The service that makes pools. Its default `make` fails; the Layers of `effect-rl/node` provide one with threads. */
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
