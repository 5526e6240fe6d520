/** Makes placeholders for the envs of other programs, for a training that is only planned: no program is started. */
import { Effect } from "effect"
import type { Env } from "../Env.ts"
import { invalid } from "../../../base/EnvError.ts"
import { elsewhere } from "../internal/elsewhere.ts"
import { withRecipe } from "../recipe.ts"
import { box, discrete } from "../Space.ts"
import type { ForeignEnvsService } from "./options.ts"

const unstarted = new WeakSet<Env>()

/** Tells whether an env is such a placeholder, whose spaces are not the real ones. */
export const isUnstarted = (env: Env): boolean => unstarted.has(env)

const standIn = (name: string, { id, ...options }: { readonly id: string }): Env => {
  const actionSpace = discrete(1)
  const env: Env = {
    id,
    observationSpace: box(0, 1, [1]),
    actionSpace,
    ...elsewhere({ id, actionSpace }, false),
    open: () => Effect.fail(invalid(id, "its program was not started")),
  }
  unstarted.add(env)
  return withRecipe(env, name, { id, ...options })
}

/** The service that makes placeholders instead of starting programs. */
export const unstartedEnvs: ForeignEnvsService = {
  gymnasium: (options) => standIn("Gymnasium", options),
  pettingZoo: (options) => standIn("PettingZoo", options),
  command: (options) => standIn("ForeignEnv", options),
  openEnv: (options) => Effect.succeed(standIn("OpenEnv", options)),
}
