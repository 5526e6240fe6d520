/**
 * Steps the envs of a batch in this thread, or on worker threads. Threads pay off for heavy envs, whose step costs more
 * than waking a thread.
 *
 * A function cannot be sent to a thread, so each worker imports the env: a built-in one (also with options or wrappers)
 * by its config, your own from the module that exports it with `located`.
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
  /** The number of seconds after which a step fails, instead of waiting for ever. Default: 60. */
  readonly timeoutSeconds?: number
}

/** How a worker finds an env: as an export of a module, or by its config. */
export interface Place {
  readonly id: string
  readonly module?: string
  readonly config?: EnvConfig
}

const modules = new WeakMap<Env, string>()

/** Marks an env with the module that exports it: `located(env, import.meta.url)`. */
export const located = <E extends Env>(env: E, module: string): E => {
  const copy = { ...env }
  modules.set(copy, module)
  return copy
}

/** Returns how a worker finds an env; undefined if no worker can find it, because only this thread has it. */
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

/** Makes batches without threads. `effect-rl/node` provides threads; otherwise, asking for workers is an error. */
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
