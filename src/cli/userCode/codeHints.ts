import { Effect } from "effect"
import { isPlain } from "../../config/Config.ts"
import { kindOf } from "../../run/RunSpec.ts"
import type { Training } from "./loadTraining.ts"

/** How a command is given the program that defines an env or an algorithm. */
export interface ProgramHint {
  readonly text: string
  /** Whether the config is a run's own: then its names were right, and a list of the built-in ones is no help. */
  readonly ofRun: boolean
}

/** Adds how to name the program that defines an env or an algorithm, when a config's own name for one is not known. */
export const withProgramHint = (training: Training, { text, ofRun }: ProgramHint): Training =>
  Effect.catchTag(training, "ConfigError", (error) =>
    Effect.fail(
      /unknown (env|algorithm) "|learns from demonstrations, which/.test(error.message)
        ? error.reworded((message) => `${ofRun ? withoutNames(message) : message}; ${text}`)
        : error,
    ),
  )

const withoutNames = (message: string): string => message.replace(/; (?:expected one of|known:|did you mean) [^;]*/, "")

/** Adds what a file with only some settings is for, when a config lacks what every training needs. */
export const withFragmentHint = (training: Training, config: unknown, file: string): Training => {
  const needed = kindOf(config) === "agents" ? ["agent"] : ["env", "algorithm"]
  if (isPlain(config) && needed.every((key) => key in config)) return training
  return Effect.catchTag(training, "ConfigError", (error) => {
    const hint = `a file with only some settings goes with a program: effect run FILE.ts --config ${file}`
    return Effect.fail(
      error.message.includes("missing key") ? error.reworded((message) => `${message}; ${hint}`) : error,
    )
  })
}
