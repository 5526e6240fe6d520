/** Reads environment variables. */
import { Effect } from "effect"
import * as Config from "effect/Config"

/** Returns the value of a variable without the spaces around it; empty if it is not set. */
export const variable = (name: string): Effect.Effect<string> =>
  Effect.map(
    Effect.orElseSucceed(Config.String(name), () => ""),
    (value) => value.trim(),
  )
