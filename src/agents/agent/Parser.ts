/**
 * A parser finds the action in a model's answer, or gives feedback for the model if there is none. A failed parse never
 * reaches the env.
 *
 * @example
 * ```ts
 * const parse = Parser.orElse(Parser.tagged("move"), Parser.boxed())
 * parse("<think>a fork!</think><move>b2</move>") // { _tag: "Parsed", action: "b2", reward: 0 }
 * parse("so it is \\boxed{b2}") // { _tag: "Parsed", action: "b2", reward: 0 }
 * parse("b2") // { _tag: "Failed", feedback: "Answer with <move>…</move>. Or: …", reward: -0.1 }
 * ```
 */
import { Array as Arr, Record as Records, Result, Schema } from "effect"
import { display } from "../../base/config/Config.ts"
import { oneLine, parsedJson } from "../../base/text/text.ts"
import { boxed as lastBox } from "../task/answers/text.ts"

export const ParseResult = Schema.Union([
  Schema.TaggedStruct("Parsed", {
    action: Schema.String,
    /** The reward for a well-formed answer; it is added to the env's score. */
    reward: Schema.Finite,
  }),
  Schema.TaggedStruct("Failed", {
    /** The text that the model gets as its next input, instead of an observation. */
    feedback: Schema.String,
    /** The penalty for an answer without an action: a number of at most 0. */
    reward: Schema.Finite,
  }),
])
export type ParseResult = typeof ParseResult.Type

/** Finds the action in an answer, or fails with feedback for the model. It must be a pure function of the text. */
export type Parser = (text: string) => ParseResult

/** The default penalty of a failed parse. */
export const defaultPenalty = -0.1

export interface ParserOptions {
  /** The reward for a well-formed answer, 0 by default. */
  readonly reward?: number
  /** The penalty for any other answer, as a number of at most 0; by default `defaultPenalty`. */
  readonly penalty?: number
  /** The text that the model gets after a failed parse; every parser has a default. */
  readonly feedback?: string
}

/** Makes the result for an answer with an action. */
export const parsed = (action: string, reward = 0): ParseResult => ({ _tag: "Parsed", action, reward })

/** Makes the result for an answer without an action, with the feedback for the model. */
export const refused = (feedback: string, reward = defaultPenalty): ParseResult => {
  return { _tag: "Failed", feedback, reward }
}

/** Makes the result of a failed parse, with the parser's own feedback unless the options replace it. */
const fails = ({ penalty = defaultPenalty, feedback }: ParserOptions, defaultFeedback: string): ParseResult =>
  refused(feedback ?? defaultFeedback, penalty)

/** Converts the capital letters of ASCII to small ones. Converting other letters could change the length of the text. */
const lowerCase = (text: string): string => text.replace(/[A-Z]+/g, (letters) => letters.toLowerCase())

/** Returns the whole text as the action, without whitespace at its ends. */
export const whole: Parser = (text) => parsed(text.trim())

/**
 * Makes a parser that finds the action in the last `<tag>…</tag>`, in small or capital letters.
 *
 * @example
 * ```ts
 * Parser.tagged("action")("<action>open door</action>") // { _tag: "Parsed", action: "open door", reward: 0 }
 * ```
 */
export const tagged = (tag: string, options: ParserOptions = {}): Parser => {
  const open = `<${tag}>`
  const close = `</${tag}>`
  const [openLower, closeLower] = [lowerCase(open), lowerCase(close)]
  return (text) => {
    const lower = lowerCase(text)
    const last = lower.lastIndexOf(closeLower)
    // Only the last pair counts, since earlier ones may be part of the model's thoughts.
    const start = last < 0 ? -1 : lower.lastIndexOf(openLower, last - open.length)
    const action = start < 0 ? "" : text.slice(start + open.length, lower.indexOf(closeLower, start)).trim()
    return action === "" ? fails(options, `Answer with ${open}…${close}.`) : parsed(action, options.reward)
  }
}

/**
 * Makes a parser that finds the action in the last `\boxed{…}`.
 *
 * @example
 * ```ts
 * Parser.boxed()("so \\boxed{\\frac{1}{2}}.") // { _tag: "Parsed", action: "\\frac{1}{2}", reward: 0 }
 * ```
 */
export const boxed =
  (options: ParserOptions = {}): Parser =>
  (text) => {
    const action = lastBox(text) ?? ""
    return action === "" ? fails(options, "Put your answer into \\boxed{…}.") : parsed(action, options.reward)
  }

export interface JsonOptions<A> extends ParserOptions {
  /**
   * Converts the decoded value to the action; by default the action is the JSON text from which the value was decoded.
   */
  readonly action?: (value: A) => string
}

/**
 * Makes a parser that takes the last JSON in an answer that fits a Schema. The JSON may be the whole answer, in a fenced
 * block, or within other text.
 *
 * @example
 * ```ts
 * const Move = Schema.Struct({ from: Schema.String, to: Schema.String })
 * const parse = Parser.json(Move, { action: ({ from, to }) => `${from}${to}` })
 * parse('I castle: {"from": "e1", "to": "g1"}') // { _tag: "Parsed", action: "e1g1", reward: 0 }
 * ```
 */
