/**
 * What a model may call: a name, a description, and parameters by a Schema. Whatever goes wrong with a call is its
 * result, which the model sees and can act upon.
 *
 * @example
 * ```ts
 * const add = Tool.make({
 *   name: "add",
 *   description: "The sum of two numbers.",
 *   parameters: Schema.Struct({ a: Schema.Finite, b: Schema.Finite }),
 *   run: ({ a, b }) => Effect.succeed(a + b),
 * })
 * const result = yield* add.call({ id: "1", name: "add", arguments: '{"a": 1, "b": 2}' }) // content: "3"
 * ```
 */
import { Cause, Duration, Effect, type Schema } from "effect"
import { jsonSchema } from "../config/jsonSchema.ts"
import { messageOf, oneLine } from "../config/text.ts"
import type { ToolCall, ToolSpec } from "../lm/Chat.ts"
import { toolArguments } from "../lm/toolArguments.ts"
import type { ToolResult } from "./Agent.ts"

export interface Tool {
  readonly spec: ToolSpec
  /** Never fails: what goes wrong is a result with `isError`. */
  readonly call: (call: ToolCall) => Effect.Effect<ToolResult>
}

export interface ToolRules<Parameters extends Schema.Codec<unknown, unknown>, E> {
  readonly name: string
  readonly description: string
  /** Of an object. */
  readonly parameters: Parameters
  /** Text is the result as it is; anything else becomes JSON. */
  readonly run: (parameters: Parameters["Type"]) => Effect.Effect<Schema.Json, E>
  /** 30 seconds unless given. */
  readonly timeout?: Duration.Input
}

/** The result that says what was wrong with a call. */
export const failed = (call: ToolCall, content: string): ToolResult => ({
  toolCallId: call.id,
  toolName: call.name,
  content,
  isError: true,
})

/** A tool over the Schema of its parameters, which are decoded before it runs. */
export const make = <Parameters extends Schema.Codec<unknown, unknown>, E>(rules: ToolRules<Parameters, E>): Tool => {
  const { name, description, parameters, run } = rules
  const timeout = Duration.fromInputUnsafe(rules.timeout ?? "30 seconds")
  return {
    spec: { name, description, parameters: jsonSchema(parameters) },
    call: (call) =>
      Effect.gen(function* () {
        const decoded = yield* toolArguments(parameters, call)
        const answer = yield* Effect.suspend(() => run(decoded)).pipe(
          Effect.mapError((error) => `${name} failed: ${messageOf(error)}`),
          Effect.timeoutOrElse({
            duration: timeout,
            orElse: () => Effect.fail(`${name} took longer than ${Duration.format(timeout)} and was stopped.`),
          }),
          // A defect of one tool is no end of the run, nor is it when one interrupts itself; who interrupts us isn't caught.
          Effect.catchDefect((defect) => Effect.fail(`${name} failed: ${messageOf(defect)}`)),
          Effect.catchCauseIf(Cause.hasInterruptsOnly, () => Effect.fail(`${name} failed: it was interrupted`)),
        )
        return {
          toolCallId: call.id,
          toolName: name,
          content: typeof answer === "string" ? answer : JSON.stringify(answer),
          isError: false,
        }
      }).pipe(Effect.catch((message) => Effect.succeed(failed(call, oneLine(message))))),
  }
}
