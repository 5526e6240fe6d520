import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { EnvError } from "../../../src/base/EnvError.ts"
import type { AnswerKey } from "../../../src/agents/task/answers/score.ts"
import * as Qa from "../../../src/agents/task/Qa.ts"
import type { Feedback } from "../../../src/agents/task/Feedback.ts"
import { answered, lines, opened, problem, questionsOf, scoresOf, tasksOf } from "./opening.ts"

const item = { question: "1 + 1?", answer: 2 }

describe("questions", () => {
  it.effect("are scored by their task_type", () =>
    Effect.gen(function* () {
      const scores = (task_type: string, answer: unknown, ...answers: ReadonlyArray<string>) =>
        scoresOf({ task_type }, { question: "?", answer }, ...answers)
      assert.deepStrictEqual(yield* scores("exact", "two", "Two.", "two or so", "2"), [1, 0, 0])
      assert.deepStrictEqual(yield* scores("numeric", 2, "it is 2.0", "3"), [1, 0])
      assert.deepStrictEqual(yield* scores("f1", "one two", "two", "three"), [2 / 3, 0])
      assert.deepStrictEqual(yield* scores("mcq", "B", "(b)", "C"), [1, 0])
      assert.deepStrictEqual(yield* scores("exact", ["two", "2"], "2", "two", "3"), [1, 1, 0])
      assert.deepStrictEqual(yield* scores("exact", true, "true", "false"), [1, 0])
    }),
  )

  it.effect("take one turn", () =>
    Effect.gen(function* () {
      const [env] = yield* tasksOf({ items: [item] })
      assert.strictEqual(env.maxSteps, 1)
      const { terminated, observation } = yield* answered(env, "3")
      assert.deepStrictEqual([terminated, observation], [true, null])
    }),
  )

  it.effect("may be scored by other programs' class names, or by custom scorers", () =>
    Effect.gen(function* () {
      const scores = (said: object, answer: unknown, ...answers: ReadonlyArray<string>) =>
        scoresOf(said, { question: "?", answer }, ...answers)
      assert.deepStrictEqual(yield* scores({ env_class: "QAEnv" }, "two", "two"), [1])
      const path = "src.data.envs.math_qa_env.MathQAEnv"
      assert.deepStrictEqual(yield* scores({ env_class: path }, "1,000", "it is 1000"), [1])
      assert.deepStrictEqual(yield* scores({ env_class: "src.data.envs.mcq_env:MCQEnv" }, "B", "(b)"), [1])

      const length = (answer: string, { targets }: AnswerKey): Feedback => {
        const score = answer.length === Number(targets[0]) ? 1 : 0
        return { score, target: targets[0], message: `${answer.length}` }
      }
      const late: Qa.Scorer = (answer, key) =>
        Effect.delay(
          Effect.sync(() => length(answer, key)),
          0,
        )
      const own = Effect.provideService(Qa.Scorers, { length, late, QAEnv: length })
      const custom = { task_type: "custom", env_class: "length" }
      assert.deepStrictEqual(yield* own(scores(custom, 3, "abc", "ab")), [1, 0])
      assert.deepStrictEqual(yield* own(scores({ env_class: "mine.late" }, 3, "abc", "ab")), [1, 0])
      assert.deepStrictEqual(yield* own(scores({ env_class: "QAEnv" }, 3, "abc")), [1])

      assert.strictEqual(
        yield* problem({ items: [item], task_type: "custom" }),
        "conf.yaml: env_class: expected the name of a scorer for task_type: custom, found nothing",
      )
      assert.strictEqual(
        yield* own(problem({ items: [item], task_type: "custom", env_class: "lenght" })),
        `conf.yaml: env_class: unknown class "lenght"; did you mean "length"?; provide your own scorers with Qa.Scorers`,
      )
    }),
  )

  it.effect("name the question that a custom scorer failed on", () =>
    Effect.gen(function* () {
      const fails = (broken: Qa.Scorer) =>
        Effect.gen(function* () {
          const [env] = yield* tasksOf({ items: [item], env_class: "broken" })
          return (yield* Effect.flip(answered(env, "2"))).message
        }).pipe(Effect.provideService(Qa.Scorers, { broken }))
      const thrown = yield* fails(() => {
        throw new Error("no such table")
      })
      assert.strictEqual(thrown, `env "qa-1" threw at step 1: no such table`)
      assert.strictEqual(
        yield* fails(() => ({ score: Number.NaN, target: null, message: "" })),
        `env "qa-1" gave the score NaN at step 1; expected a finite number`,
      )
      const failed = new EnvError({ env: "judge", message: "the judge is away" })
      assert.strictEqual(yield* fails(() => Effect.fail(failed)), "the judge is away")
    }),
  )

  it.effect("follow the template, by the rules of Python's str.format", () =>
    Effect.gen(function* () {
      const put = (instruction_template: string, question = "1 + 1?") =>
        Effect.map(questionsOf({ items: [{ ...item, question }], instruction_template }), ([text]) => text)
      assert.strictEqual(
        yield* put("Put it in \\boxed{{}}.\n\nProblem: {question}"),
        "Put it in \\boxed{}.\n\nProblem: 1 + 1?",
      )
      assert.strictEqual(yield* put("{question} {{{question}}} {{question}}"), "1 + 1? {1 + 1?} {question}")
      // Braces in a question are text, not a template.
      assert.strictEqual(yield* put("Q: {question}", "{question} {{}} $& $1"), "Q: {question} {{}} $& $1")
      const wrong = (instruction_template: string) => problem({ items: [item], instruction_template })
      assert.strictEqual(
        yield* wrong("Solve {problem}: {question}"),
        "conf.yaml: instruction_template: expected {question}, or {{ and }} for braces, found {problem}",
      )
      assert.match(yield* wrong("\\boxed{} {question}"), /found \{\}$/)
      assert.match(yield* wrong("a } {question}"), /found \}$/)
      assert.match(yield* wrong("{question"), /found \{question$/)
      assert.match(yield* wrong("{{question}}"), /expected \{question\} somewhere in it$/)
    }),
  )

  it.effect("show choices with letters, and read them from lists, objects, labels or text", () =>
    Effect.gen(function* () {
      const said = { task_type: "mcq", choices_field: "choices" }
      for (const choices of [
        ["Paris", "Rome"],
        { A: "Paris", B: "Rome" },
        { text: ["Paris", "Rome"], label: ["A", "B"] },
        '["Paris", "Rome"]',
        "Paris | Rome",
      ]) {
        const [env] = yield* tasksOf({ ...said, items: [{ question: "Where?", choices, answer: "B" }] })
        const { question, feedback } = yield* answered(env, "rome")
        assert.strictEqual(question, "Where?\n\nA. Paris\nB. Rome")
        assert.deepStrictEqual([feedback.score, feedback.target], [1, "B. Rome"])
      }
      assert.deepStrictEqual(
        yield* scoresOf(said, { question: "?", choices: ["Paris", "Rome"], answer: 1 }, "B", "A", "1"),
        [1, 0, 0],
      )
      const wrong = (more: object) => problem({ ...said, items: [{ question: "?", ...more }] })
      assert.strictEqual(
        yield* wrong({ choices: ["Paris", "Rome"], answer: "Milan" }),
        `conf.yaml: items[0]: expected the answer to be one of the choices, or its letter, found "Milan"`,
      )
      assert.match(yield* wrong({ choices: ["Paris"], answer: "A" }), /"choices": expected a list of 2 to 26 texts/)
      assert.match(yield* wrong({ answer: "A" }), /expected a field "choices", found "question", "answer"/)
    }),
  )

  it.effect("take ids and metadata from their fields", () =>
    Effect.gen(function* () {
      const said = {
        items: [
          { ...item, key: "first", level: 3 },
          { ...item, key: 17, level: null },
        ],
      }
      const about = (more: object) =>
        Effect.map(tasksOf({ ...said, ...more }), (envs) => envs.map(({ id, metadata }) => [id, metadata]))
      assert.deepStrictEqual(yield* about({}), [
        ["qa-1", { task_type: "exact" }],
        ["qa-2", { task_type: "exact" }],
      ])
      assert.deepStrictEqual(yield* about({ id_field: "key", meta_fields: ["level", "none"] }), [
        ["first", { task_type: "exact", level: 3, none: null }],
        ["17", { task_type: "exact", level: null, none: null }],
      ])
      assert.lengthOf(yield* about({ shuffle: true, seed: 1, max_samples: 1 }), 1)
      assert.match(
        yield* problem({ ...said, id_field: "ky" }),
        /expected a field "ky", found .*did you mean "key"\? \(set id_field/,
      )
    }),
  )

  it.effect("name the line and the field of an invalid record", () =>
    Effect.gen(function* () {
      const wrong = (record: unknown) =>
        problem({ dataset_path: "a.jsonl" }, { "a.jsonl": lines([item, item, record]) })
      const rows: ReadonlyArray<readonly [unknown, string]> = [
        [
          { qestion: "?", answer: 2 },
          `expected a field "question", found "qestion", "answer"; did you mean "qestion"? (set input_field to choose another)`,
        ],
        [{ question: "?" }, `expected a field "answer", found "question" (set target_field to choose another)`],
        [{}, `expected a field "question", found none (set input_field to choose another)`],
        [{ question: " ", answer: 2 }, `"question": expected text, found an empty one`],
        [
          { question: { a: 1 }, answer: 2 },
          `"question": expected text or a list of { role, content } with one of the user, found {"a":1}`,
        ],
        [{ question: "?", answer: null }, `"answer": expected text, a number or a list of such, found null`],
        [{ question: "?", answer: [] }, `"answer": expected text, a number or a list of such, found []`],
        [
          [1],
          `expected a JSON object on one line, found "[1]"; "jq -c '.[]'" writes each item of an array on its own line`,
        ],
      ]
      for (const [record, message] of rows) assert.strictEqual(yield* wrong(record), `a.jsonl:3: ${message}`)
    }),
  )

  it.effect("are the same from CSV as from JSONL", () =>
    Effect.gen(function* () {
      const csv = 'question,answer,choices\r\n"1, or\n""one""?",A,"[""x"", ""y""]"\r\nplain?,y,x|y\r\n'
      const jsonl = lines([
        { question: '1, or\n"one"?', answer: "A", choices: ["x", "y"] },
        { question: "plain?", answer: "y", choices: ["x", "y"] },
      ])
      const asked = (dataset_path: string) =>
        questionsOf(
          { dataset_path, task_type: "mcq", choices_field: "choices" },
          { "q.csv": csv, "q.jsonl": jsonl, "q.tsv": csv.replace(/(?<=\w),(?=\w)|(?<="),|,(?=")/g, "\t") },
        )
      const expected = yield* asked("q.jsonl")
      assert.deepStrictEqual(expected, ['1, or\n"one"?\n\nA. x\nB. y', "plain?\n\nA. x\nB. y"])
      assert.deepStrictEqual(yield* asked("q.csv"), expected)
      const { tasks } = yield* opened({ dataset_path: "q.csv" }, { "q.csv": csv })
      assert.strictEqual(tasks.size, 2)
    }),
  )
})
