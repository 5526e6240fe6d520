/**
 * Makes tasks in which the agent writes a function in JavaScript, scored by tests that run in a sandbox: `type: code`. The
 * score is 1 if all tests pass, or with `partial: true` the share of tests that pass. With several attempts, the feedback
 * shows the first failed test and its outcome, but not the expected value.
 *
 * @example
 * ```yaml
 * train_dataset:
 *   type: code
 *   dataset_path: data/tasks.jsonl # {"prompt": "Write add(a, b).", "tests": [{"run": "add(1, 2)", "expected": 3}]} a line
 *   attempts: 3
 * ```
 */
import { Effect, Match, Option, Schema } from "effect"
import { jsonText } from "../../../base/text/jsonText.ts"
import { display, ConfigError } from "../../../base/config/Config.ts"
import { bounded, withDefault } from "../../../base/config/fields.ts"
import { EnvError } from "../../../base/EnvError.ts"
import { open, recordFields, templateOf } from "../data/fileSet.ts"
import { fieldOf } from "../data/question.ts"
import { type DatasetKind, make as makeKind } from "../DatasetKind.ts"
import { continues, ends, game, remaining } from "../games/aloud.ts"
import type { TextEnv } from "../TextEnv.ts"
import { type CodeRunnerService, CodeRunner, CodeTest, type TestOutcome } from "./CodeRunner.ts"

/** Returns the program in a model's answer: the text between fences, or all of it, without `export`. */
export const programOf = (action: string): string => {
  const fenced = Array.from(action.matchAll(/^[ \t]*```[^\n]*\n([\s\S]*?)^[ \t]*```/gm), ([, code]) => code)
  const code = fenced.length === 0 ? action : fenced.join("\n")
  return code.replace(/^([ \t]*)export\s+(?:default\s+)?(?=(?:async\s+)?(?:function|class|const|let|var)\b)/gm, "$1")
}

/** Describes an outcome for the agent. The words come after the test's expression: `add(1, 2)` "gave 4, which is wrong". */
const wordsOf = Match.typeTags<TestOutcome>()({
  Passed: () => "passed",
  Failed: ({ got }) => `gave ${got.length > 200 ? `${got.slice(0, 200)}…` : got}, which is wrong`,
  Threw: ({ message }) => `threw ${message}`,
  TimedOut: () => "took too long",
  OutOfMemory: () => "took too much memory",
  Crashed: ({ message }) => `crashed: ${message}`,
})

/** Describes the outcome of an attempt for the agent: the test that failed first, and how it failed. */
const report = (tests: ReadonlyArray<CodeTest>, outcomes: ReadonlyArray<TestOutcome>): string => {
  const passed = outcomes.filter(({ _tag }) => _tag === "Passed").length
  const at = outcomes.findIndex(({ _tag }) => _tag !== "Passed")
  if (at < 0) return tests.length === 1 ? "The test passed." : `All ${tests.length} tests passed.`
  return `${passed} of ${tests.length} tests passed. ${tests[at].run} ${wordsOf(outcomes[at])}.`
}

export interface CodeTaskOptions {
  readonly id: string
  readonly prompt: string
  readonly tests: ReadonlyArray<CodeTest>
  readonly runner: CodeRunnerService
  /** The number of attempts, 1 by default. */
  readonly attempts?: number
  readonly partial?: boolean
  readonly metadata?: Readonly<Record<string, unknown>>
}

interface CodeTaskState {
  readonly tried: number
}

export const make = ({
  id,
  prompt,
  tests,
  runner,
  attempts = 1,
  partial = false,
  metadata = {},
}: CodeTaskOptions): TextEnv =>
  game<CodeTaskState>({
    id,
    type: "code",
    metadata,
    // With several attempts, allow one more step per attempt for a thought (an action that begins with `think:`), which runs
    // no program.
    maxSteps: attempts === 1 ? 1 : 2 * attempts,
    begin: () => ({ state: { tried: 0 }, observation: prompt }),
    step: ({ tried }, action) =>
      runner.run({ program: programOf(action), tests }).pipe(
        Effect.mapError(({ message }) => new EnvError({ env: id, message: `env "${id}": ${message}` })),
        Effect.map((outcomes) => {
          const next: CodeTaskState = { tried: tried + 1 }
          const passed = outcomes.filter(({ _tag }) => _tag === "Passed").length
          const message = report(tests, outcomes)
          const isOver = passed === tests.length || next.tried === attempts
          const score = passed === tests.length ? 1 : partial ? passed / tests.length : 0
          const result = isOver
            ? ends(next, { score, message })
            : continues(next, `${message} ${remaining(attempts - next.tried, "attempt")}`)
          return {
            ...result,
            feedback: { ...result.feedback, extra: { passed, tests: tests.length } },
            info: { outcomes },
          }
        }),
      ),
  })

export const Config = Schema.Struct({
  type: withDefault(Schema.Literal("code"), "code"),
  ...recordFields({ input: "prompt", target: "tests" }),
  /** The number of attempts at each task. */
  attempts: withDefault(bounded("count"), 1),
  /** Whether the score is the share of tests that pass. If false, the score is 1 if all tests pass, and otherwise 0. */
  partial: withDefault(Schema.Boolean, false),
})
const Tests = Schema.NonEmptyArray(CodeTest)
/** Reads a list of tests; in CSV, it is JSON. */
const readTests = Schema.decodeUnknownOption(Schema.Union([Tests, jsonText(Tests)]))

export const kind: DatasetKind = makeKind({
  type: "code",
  schema: Config,
  open: (config, context) =>
    Effect.gen(function* () {
      const runner = Option.getOrUndefined(yield* Effect.serviceOption(CodeRunner))
      if (runner === undefined) {
        const message = 'programs can\'t be run here: a CodeRunner is needed, such as that of "effect-rl/node"'
        return yield* ConfigError.at(context.from, "type", message)
      }
      const applyTemplate = yield* templateOf(config, context)
      const { inputField, targetField, idField, metaFields, attempts, partial } = config
      return yield* open(config, context, (fields, index) => {
        const prompt = fieldOf(fields, inputField)
        if (typeof prompt !== "string" || prompt.trim() === "") {
          return `"${inputField}": expected text, found ${display(prompt)}`
        }
        const tests = readTests(fieldOf(fields, targetField))
        if (Option.isNone(tests)) {
          return `"${targetField}": expected a list of { run, expected }, found ${display(fieldOf(fields, targetField))}`
        }
        const id = idField === null ? undefined : fieldOf(fields, idField)
        return make({
          id: typeof id === "string" || typeof id === "number" ? String(id) : `code-${index + 1}`,
          prompt: applyTemplate(prompt),
          tests: tests.value,
          runner,
          attempts,
          partial,
          metadata: Object.fromEntries(metaFields.map((name) => [name, fieldOf(fields, name) ?? null])),
        })
      })
    }),
})
