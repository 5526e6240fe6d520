/**
 * Runs programs that nobody knows, and tells what came of each of their tests. What a test expects is not told to the
 * program, so it can pass only by being right.
 *
 * @example
 * ```ts
 * const outcomes = yield* CodeRunner.run({
 *   program: "const add = (a, b) => a + b",
 *   tests: [{ run: "add(1, 2)", expected: 3 }],
 * }) // [{ _tag: "Passed" }]
 * ```
 */
import { Context, Effect, Schema } from "effect"

/** An expression of JavaScript, evaluated after the program, and its value as JSON; a promise is waited for. */
export const CodeTest = Schema.Struct({
  run: Schema.String,
  expected: Schema.Json,
})
export type CodeTest = typeof CodeTest.Type

/** What came of a test. */
export type Outcome =
  | { readonly _tag: "Passed" }
  /** As JSON; what JSON can't say, in words. */
  | { readonly _tag: "Failed"; readonly got: string }
  | { readonly _tag: "Threw"; readonly message: string }
  | { readonly _tag: "TimedOut" }
  | { readonly _tag: "OutOfMemory" }
  /** The process that ran it ended by itself. */
  | { readonly _tag: "Crashed"; readonly message: string }

export interface Work {
  /** JavaScript: a script, no module. It is run anew for every test. */
  readonly program: string
  readonly tests: ReadonlyArray<CodeTest>
}

/** Programs could not be run at all, whatever is in them. */
export class CodeRunnerError extends Schema.TaggedError<CodeRunnerError>()("CodeRunnerError", {
  message: Schema.String,
}) {}

export interface CodeRunnerService {
  /** As many outcomes as tests, in their order. */
  readonly run: (work: Work) => Effect.Effect<ReadonlyArray<Outcome>, CodeRunnerError>
}

/** Node's Layer is `Node.codeRunner`. */
export class CodeRunner extends Context.Service<CodeRunner, CodeRunnerService>()("effect-rl/task/CodeRunner") {
  static run(work: Work): Effect.Effect<ReadonlyArray<Outcome>, CodeRunnerError, CodeRunner> {
    return Effect.flatMap(CodeRunner, (runner) => runner.run(work))
  }
}

/** What a guest says of a test: JSON of its value, or what it threw. */
export const Answer = Schema.Struct({
  index: Schema.Int,
  value: Schema.optionalKey(Schema.String),
  threw: Schema.optionalKey(Schema.String),
})
export type Answer = typeof Answer.Type

const sameJson = (a: unknown, b: unknown): boolean => {
  if (Array.isArray(a) && Array.isArray(b)) {
    return a.length === b.length && a.every((value, at) => sameJson(value, b[at]))
  }
  if (typeof a === "object" && typeof b === "object" && a !== null && b !== null) {
    if (Array.isArray(a) || Array.isArray(b)) return false
    const [left, right] = [Object.entries(a), new Map(Object.entries(b))]
    return left.length === right.size && left.every(([key, value]) => right.has(key) && sameJson(value, right.get(key)))
  }
  return a === b
}

/** What an answer comes to. */
export const judge = (test: CodeTest, { value, threw }: Answer): Outcome => {
  if (value === undefined) return { _tag: "Threw", message: threw ?? "nothing" }
  try {
    return sameJson(JSON.parse(value), test.expected) ? { _tag: "Passed" } : { _tag: "Failed", got: value }
  } catch {
    return { _tag: "Failed", got: value }
  }
}
