/** Decodes the arguments of tool calls, for the tools of agents and of envs. */
import { Effect, type Schema } from "effect"
import { decode } from "../../base/config/Config.ts"
import { jsonValue, messageOf } from "../../base/text/text.ts"
import type { ToolCall } from "./Chat.ts"

/** Decodes the arguments of a call with a Schema. Fails with a text that tells the model what is wrong with them. */
export const toolArguments = Effect.fnUntraced(function* <Parameters extends Schema.Codec<unknown, unknown>>(
  parameters: Parameters,
  { name, arguments: text }: ToolCall,
): Effect.fn.Return<Parameters["Type"], string> {
  const json = yield* Effect.try({
    try: () => jsonValue(text.trim() === "" ? "{}" : text),
    catch: (error) => `The arguments of ${name} are not JSON (${messageOf(error)}); expected an object.`,
  })
  return yield* Effect.mapError(
    decode(parameters, json, { source: name }),
    ({ message }) => `The arguments are invalid: ${message}`,
  )
})
