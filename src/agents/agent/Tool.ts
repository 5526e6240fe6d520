/**
 * Makes tools that a model can call. A tool has a name, a description, and parameters by a Schema. A failure of a tool
 * becomes the result of the call, so that the model sees it and can act upon it.
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
import { jsonSchema } from "../../base/config/jsonSchema.ts"
import { messageOf, oneLine } from "../../base/text/text.ts"
import type { ToolCall, ToolSpec } from "../lm/Chat.ts"
import { toolArguments } from "../lm/toolArguments.ts"
import type { ToolResult } from "./Agent.ts"

export interface Tool {
  readonly spec: ToolSpec
  /** Runs the tool. It never fails: the failure of a call is a result with `isError`. */
  readonly call: (call: ToolCall) => Effect.Effect<ToolResult>
}

export interface ToolRules<Parameters extends Schema.Codec<unknown, unknown>, E> {
  readonly name: string
  readonly description: string
  /** The Schema of the parameters, which must be an object. */
  readonly parameters: Parameters
  /** Runs the tool and returns its result. A text is used as it is; other values become JSON. */
  readonly run: (parameters: Parameters["Type"]) => Effect.Effect<Schema.Json, E>
  /** The time limit of a call, 30 seconds by default. */
  readonly timeout?: Duration.Input
}

/** Makes the result of a tool call that failed. */
export const failed = (call: ToolCall, content: string): ToolResult => ({
  toolCallId: call.id,
  toolName: call.name,
  content,
  isError: true,
})

/** Makes a tool. The parameters of a call are decoded by the Schema before it runs. */
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
          // A tool that throws or interrupts itself must not end the run. But if the run is interrupted, so is the tool.
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
