/** Finds where a config's results folder lies. It reads an environment variable. `execute.ts` and the CLI call it. */
import { Config, Effect, Option, Path } from "effect"

/** Returns the path `resultsDir`, inside the folder that the environment variable `LOGS_DIR` names if that is set. */
export const logsDir = Effect.fnUntraced(function* (resultsDir: string): Effect.fn.Return<string, never, Path.Path> {
  const parent = yield* Effect.orElseSucceed(Config.option(Config.String("LOGS_DIR")), Option.none)
  return Option.isNone(parent) ? resultsDir : (yield* Path.Path).join(parent.value, resultsDir)
})
