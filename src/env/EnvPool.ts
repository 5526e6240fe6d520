/**
 * Where the envs of a batch are stepped: here, or shared out among worker threads (heavy envs: a step of them must cost
 * more than waking a thread).
 *
 * A function can't be sent to a thread, so a worker imports the env by itself: a built-in one, also with options or wrapped, as
 * a config would say it; one's own from the module that exports it, which `located` says.
 *
 * @example
 * ```ts
 * export const river = EnvPool.located(Env.make(definition), import.meta.url)
 * export default Train.run({ env: river, numEnvs: 16, workers: 4, algorithm: Ppo.make(), totalSteps: 100_000 })
 * ```
 */
import { Context, Effect, type Scope } from "effect"
import type { AutoReset, BatchEnv } from "./BatchEnv.ts"
import type { Env } from "./Env.ts"
import { EnvError } from "./EnvError.ts"
import { saidOf } from "./Envs.ts"
import type { Said } from "./recipe.ts"

export interface PoolOptions {
  /** Threads. */
  readonly workers: number
  readonly autoReset?: AutoReset
  readonly firstIndex?: number
  /** A step that takes longer fails, instead of waiting for ever. 60 by default. */
  readonly timeoutSeconds?: number
}

/** How a worker finds an env: as an export of a module, or as a config says it. */
export interface Place {
  readonly id: string
  readonly module?: string
  readonly said?: Said
}

const modules = new WeakMap<Env, string>()

/** The same env, with the module that exports it: `located(env, import.meta.url)`. */
export const located = <E extends Env>(env: E, module: string): E => {
  const copy = { ...env }
  modules.set(copy, module)
  return copy
}

/** Where a worker finds an env; undefined for one that only this thread has. */
export const placeOf = (env: Env): Place | undefined => {
  const module = modules.get(env)
  if (module !== undefined) return { id: env.id, module }
  const said = saidOf(env)
  return said === undefined ? undefined : { id: env.id, said }
}

export interface EnvPoolService {
  /** A batch stepped by threads that end with the scope; to the bit what `Batch.make` gives. */
  readonly make: (env: Env, numEnvs: number, options: PoolOptions) => Effect.Effect<BatchEnv, EnvError, Scope.Scope>
}

/** `effect-rl/node` provides threads; without them, asking for workers is an error that says so. */
export const EnvPool = Context.Reference<EnvPoolService>("effect-rl/env/EnvPool", {
  defaultValue: () => ({
    make: (env, _numEnvs, { workers }) =>
      Effect.fail(
        new EnvError({
          env: env.id,
          message: `${env.id}: ${workers} workers were asked for, but there is nothing here to run them; the Layers of effect-rl/node have threads`,
        }),
      ),
  }),
})
