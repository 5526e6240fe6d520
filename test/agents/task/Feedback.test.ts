import { assert, describe, it } from "@effect/vitest"
import { Effect, Logger } from "effect"
import { readFeedback, fromForeign, type FeedbackInput, Warned } from "../../../src/agents/task/Feedback.ts"
import * as Qa from "../../../src/agents/task/Qa.ts"
import { answered, tasksOf } from "./opening.ts"

describe("feedback in other forms", () => {
  it("has a score, that of an older form, or none", () => {
    const rows: ReadonlyArray<readonly [unknown, number, string | null]> = [
      [{ score: 0.5 }, 0.5, null],
      [{ score: "0.5" }, 0.5, null],
      [{ score: true }, 1, null],
      [{ score: 0, correct: true }, 0, null],
      [{ score: null, correct: true }, 1, `feedback with "correct" is the older form; write "score": 1 or 0`],
      [{ correct: true }, 1, `feedback with "correct" is the older form; write "score": 1 or 0`],
      [{ correct: false }, 0, `feedback with "correct" is the older form; write "score": 1 or 0`],
      [{ is_correct: true }, 1, `feedback with "is_correct" is the older form; write "score": 1 or 0`],
      [{ isCorrect: 0 }, 0, `feedback with "isCorrect" is the older form; write "score": 1 or 0`],
      [{ score: "high" }, 0, `feedback whose "score" is not a number counts as 0: "high"`],
      [{ score: Number.NaN }, 0, `feedback whose "score" is not a number counts as 0: NaN`],
      [{ score: Infinity }, 0, `feedback whose "score" is not a number counts as 0: Infinity`],
      [{ score: "" }, 0, `feedback whose "score" is not a number counts as 0: ""`],
      [{ correct: "yes" }, 0, `feedback whose "correct" is not a number counts as 0: "yes"`],
      [{ message: "hm" }, 0, `feedback without a score counts as 0: {"message":"hm"}`],
      [null, 0, "feedback without a score counts as 0: null"],
      ["well done", 0, `feedback without a score counts as 0: "well done"`],
    ]
    for (const [value, score, warning] of rows) {
      const read = fromForeign(value)
      assert.deepStrictEqual([read.feedback.score, read.warning], [score, warning])
    }
  })

  it("keeps its message and other fields", () => {
    assert.deepStrictEqual(fromForeign({ score: 1, target: 4, message: null, extra: { tries: 2 }, more: 1 }).feedback, {
      score: 1,
      target: "4",
      message: "",
      extra: { tries: 2 },
    })
    assert.deepStrictEqual(fromForeign({ score: 1, target: ["a", 1], message: "ok", extra: 7 }).feedback, {
      score: 1,
      target: '["a",1]',
      message: "ok",
    })
    assert.strictEqual(fromForeign("well done").feedback.message, "well done")
  })

  it.effect("is accepted in its older form, with one warning", () =>
    Effect.gen(function* () {
      const warnings: Array<string> = []
      const listening = Logger.layer([
        Logger.make(({ logLevel, message }) => {
          warnings.push(`${logLevel}: ${String(message)}`)
        }),
      ])
      const right: Qa.Scorer = (answer) => ({ is_correct: answer === "2", message: `you said ${answer}` })
      const items = [
        { question: "1 + 1?", answer: 2 },
        { question: "4 - 2?", answer: 2 },
      ]
      yield* Effect.gen(function* () {
        const envs = yield* tasksOf({ items, env_class: "right" })
        const feedback = yield* Effect.forEach(envs, (env, index) =>
          Effect.map(answered(env, String(index + 1)), (said) => said.feedback),
        )
        assert.deepStrictEqual(feedback, [
          { score: 0, target: null, message: "you said 1" },
          { score: 1, target: null, message: "you said 2" },
        ])
        const scored: FeedbackInput = { score: 0.25, target: null, message: "" }
        assert.strictEqual(yield* readFeedback("qa", scored), scored)
        // As a program without types may give it.
        const text: FeedbackInput = JSON.parse('{ "score": "0.5", "target": null, "message": "half" }')
        assert.deepStrictEqual(yield* readFeedback("qa", text), { score: 0.5, target: null, message: "half" })
      }).pipe(
        Effect.provideService(Qa.Scorers, { right }),
        Effect.provideService(Warned, new Set()),
        Effect.provide(listening),
      )
      assert.deepStrictEqual(warnings, [
        `Warn: Envs of type "qa": feedback with "is_correct" is the older form; write "score": 1 or 0`,
      ])
    }),
  )
})
