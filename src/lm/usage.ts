import { Schema } from "effect"

/** Counts the calls to a language model, and the tokens that went in and came out. */
export const LmUsage = Schema.Struct({
  calls: Schema.Int,
  retries: Schema.Int,
  inputTokens: Schema.Int,
  outputTokens: Schema.Int,
})
export type LmUsage = typeof LmUsage.Type

export const noUsage: LmUsage = { calls: 0, retries: 0, inputTokens: 0, outputTokens: 0 }
