import { Config, Effect, Option, Path } from "effect"

/** People who keep all logs in one place say so in the environment. */
export const logsDir = Effect.fnUntraced(function* (resultsDir: string): Effect.fn.Return<string, never, Path.Path> {
  const before = yield* Effect.orElseSucceed(Config.option(Config.String("LOGS_DIR")), Option.none)
  return Option.isNone(before) ? resultsDir : (yield* Path.Path).join(before.value, resultsDir)
})
