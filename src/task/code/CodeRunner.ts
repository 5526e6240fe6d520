/**
 * Runs untrusted programs and reports the outcome of each of their tests. A program doesn't learn what a test expects,
 * so it can pass only by being right.
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

/** An expression of JavaScript, evaluated after the program, and the expected value as JSON. A promise is awaited. */
export const CodeTest = Schema.Struct({
  run: Schema.String,
  expected: Schema.Json,
})
export type CodeTest = typeof CodeTest.Type

/** The outcome of a test. */
export type Outcome =
  | { readonly _tag: "Passed" }
  /** The value as JSON, or in words if JSON cannot hold it. */
  | { readonly _tag: "Failed"; readonly got: string }
  | { readonly _tag: "Threw"; readonly message: string }
  | { readonly _tag: "TimedOut" }
  | { readonly _tag: "OutOfMemory" }
  /** The process that ran the test ended by itself. */
  | { readonly _tag: "Crashed"; readonly message: string }

export interface Work {
  /** A JavaScript script, not a module. Each test runs it anew. */
  readonly program: string
  readonly tests: ReadonlyArray<CodeTest>
}

/** Programs cannot be run at all, whatever they contain. */
export class CodeRunnerError extends Schema.TaggedError<CodeRunnerError>()("CodeRunnerError", {
  message: Schema.String,
}) {}

export interface CodeRunnerService {
  /** Returns one outcome per test, in order. */
  readonly run: (work: Work) => Effect.Effect<ReadonlyArray<Outcome>, CodeRunnerError>
}

/** Runs programs. `Node.codeRunner` is the Layer for Node. */
export class CodeRunner extends Context.Service<CodeRunner, CodeRunnerService>()("effect-rl/task/CodeRunner") {
  static run(work: Work): Effect.Effect<ReadonlyArray<Outcome>, CodeRunnerError, CodeRunner> {
    return Effect.flatMap(CodeRunner, (runner) => runner.run(work))
  }
}

/** The guest's answer to a test: the value as JSON, or what it threw. */
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

/** Compares an answer with the expected value. */
export const judge = (test: CodeTest, { value, threw }: Answer): Outcome => {
  if (value === undefined) return { _tag: "Threw", message: threw ?? "nothing" }
  try {
    return sameJson(JSON.parse(value), test.expected) ? { _tag: "Passed" } : { _tag: "Failed", got: value }
  } catch {
    return { _tag: "Failed", got: value }
  }
}
