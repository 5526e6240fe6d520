/**
 * From what a model said to what is done: a parser takes an action out of a completion, or says what to tell the model
 * instead. A failed parse never reaches the env.
 *
 * @example
 * ```ts
 * const parse = Parser.tagged("move")
 * parse("<think>a fork!</think><move>b2</move>") // { _tag: "Parsed", action: "b2", reward: 0 }
 * parse("b2") // { _tag: "Failed", feedback: "Answer with <move>…</move>.", reward: -0.1 }
 * ```
 */
import { Schema } from "effect"

export const ParseResult = Schema.Union([
  Schema.TaggedStruct("Parsed", {
    action: Schema.String,
    /** For keeping to the form; it is added to the env's. */
    reward: Schema.Finite,
  }),
  Schema.TaggedStruct("Failed", {
    /** What the model sees in the place of an observation. */
    feedback: Schema.String,
    /** Zero or less. */
    reward: Schema.Finite,
  }),
])
export type ParseResult = typeof ParseResult.Type

export type Parser = (text: string) => ParseResult

/** What a failed parse costs, unless something else is said. */
export const defaultPenalty = -0.1

/** All of the text, without the space around it. */
export const whole: Parser = (text) => ({ _tag: "Parsed", action: text.trim(), reward: 0 })
