import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { lines, opened, questionsOf, scoresOf } from "./opening.ts"

const file = lines([
  { context: "Which tag has 12.5?", target: "InterestExpense" },
  { context: "Which tag has 7?", target: "Goodwill" },
  { context: "Which tag has 8?", target: "InterestExpense" },
])

const questions = (said: object) =>
  questionsOf({ type: "finer", dataset_path: "f.jsonl", ...said }, { "f.jsonl": file })

describe("tags of financial reports", () => {
  it.effect("have their own default fields and split, and must be the same text", () =>
    Effect.gen(function* () {
      const { config, tasks, type } = yield* opened({ type: "finer", dataset_path: "f.jsonl" }, { "f.jsonl": file })
      assert.deepStrictEqual([type, tasks.size], ["finer", 3])
      assert.deepInclude(config, {
        input_field: "context",
        target_field: "target",
        split: "test",
        prepend_options: false,
        options: null,
      })
      const scores = yield* scoresOf(
        { type: "finer" },
        { context: "?", target: "Goodwill" },
        "Goodwill",
        "\\boxed{Goodwill}",
        "GoodwillImpairmentLoss",
      )
      assert.deepStrictEqual(scores, [1, 1, 0])
    }),
  )

  it.effect("may list the tags to choose from, those of the data set or of the config", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual((yield* questions({}))[1], "Which tag has 7?")
      const all = yield* questions({ prepend_options: true, max_samples: 1, instruction_template: "<{question}>" })
      assert.deepStrictEqual(all, ["<The tags to choose from: Goodwill, InterestExpense.\n\nWhich tag has 12.5?>"])
      const given = yield* questions({ prepend_options: true, options: ["Revenues", "Goodwill"] })
      assert.strictEqual(given[2], "The tags to choose from: Revenues, Goodwill.\n\nWhich tag has 8?")
    }),
  )
})
