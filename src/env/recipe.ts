import type { Plain } from "../config/Config.ts"
import type { Env } from "./Env.ts"

/** An env in a config: the id of a built-in one, or a name with options such as `{ name: "KeyDoor", size: 12 }`. */
export type EnvConfig = string | Plain

// The map is keyed by identity: a copy of an env with another function is another env, which no config can describe.
const recipes = new WeakMap<Env, Plain>()

/** Records the name and options that made an env, and returns the env. */
export const withRecipe = <E extends Env>(env: E, name: string, options: object): E => {
  const present = Object.entries(options).filter(([, value]) => value !== undefined)
  recipes.set(env, { name, ...Object.fromEntries(present) })
  return env
}

export const recipeOf = (env: Env): Plain | undefined => recipes.get(env)
