/** Remembers, in memory, from which name and options an env was made, so that a run's config can hold its env. */
import type { Plain } from "../config/Config.ts"
import type { Env } from "./Env.ts"

/** An env in a config: the id of a built-in one, or a name with options such as `{ name: "KeyDoor", size: 12 }`. */
export type EnvConfig = string | Plain

// The map is keyed by the object: a copy of an env may have other functions, so it has no config.
const recipes = new WeakMap<Env, Plain>()

/** Records the name and options that made an env, and returns the env. */
export const withRecipe = <E extends Env>(env: E, name: string, options: object): E => {
  const present = Object.entries(options).filter(([, value]) => value !== undefined)
  recipes.set(env, { name, ...Object.fromEntries(present) })
  return env
}

/** Returns the name and options that made this env; undefined if none were recorded. */
export const recipeOf = (env: Env): Plain | undefined => recipes.get(env)
