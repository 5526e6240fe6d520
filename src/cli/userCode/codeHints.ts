/** Adds hints to config errors that are probably caused by a missing program or a file with only some settings. */
import { Effect } from "effect"
import { ConfigError, isPlain } from "../../config/Config.ts"
import { kindOf } from "../../run/RunSpec.ts"

type Failing<A, E, R> = Effect.Effect<A, E | ConfigError, R>

const withHint =
  (reword: (message: string) => string) =>
  <A, E, R>(training: Failing<A, E, R>): Failing<A, E, R> =>
    Effect.mapError(training, (error) => (error instanceof ConfigError ? error.reworded(reword) : error))

/** Says how the user can tell a subcommand which program defines an env or an algorithm. */
export interface ProgramHint {
  readonly text: string
  /**
   * Tells whether the config was saved by a run. The names in it were valid when it ran, so a list of the built-in
   * names is no help.
   */
  readonly ofRun: boolean
}

/** Adds the hint to the error of a config that names an env or an algorithm which isn't built in. */
export const withProgramHint = ({ text, ofRun }: ProgramHint) =>
  withHint((message) =>
    /unknown (env|algorithm) "|learns from demonstrations, which/.test(message)
      ? `${ofRun ? withoutNames(message) : message}; ${text}`
      : message,
  )

const withoutNames = (message: string): string => message.replace(/; (?:expected one of|known:|did you mean) [^;]*/, "")

/**
 * Adds a hint to the error of a config that lacks the keys which every training needs: how to use a file with only some
 * settings.
 */
export const withFragmentHint = (config: unknown, file: string) => {
  const needed = kindOf(config) === "agents" ? ["agent"] : ["env", "algorithm"]
  const isWhole = isPlain(config) && needed.every((key) => key in config)
  return withHint((message) =>
    !isWhole && message.includes("missing key")
      ? `${message}; a file with only some settings goes with a program: effect run FILE.ts --config ${file}`
      : message,
  )
}
