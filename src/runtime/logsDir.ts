import { Config, Effect, Option, Path } from "effect"

/**
 * Returns the path of a results folder: below the folder that the environment variable `LOGS_DIR` names, if it is set.
 */
export const logsDir = Effect.fnUntraced(function* (resultsDir: string): Effect.fn.Return<string, never, Path.Path> {
  const before = yield* Effect.orElseSucceed(Config.option(Config.String("LOGS_DIR")), Option.none)
  return Option.isNone(before) ? resultsDir : (yield* Path.Path).join(before.value, resultsDir)
})
