/**
 * From what a model said to what is done: a parser takes an action out of a completion, or says what to tell the model
 * instead. A failed parse never reaches the env.
 *
 * @example
 * ```ts
 * const parse = Parser.orElse(Parser.tagged("move"), Parser.boxed())
 * parse("<think>a fork!</think><move>b2</move>") // { _tag: "Parsed", action: "b2", reward: 0 }
 * parse("so it is \\boxed{b2}") // { _tag: "Parsed", action: "b2", reward: 0 }
 * parse("b2") // { _tag: "Failed", feedback: "Answer with <move>…</move>. Or: …", reward: -0.1 }
 * ```
 */
import { Result, Schema } from "effect"
import { display } from "../config/Config.ts"
import { oneLine } from "../config/text.ts"
import { boxed as lastBox } from "../task/answers/text.ts"

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

/** It says the same of the same text, always. */
export type Parser = (text: string) => ParseResult

/** What a failed parse costs, unless something else is said. */
export const defaultPenalty = -0.1

export interface ParserOptions {
  /** What a text of the right form is worth by that alone; 0 unless given. */
  readonly reward?: number
  /** What another one costs, as a number of zero or less; `defaultPenalty` unless given. */
  readonly penalty?: number
  /** What the model is told then; each parser has words of its own. */
  readonly feedback?: string
}

/** The result of a text that could be read. */
export const parsed = (action: string, reward = 0): ParseResult => ({ _tag: "Parsed", action, reward })

/** The result of one that could not, and what the model is told. */
export const refused = (feedback: string, reward = defaultPenalty): ParseResult => ({
  _tag: "Failed",
  feedback,
  reward,
})

const fails = ({ penalty = defaultPenalty, feedback }: ParserOptions, why: string): ParseResult =>
  refused(feedback ?? why, penalty)

/** All of the text, without the space around it. */
export const whole: Parser = (text) => parsed(text.trim())

/**
 * What stands in the last `<tag>…</tag>`.
 *
 * @example
 * ```ts
 * Parser.tagged("action")("<action>open door</action>") // { _tag: "Parsed", action: "open door", reward: 0 }
 * ```
 */
export const tagged = (tag: string, options: ParserOptions = {}): Parser => {
  const open = `<${tag}>`
  const close = `</${tag}>`
  return (text) => {
    const last = text.lastIndexOf(close)
    // What was named while thinking is no answer: only the last pair counts, and not what is closed once more.
    const start = last < 0 ? -1 : text.lastIndexOf(open, last - open.length)
    const action = start < 0 ? "" : text.slice(start + open.length, text.indexOf(close, start)).trim()
    return action === "" ? fails(options, `Answer with ${open}…${close}.`) : parsed(action, options.reward)
  }
}

/**
 * What stands in the last `\boxed{…}`.
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
  /** From the value to the action; JSON of what it was decoded from unless given. */
  readonly action?: (value: A) => string
}

/**
 * JSON of a form, by itself, in a fenced block, or among words.
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
    let wrong: string | undefined
    // The last one of that form is what the model came to.
    for (const candidate of jsonIn(text).toReversed()) {
      const decoded = decode(candidate.value)
      if (Result.isSuccess(decoded)) {
        const done = action === undefined ? JSON.stringify(candidate.value) : action(decoded.success)
        return parsed(done, options.reward)
      }
      wrong ??= `${oneLine(decoded.failure.message.replace(/\s*\n\s*at /g, " at "))}; found ${display(candidate.value)}`
    }
    return fails(
      options,
      wrong === undefined ? "Answer with JSON; there was none in your answer." : `Your JSON won't do: ${wrong}.`,
    )
  }
}

/** One thing of JSON in a text. */
interface Found {
  readonly value: unknown
}

const read = (text: string): ReadonlyArray<Found> => {
  try {
    return [{ value: JSON.parse(text) }]
  } catch {
    return []
  }
}

/** All of a text, or the objects and arrays in it, in their order. */
const jsonIn = (text: string): ReadonlyArray<Found> => {
  const all = read(text)
  if (all.length > 0) return all
  const found: Array<Found> = []
  // Thousands of open brackets would else take for ever.
  let left = 200
  for (let at = 0; at < text.length && left > 0; at++) {
    if (text[at] !== "{" && text[at] !== "[") continue
    const end = closing(text, at)
    if (end === undefined) {
      left--
      continue
    }
    const value = read(text.slice(at, end + 1))
    if (value.length === 0) continue
    found.push(...value)
    at = end
  }
  return found
}

/** Where the bracket at `from` is closed, strings apart. */
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
 * The first of these that can read the text. Where none can, the model is told of all forms, and it costs what the
 * dearest of them costs.
 */
export const orElse =
  (first: Parser, ...others: ReadonlyArray<Parser>): Parser =>
  (text) => {
    let failed: ParseResult | undefined
    for (const parser of [first, ...others]) {
      const result = parser(text)
      if (result._tag === "Parsed") return result
      failed =
        failed?._tag === "Failed"
          ? refused(`${failed.feedback} Or: ${result.feedback}`, Math.min(failed.reward, result.reward))
          : result
    }
    return failed ?? refused("There is no form to answer in.")
  }

/** The action as something else; a `ParseResult` in its place may refuse it, or be worth something. */
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
 * Several things that must all be there, as one action. Rewards add up; what is missing is told of all at once, and
 * costs what each of it costs.
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
    const parts = new Map<string, string>()
    const feedback: Array<string> = []
    let reward = 0
    let penalty = 0
    for (const name in parsers) {
      const result = parsers[name](text)
      if (result._tag === "Parsed") {
        parts.set(name, result.action)
        reward += result.reward
      } else {
        feedback.push(result.feedback)
        penalty += result.reward
      }
    }
    const made: object = Object.fromEntries(parts)
    const isWhole = (some: object): some is Readonly<Record<Name, string>> =>
      Object.keys(parsers).every((name) => name in some)
    return isWhole(made) ? parsed(action(made), reward) : refused(feedback.join(" "), penalty)
  }
