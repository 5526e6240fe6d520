import { Effect, type Schema } from "effect"
import { decode } from "../config/Config.ts"
import { messageOf } from "../config/text.ts"
import type { ToolCall } from "./Chat.ts"

/**
 * The arguments of a call, by a Schema; what is wrong with them is said in words for the model.
 *
 * @example
 * ```ts
 * yield* toolArguments(Schema.Struct({ a: Schema.Int }), { id: "1", name: "add", arguments: '{"a": 1}' }) // { a: 1 }
 * ```
 */
export const toolArguments = Effect.fnUntraced(function* <Parameters extends Schema.Codec<unknown, unknown>>(
  parameters: Parameters,
  { name, arguments: said }: ToolCall,
): Effect.fn.Return<Parameters["Type"], string> {
  const written = yield* Effect.try({
    try: (): unknown => JSON.parse(said.trim() === "" ? "{}" : said),
    catch: (error) => `The arguments of ${name} are no JSON (${messageOf(error)}); expected an object.`,
  })
  return yield* Effect.mapError(
    decode(parameters, written, { source: name }),
    ({ message }) => `The arguments won't do: ${message}`,
  )
})
