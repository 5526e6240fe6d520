import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { CodeRunner, type TestOutcome } from "../../../../src/agents/task/code/CodeRunner.ts"
import * as CodeTask from "../../../../src/agents/task/code/CodeTask.ts"
import { layer as codeRunner } from "../../../../src/agents/task/code/runner-node.ts"
import { stream } from "../../../../src/base/rng/Rng.ts"
import { opened, problem } from "../opening.ts"
import { play, saying } from "../support.ts"

const tests = [
  { run: "add(1, 2)", expected: 3 },
  { run: "add(20, 22)", expected: 42 },
]

const right = "Here it is:\n```js\nexport const add = (a, b) => a + b\n```\nDone."
const wrong = "function add(a, b) { return a * b + 1 }"

const withRunner = <A, E>(effect: Effect.Effect<A, E, CodeRunner>) =>
  Effect.provide(effect, codeRunner({ timeoutMs: 600_000 }))

const task = (more: Partial<CodeTask.CodeTaskOptions> = {}) =>
  Effect.map(CodeRunner, (runner) => CodeTask.make({ id: "c", prompt: "Write add(a, b).", tests, runner, ...more }))

describe("a program of a model", () => {
  it("is the text between fences, or all of it", () => {
    const table: ReadonlyArray<[action: string, program: string]> = [
      ["const a = 1", "const a = 1"],
      ["So:\n```js\nconst a = 1\n```\nand\n```\nconst b = 2\n```", "const a = 1\n\nconst b = 2\n"],
      ["export default async function f() {}", "async function f() {}"],
      ["export const f = 'export const x'", "const f = 'export const x'"],
    ]
    for (const [action, program] of table) assert.strictEqual(CodeTask.programOf(action), program)
  })
})

describe("a task of code", () => {
  it.effect("scores 1 if all tests pass", () =>
    withRunner(
      Effect.gen(function* () {
        const done = yield* play(yield* task(), saying(right))
        assert.strictEqual(done.score, 1)
        assert.deepStrictEqual(done.steps[0].feedback, {
          score: 1,
          target: null,
          message: "All 2 tests passed.",
          extra: { passed: 2, tests: 2 },
        })
        const half = yield* play(yield* task(), saying(wrong))
        assert.strictEqual(half.score, 0)
        assert.isTrue(half.terminated)
        assert.strictEqual(half.steps[0].feedback.message, "1 of 2 tests passed. add(20, 22) gave 441, which is wrong.")
        assert.strictEqual((yield* play(yield* task({ partial: true }), saying(wrong))).score, 0.5)
      }),
    ),
  )

  it.effect(
    "reports the outcome, not the expected value, while attempts are left",
    () =>
      withRunner(
        Effect.gen(function* () {
          const env = yield* task({ attempts: 3 })
          const { observations, score, steps } = yield* play(env, saying("think: easy", wrong, "add", right))
          assert.deepStrictEqual(observations, [
            "Write add(a, b).",
            "OK.",
            "1 of 2 tests passed. add(20, 22) gave 441, which is wrong. 2 attempts are left.",
            "0 of 2 tests passed. add(1, 2) threw ReferenceError: add is not defined. 1 attempt is left.",
            null,
          ])
          assert.strictEqual(score, 1)
          assert.notInclude(JSON.stringify([observations, steps.slice(0, 3)]), "42")
          const hopeless = yield* play(env, saying(wrong))
          assert.strictEqual(hopeless.steps.length, 3)
          assert.strictEqual(hopeless.score, 0)
        }),
      ),
    { tags: "slow" },
  )

  it.effect("describes every outcome", () =>
    Effect.gen(function* () {
      const outcomes: ReadonlyArray<[TestOutcome, string]> = [
        [{ _tag: "Threw", message: "no" }, "f() threw no."],
        [{ _tag: "TimedOut" }, "f() took too long."],
        [{ _tag: "OutOfMemory" }, "f() took too much memory."],
        [{ _tag: "Crashed", message: "by SIGSEGV" }, "f() crashed: by SIGSEGV."],
      ]
      for (const [outcome, said] of outcomes) {
        const runner = { run: () => Effect.succeed([outcome]) }
        const env = CodeTask.make({ id: "c", prompt: "f", tests: [{ run: "f()", expected: 1 }], runner })
        const { step } = yield* env.begin(stream(1))
        assert.strictEqual((yield* step("")).feedback.message, `0 of 1 tests passed. ${said}`)
      }
    }),
  )
})

describe("a data set of code", () => {
  const line = JSON.stringify({ prompt: "Write add(a, b).", tests, id: "add" })

  it.effect("is read from a file", () =>
    withRunner(
      Effect.gen(function* () {
        const config = { type: "code", dataset_path: "tasks.jsonl", id_field: "id", attempts: 2 }
        const { tasks } = yield* opened(config, { "tasks.jsonl": `${line}\n` })
        assert.strictEqual(tasks.size, 1)
        const { id } = yield* opened({ type: "code", items: [{ prompt: "p", tests }] }).pipe(
          Effect.flatMap(({ tasks: items }) => items.at(0)),
        )
        assert.strictEqual(id, "code-1")
      }),
    ),
  )

  it.effect("is refused with the problem", () =>
    withRunner(
      Effect.gen(function* () {
        const items = (record: object) => problem({ type: "code", items: [record] })
        assert.include(yield* items({ tests }), `"prompt": expected text, found`)
        assert.include(yield* items({ prompt: "p", tests: [] }), `"tests": expected a list of { run, expected }, found`)
        assert.include(yield* items({ prompt: "p", tests: "add(1, 2)" }), `"tests": expected a list`)
      }),
    ),
  )

  it.effect("can't be opened if programs can't be run", () =>
    Effect.gen(function* () {
      assert.include(
        yield* problem({ type: "code", items: [{ prompt: "p", tests }] }),
        "conf.yaml: type: programs can't be run here",
      )
    }),
  )
})
