/** Defines the config of answers in a format that is no JSON. */
import { Schema } from "effect"

/** The format of an answer: a regular expression that the whole text matches, or the texts of which it is one. */
export const TextFormat = Schema.Union([
  Schema.Struct({ type: Schema.Literal("regex"), regex: Schema.NonEmptyString }),
  Schema.Struct({ type: Schema.Literal("choice"), choices: Schema.NonEmptyArray(Schema.NonEmptyString) }),
])
export type TextFormat = typeof TextFormat.Type
