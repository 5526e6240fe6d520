/** Calls the functions that the author of an env writes, and checks their results, for `TextEnv` and `MultiTextEnv`. */
import { Effect } from "effect"
import { messageOf } from "../../base/text/text.ts"
import type { ToolCall, ToolSpec } from "../lm/Chat.ts"
import type { Stream } from "../../base/rng/Rng.ts"
import { EnvError } from "../../base/EnvError.ts"
import type { CallResult, TextRules, TextStep } from "./TextEnv.ts"

/** The result of a function that the author of an env writes: a value, or an Effect that returns it. */
export type OrEffect<A, R = never> = A | Effect.Effect<A, EnvError, R>

/** Returns the reason why info or extra feedback can't be saved as JSON, e.g. because of a bigint; undefined if it can. */
export const notJson = (value: unknown, step: number): string | undefined => {
  try {
    JSON.stringify(value)
    return undefined
  } catch (error) {
    return `gave an info or extra feedback at step ${step}: ${messageOf(error)}; expected values that JSON can hold`
  }
}

/** Returns `wrong`, which makes an `EnvError` about this env, and `run`, which calls a function of the env's author. */
export const guardOf = (id: string) => {
  const wrong = (step: number, message: string, stack?: string): EnvError =>
    new EnvError({
      env: id,
      step,
      message: `env "${id}" ${message}`,
      ...(stack === undefined ? {} : { userStack: stack }),
    })
  /** Runs a function of the env's author. An exception in it or its Effect becomes an `EnvError` that names `where`. */
  const run = <A, R = never>(
    step: number,
    where: string,
    body: () => OrEffect<A, R>,
  ): Effect.Effect<A, EnvError, R> => {
    const thrown = (error: unknown) =>
      Effect.fail(
        wrong(step, `threw at ${where}: ${messageOf(error)}`, error instanceof Error ? error.stack : undefined),
      )
    return Effect.suspend(() => {
      try {
        const made = body()
        return Effect.isEffect(made) ? Effect.catchDefect(made, thrown) : Effect.succeed(made)
      } catch (error) {
        return thrown(error)
      }
    })
  }
  return { wrong, run }
}

/** Returns the fields of an env that are copied from its rules, with defaults: all fields except functions. */
export const headOf = ({
  id,
  type,
  metadata = {},
  content,
  maxSteps,
  tools = [],
  target,
  demonstrate,
}: Omit<TextRules<never>, "begin" | "step" | "call">) => ({
  id,
  type,
  metadata,
  ...(content !== undefined && { content }),
  ...(maxSteps !== undefined && { maxSteps }),
  ...(tools.length > 0 && { tools }),
  ...(target !== undefined && { target }),
  ...(demonstrate !== undefined && { demonstrate }),
})

/** Keeps the state of an episode, and counts its steps and tool calls. After the end of the episode, both fail. */
export const lifeOf = <State>(
  { wrong, run }: ReturnType<typeof guardOf>,
  tools: ReadonlyArray<ToolSpec>,
  first: State,
  random: Stream,
) => {
  let state = first
  let steps = 0
  let calls = 0
  let over = false
  return {
    /**
     * Takes a step with the author's `rule`. If `check` refuses the result, the state stays the same and the step does not
     * count.
     */
    step: <Result extends Pick<TextStep, "terminated" | "truncated"> & { readonly state: State }, A>(
      rule: (state: State, random: Stream, steps: number) => OrEffect<Result>,
      check: (result: Result, number: number) => Effect.Effect<A, EnvError>,
    ): Effect.Effect<A, EnvError> =>
      Effect.suspend(() => {
        if (over) return Effect.fail(wrong(steps, "was stepped after its episode was over"))
        const number = steps + 1
        const stepped = run(number, `step ${number}`, () => rule(state, random.child("step", number), steps))
        return Effect.flatMap(stepped, (result) =>
          Effect.map(check(result, number), (checked) => {
            state = result.state
            steps = number
            over = result.terminated || result.truncated === true
            return checked
          }),
        )
      }),
    /** Answers a tool call with the author's `answer`. If the tool doesn't exist, the result is an error. */
    call: (
      { name: called }: ToolCall,
      answer: ((state: State, random: Stream) => OrEffect<CallResult & { readonly state: State }>) | undefined,
    ): Effect.Effect<CallResult, EnvError> =>
      Effect.suspend(() => {
        if (over) return Effect.fail(wrong(steps, "was called after its episode was over"))
        const names = tools.map(({ name }) => name)
        if (answer === undefined || !names.includes(called)) {
          const available = names.length === 0 ? "" : `; there are ${names.join(", ")}`
          return Effect.succeed({ content: `There is no tool "${called}"${available}.`, isError: true })
        }
        const number = ++calls
        const answered = run(steps, `call ${number} (of ${called})`, () => answer(state, random.child("call", number)))
        return Effect.map(answered, ({ state: next, ...result }) => {
          state = next
          return result
        })
      }),
  }
}
