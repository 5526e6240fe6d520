import { Effect } from "effect"
import { messageOf } from "../../config/text.ts"
import { EnvError } from "../EnvError.ts"

/** What an env's author may give: a value, or an Effect of it. */
export type OrEffect<A> = A | Effect.Effect<A, EnvError>

/** What is said of an env that breaks its rules. */
export interface Guard {
  readonly wrong: (step: number, message: string, stack?: string) => EnvError
  /** Runs an author's function; what it throws is an `EnvError` that says where. */
  readonly run: <A>(step: number, where: string, run: () => OrEffect<A>) => Effect.Effect<A, EnvError>
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
    run: (step, where, run) =>
      Effect.suspend(() => {
        try {
          const made = run()
          return Effect.isEffect(made) ? made : Effect.succeed(made)
        } catch (error) {
          const stack = error instanceof Error ? error.stack : undefined
          return Effect.fail(wrong(step, `threw at ${where}: ${messageOf(error)}`, stack))
        }
      }),
  }
}
