/**
 * Defines tools of an env: a name, a description, parameters with a Schema, and a function from state to state. A wrong call
 * doesn't change the state; its result is an error that the model sees and can react to.
 *
 * @example
 * ```ts
 * const deposit = EnvTool.make({
 *   name: "deposit",
 *   description: "Puts money into the account.",
 *   parameters: Schema.Struct({ amount: Schema.Int }),
 *   run: (balance: number, { amount }) =>
 *     amount > 0 ? { state: balance + amount, content: "done" } : { problem: "expected more than nothing" },
 * })
 * const env = TextEnv.make({ ...rules, ...EnvTool.all([deposit]) })
 * ```
 */
import { Effect, type Schema } from "effect"
import { jsonSchema } from "../../base/config/jsonSchema.ts"
import type { ToolCall, ToolSpec } from "../lm/Chat.ts"
import { toolArguments } from "../lm/toolArguments.ts"
import type { CallResult, TextRules } from "./TextEnv.ts"

/**
 * The return value of a tool's function: the new state and a result (a text, or a value that becomes JSON), or a problem,
 * which is shown to the model.
 */
export type ToolOutcome<State> = { readonly state: State; readonly content: Schema.Json } | { readonly problem: string }

export interface EnvTool<State> {
  readonly spec: ToolSpec
  readonly call: (state: State, call: ToolCall) => Effect.Effect<CallResult & { readonly state: State }>
}

/** Makes a tool. Its parameters are decoded before its function runs. */
export const make = <State, Parameters extends Schema.Codec<unknown, unknown>>(tool: {
  readonly name: string
  readonly description: string
  /** The Schema of the parameters, which must be an object. */
  readonly parameters: Parameters
  readonly run: (state: State, parameters: Parameters["Type"]) => ToolOutcome<State>
}): EnvTool<State> => {
  const { name, description, parameters, run } = tool
  let schema: ToolSpec["parameters"] | undefined
  return {
    spec: {
      name,
      description,
      // The Schema is made when it is first read, because the tools of all games are defined when the library is loaded.
      get parameters() {
        return (schema ??= jsonSchema(parameters))
      },
    },
    call: (state, call) =>
      Effect.gen(function* () {
        const decoded = yield* toolArguments(parameters, call)
        const done = run(state, decoded)
        if ("problem" in done) return yield* Effect.fail(done.problem)
        const { content } = done
        return { state: done.state, content: typeof content === "string" ? content : JSON.stringify(content) }
      }).pipe(Effect.catch((content) => Effect.succeed({ state, content, isError: true }))),
  }
}

/** Returns the two fields, `tools` and `call`, that these tools add to an env's rules. */
export const all = <State>(
  tools: ReadonlyArray<EnvTool<State>>,
): Required<Pick<TextRules<State>, "tools" | "call">> => {
  const byName = new Map(tools.map((tool) => [tool.spec.name, tool]))
  return {
    tools: tools.map(({ spec }) => spec),
    call: (state, call) =>
      byName.get(call.name)?.call(state, call) ??
      Effect.succeed({ state, content: `There is no tool "${call.name}".`, isError: true }),
  }
}
