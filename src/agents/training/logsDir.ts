/** Finds the results folder of a config. It reads an environment variable. */
import { Config, Effect, Option, Path } from "effect"

/** Returns the path `resultsDir`, inside the folder in the environment variable `LOGS_DIR`, if that is set. */
export const logsDir = Effect.fnUntraced(function* (resultsDir: string): Effect.fn.Return<string, never, Path.Path> {
  const parent = yield* Effect.orElseSucceed(Config.option(Config.String("LOGS_DIR")), Option.none)
  return Option.isNone(parent) ? resultsDir : (yield* Path.Path).join(parent.value, resultsDir)
})
