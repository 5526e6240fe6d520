import { Effect } from "effect"
import { messageOf } from "../config/text.ts"
import type { ToolSpec } from "../lm/Chat.ts"
import { EnvError } from "../env/EnvError.ts"

/** What an env's author may give: a value, or an Effect of it. */
export type OrEffect<A> = A | Effect.Effect<A, EnvError>

/** What is said of an env that breaks its rules. */
export interface Guard {
  readonly wrong: (step: number, message: string, stack?: string) => EnvError
  /** Runs an author's function; what it or its Effect throws is an `EnvError` that says where. */
  readonly run: <A>(step: number, where: string, run: () => OrEffect<A>) => Effect.Effect<A, EnvError>
}

/** What is said to who calls something that isn't there. */
export const noTool = (tools: ReadonlyArray<ToolSpec>, called: string) => {
  const known = tools.length === 0 ? "" : `; there are ${tools.map(({ name }) => name).join(", ")}`
  return { content: `There is no tool "${called}"${known}.`, isError: true }
}

/** Why a value can't be in a file of scores or rollouts, if so: a bigint is in it, or it is in itself. */
export const unkeepable = (value: unknown): string | undefined => {
  try {
    JSON.stringify(value)
    return undefined
  } catch (error) {
    return `${messageOf(error)}; expected what JSON can hold`
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
