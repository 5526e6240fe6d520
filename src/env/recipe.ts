import type { Plain } from "../config/Config.ts"
import type { Env } from "./Env.ts"

/** An env as a config says it: a built-in one by its id, one with options as `{ name: "KeyDoor", size: 12 }`. */
export type Said = string | Plain

// By identity: a copy with a function of its own is another env, which no config can say.
const recipes = new WeakMap<Env, Plain>()

/** The env, remembered with what would make it again. */
export const withRecipe = <E extends Env>(env: E, name: string, options: object): E => {
  const given = Object.entries(options).filter(([, value]) => value !== undefined)
  recipes.set(env, { name, ...Object.fromEntries(given) })
  return env
}

export const recipeOf = (env: Env): Plain | undefined => recipes.get(env)

/** The same of an env made from another, where that one can be made again. */
export const wrapRecipe = <E extends Env>(env: E, inner: Said | undefined, name: string, options: object): E =>
  inner === undefined ? env : withRecipe(env, name, { ...options, env: inner })
