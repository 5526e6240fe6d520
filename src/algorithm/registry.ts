import { Effect } from "effect"
import { closest } from "../config/closest.ts"
import { ConfigError } from "../config/Config.ts"
import * as A2c from "./A2c.ts"
import type { Algorithm } from "./Algorithm.ts"
import * as Ppo from "./Ppo.ts"

const algorithms: Readonly<Record<string, () => Algorithm>> = {
  a2c: () => A2c.make(),
  ppo: () => Ppo.make(),
}

/** A built-in algorithm with its defaults, by the name it goes by in a config. */
export const byName = (name: string, source: string): Effect.Effect<Algorithm, ConfigError> => {
  if (Object.hasOwn(algorithms, name)) return Effect.sync(algorithms[name])
  const names = Object.keys(algorithms)
  const suggestion = closest(name, names)
  const hint = suggestion === undefined ? `known: ${names.join(", ")}` : `did you mean "${suggestion}"?`
  return Effect.fail(
    new ConfigError({ source, key: "algorithm", message: `${source}: unknown algorithm "${name}"; ${hint}` }),
  )
}
