/** Parsers from what a config says of them. */
import { Schema } from "effect"
import { boxed, json, orElse, type Parser, tagged, whole } from "./Parser.ts"

const One = Schema.Union([
  Schema.Literals(["whole", "boxed"]),
  Schema.Struct({ tag: Schema.NonEmptyString }),
  Schema.Struct({ json: Schema.NonEmptyString }),
])

/** `whole`, `boxed`, `{ tag: move }`, `{ json: answer }`, or a list of such, of which the first that can read counts. */
export const ParserConfig = Schema.Union([One, Schema.NonEmptyArray(One)])
export type ParserConfig = typeof ParserConfig.Type

const one = (config: typeof One.Type): Parser => {
  if (config === "whole") return whole
  if (config === "boxed") return boxed()
  if ("tag" in config) return tagged(config.tag)
  const key = config.json
  const Value = Schema.Union([Schema.String, Schema.Finite, Schema.Boolean])
  return json(Schema.Struct({ [key]: Value }), { action: (value) => String(value[key]) })
}

const isList = (config: ParserConfig): config is Extract<ParserConfig, ReadonlyArray<unknown>> => Array.isArray(config)

/**
 * The parser that a config means.
 *
 * @example
 * ```ts
 * fromConfig([{ tag: "answer" }, "boxed"])("so \\boxed{7}") // { _tag: "Parsed", action: "7", reward: 0 }
 * ```
 */
export const fromConfig = (config: ParserConfig): Parser => {
  if (!isList(config)) return one(config)
  const [first, ...others] = config
  return orElse(one(first), ...others.map(one))
}
