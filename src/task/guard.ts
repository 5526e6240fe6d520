/** Checks the functions that the author of an env writes. `TextEnv` and `MultiTextEnv` use it. */
import { Effect } from "effect"
import { messageOf } from "../config/text.ts"
import type { ToolSpec } from "../lm/Chat.ts"
import { EnvError } from "../env/EnvError.ts"

/** The result of a function that the author of an env writes: a value, or an Effect of it. */
export type OrEffect<A> = A | Effect.Effect<A, EnvError>

/** Runs the functions of an env's author, and makes an `EnvError` if they break the rules. */
interface Guard {
  readonly wrong: (step: number, message: string, stack?: string) => EnvError
  /**
   * Runs a function of the env's author. An exception in it or in its Effect becomes an `EnvError` that names the place
   * `where`.
   */
  readonly run: <A>(step: number, where: string, run: () => OrEffect<A>) => Effect.Effect<A, EnvError>
}

/** Returns the result for the call of a tool that does not exist. */
export const noTool = (tools: ReadonlyArray<ToolSpec>, called: string) => {
  const available = tools.length === 0 ? "" : `; there are ${tools.map(({ name }) => name).join(", ")}`
  return { content: `There is no tool "${called}"${available}.`, isError: true }
}

/**
 * Returns the reason why a value cannot be saved as JSON, such as a bigint or a cycle; undefined if it can be saved.
 */
export const notJson = (value: unknown): string | undefined => {
  try {
    JSON.stringify(value)
    return undefined
  } catch (error) {
    return `${messageOf(error)}; expected values that JSON can hold`
  }
}

export const guardOf = (id: string): Guard => {
  const wrong: Guard["wrong"] = (step, message, stack) =>
    new EnvError({
      env: id,
      step,
      message: `env "${id}" ${message}`,
      ...(stack === undefined ? {} : { userStack: stack }),
    })
  return {
    wrong,
    run: (step, where, run) => {
      const thrown = (error: unknown) =>
        Effect.fail(
          wrong(step, `threw at ${where}: ${messageOf(error)}`, error instanceof Error ? error.stack : undefined),
        )
      return Effect.suspend(() => {
        try {
          const made = run()
          return Effect.isEffect(made) ? Effect.catchDefect(made, thrown) : Effect.succeed(made)
        } catch (error) {
          return thrown(error)
        }
      })
    },
  }
}
