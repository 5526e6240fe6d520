/** Remembers in memory an env's recipe, i.e. the name and options that made it, so that a config can hold it. */
import type { Plain } from "../../base/config/Config.ts"
import type { Env } from "./Env.ts"

/** An env in a config: the id of a built-in one, or a name with options such as `{ name: "KeyDoor", size: 12 }`. */
export type EnvConfig = string | Plain

// The key is the env object, not its id: a copy such as `{ ...env, step }` may behave differently, so it has no recipe.
const recipes = new WeakMap<Env, Plain>()

/** Records the name and options that made an env, and returns the env. */
export const withRecipe = <E extends Env>(env: E, name: string, options: object): E => {
  const present = Object.entries(options).filter(([, value]) => value !== undefined)
  recipes.set(env, { name, ...Object.fromEntries(present) })
  return env
}

/** Returns the name and options that made this env; undefined if none were recorded. */
export const recipeOf = (env: Env): Plain | undefined => recipes.get(env)