export const json = <S extends Schema.Codec<unknown, unknown>>(
  schema: S,
  options: JsonOptions<S["Type"]> = {},
): Parser => {
  const { action } = options
  const decode = Schema.decodeUnknownResult(schema)
  return (text) => {
    let mismatch: string | undefined
    // The last JSON that fits the Schema is the model's final answer.
    for (const candidate of jsonIn(text).toReversed()) {
      const decoded = decode(candidate)
      if (Result.isSuccess(decoded)) {
        const done = action === undefined ? JSON.stringify(candidate) : action(decoded.success)
        return parsed(done, options.reward)
      }
      mismatch ??= `${oneLine(decoded.failure.message.replace(/(?<!\s)\s*\n\s*at /g, " at "))}; found ${display(candidate)}`
    }
    const none = "Answer with JSON; there was none in your answer."
    return fails(options, mismatch === undefined ? none : `Your JSON is invalid: ${mismatch}.`)
  }
}

/** Returns the value of the text if the whole text is JSON; otherwise the objects and arrays within it, in order. */
const jsonIn = (text: string): ReadonlyArray<unknown> => {
  const all = parsedJson(text)
  if (all !== undefined) return [all]
  const values: Array<unknown> = []
  // For each unclosed bracket, the whole rest of the text is searched, so the number of searched brackets is limited.
  let bracketsLeft = 200
  for (let at = 0; at < text.length && bracketsLeft > 0; at++) {
    if (text[at] !== "{" && text[at] !== "[") continue
    const end = closing(text, at)
    if (end === undefined) {
      bracketsLeft--
      continue
    }
    const value = parsedJson(text.slice(at, end + 1))
    if (value === undefined) continue
    values.push(value)
    at = end
  }
  return values
}

/**
 * Returns the position at which the bracket at `from` is closed, ignoring brackets in strings; undefined if it is not closed.
 */
const closing = (text: string, from: number): number | undefined => {
  let depth = 0
  let quoted = false
  for (let at = from; at < text.length; at++) {
    const letter = text[at]
    if (quoted) {
      if (letter === "\\") at++
      else if (letter === '"') quoted = false
    } else if (letter === '"') quoted = true
    else if (letter === "{" || letter === "[") depth++
    else if ((letter === "}" || letter === "]") && --depth === 0) return at
  }
  return undefined
}

/**
 * Makes a parser that tries several parsers in order until one finds an action. If none does, the feedback of all is joined,
 * and the largest penalty counts.
 */
export const orElse =
  (first: Parser, ...others: ReadonlyArray<Parser>): Parser =>
  (text) => {
    const feedback: Array<string> = []
    let penalty = Infinity
    for (const parser of [first, ...others]) {
      const result = parser(text)
      if (result._tag === "Parsed") return result
      feedback.push(result.feedback)
      penalty = Math.min(penalty, result.reward)
    }
    return refused(feedback.join(" Or: "), penalty)
  }

/**
 * Makes a parser that changes the action of another one. `change` returns the new action, or a `ParseResult` to refuse or
 * reward it.
 */
export const map =
  (parser: Parser, change: (action: string) => string | ParseResult): Parser =>
  (text) => {
    const result = parser(text)
    if (result._tag === "Failed") return result
    const changed = change(result.action)
    if (typeof changed === "string") return parsed(changed, result.reward)
    return changed._tag === "Parsed" ? parsed(changed.action, result.reward + changed.reward) : changed
  }

/**
 * Makes a parser that needs an action from each of several parsers, and combines these into one action. The rewards of
 * the parsers add up. If some parsers fail, their feedback is joined and their penalties add up.
 *
 * @example
 * ```ts
 * const parse = Parser.all(
 *   { thought: Parser.tagged("think"), move: Parser.tagged("move", { reward: 0.1 }) },
 *   ({ move }) => move,
 * )
 * parse("<think>a fork!</think><move>b2</move>") // { _tag: "Parsed", action: "b2", reward: 0.1 }
 * ```
 */
export const all =
  <Name extends string>(
    parsers: Readonly<Record<Name, Parser>>,
    action: (parts: Readonly<Record<Name, string>>) => string,
  ): Parser =>
  (text) => {
    const results = Records.map(parsers, (parser) => parser(text))
    const all = Object.values<ParseResult>(results)
    const failures = all.filter((result) => result._tag === "Failed")
    if (failures.length > 0) return refused(failures.map(({ feedback }) => feedback).join(" "), sumOf(failures))
    const actions = Records.map(results, (result) => (result._tag === "Parsed" ? result.action : ""))
    return parsed(action(actions), sumOf(all))
  }

const sumOf = (results: ReadonlyArray<ParseResult>): number => results.reduce((sum, { reward }) => sum + reward, 0)

/** The config of a single parser. */
const One = Schema.Union([
  Schema.Literals(["whole", "boxed"]),
  Schema.Struct({ tag: Schema.NonEmptyString }),
  Schema.Struct({ json: Schema.NonEmptyString }),
])

/**
 * The config of a parser: `whole`, `boxed`, `{ tag: move }`, `{ json: answer }`, or a list of these, which are tried in
 * order.
 */
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

/**
 * Makes the parser of a config.
 *
 * @example
 * ```ts
 * fromConfig([{ tag: "answer" }, "boxed"])("so \\boxed{7}") // { _tag: "Parsed", action: "7", reward: 0 }
 * ```
 */
export const fromConfig = (config: ParserConfig): Parser => {
  const [first, ...others] = Arr.ensure<typeof One.Type>(config)
  return orElse(one(first), ...others.map(one))
}
