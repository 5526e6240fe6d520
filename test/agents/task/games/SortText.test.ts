import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { answered, tasksOf } from "../opening.ts"

describe("sort_text", () => {
  it.effect("asks for the letters of a text in order, and scores 1 for these alone", () =>
    Effect.gen(function* () {
      const envs = yield* tasksOf({ type: "sort_text", num_tasks: 100, seed: 3, min_letters: 2, alphabet: 4 })
      for (const env of envs) {
        const { question, feedback } = yield* answered(env, "")
        const text = /^sort ([abcd]{2,8})$/.exec(question)?.[1] ?? assert.fail(question)
        const sorted = Array.from(text).toSorted().join("")
        assert.deepStrictEqual([feedback.score, feedback.target], [0, sorted])
        assert.strictEqual((yield* answered(env, sorted)).feedback.score, 1)
        if (text !== sorted) assert.strictEqual((yield* answered(env, text)).feedback.score, 0)
      }
    }),
  )
})
