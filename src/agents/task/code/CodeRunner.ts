/**
 * Declares the service that runs untrusted programs and reports the outcome of each test; `runner-node.ts` implements it. A
 * program doesn't see the expected values, so only a right program can pass.
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
import type { EnvError } from "../../../base/EnvError.ts"
import { parsedJson } from "../../../base/text/text.ts"

/**
 * A test of a program: `run` is a JavaScript expression that is evaluated after the program, and `expected` is its expected
 * value as JSON. A promise is awaited.
 */
export const CodeTest = Schema.Struct({
  run: Schema.String,
  expected: Schema.Json,
})
export type CodeTest = typeof CodeTest.Type

export type TestOutcome =
  | { readonly _tag: "Passed" }
  /** The value was wrong: `got` is the value as JSON, or a description if JSON cannot represent it. */
  | { readonly _tag: "Failed"; readonly got: string }
  | { readonly _tag: "Threw"; readonly message: string }
  | { readonly _tag: "TimedOut" }
  | { readonly _tag: "OutOfMemory" }
  /** The process that ran the test exited before it answered. */
  | { readonly _tag: "Crashed"; readonly message: string }

export interface CodeWork {
  /** The program: a JavaScript script, not a module. It is run again for each test. */
  readonly program: string
  readonly tests: ReadonlyArray<CodeTest>
}

export interface CodeRunnerService {
  /** Runs all tests, and returns one outcome for each test, in their order. Fails if the runner cannot run any program. */
  readonly run: (work: CodeWork) => Effect.Effect<ReadonlyArray<TestOutcome>, EnvError>
}

/** Runs programs. `Node.codeRunner` is the Layer for Node. */
export class CodeRunner extends Context.Service<CodeRunner, CodeRunnerService>()("effect-rl/task/CodeRunner") {
  static run(work: CodeWork): Effect.Effect<ReadonlyArray<TestOutcome>, EnvError, CodeRunner> {
    return Effect.flatMap(CodeRunner, (runner) => runner.run(work))
  }
}

/** The answer to a test from the process that runs the program: the value as JSON, or the exception. */
export const CodeAnswer = Schema.Struct({
  index: Schema.Int,
  value: Schema.optionalKey(Schema.String),
  threw: Schema.optionalKey(Schema.String),
})
export type CodeAnswer = typeof CodeAnswer.Type

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

/** Returns a test's outcome: whether the value equals the expected one as JSON, or the exception. */
export const judge = (test: CodeTest, { value, threw }: CodeAnswer): TestOutcome => {
  if (value === undefined) return { _tag: "Threw", message: threw ?? "nothing" }
  return sameJson(parsedJson(value), test.expected) ? { _tag: "Passed" } : { _tag: "Failed", got: value }
}
