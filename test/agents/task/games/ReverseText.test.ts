import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { similarity } from "../../../../src/agents/task/games/letters.ts"
import { answered, problem, tasksOf } from "../opening.ts"

const reversed = (text: string): string => Array.from(text).toReversed().join("")

describe("reverse_text", () => {
  it.effect("asks for texts of the given lengths, and scores 1 for each written backwards alone", () =>
    Effect.gen(function* () {
      const envs = yield* tasksOf({ type: "reverse_text", num_tasks: 200, seed: 3, min_letters: 2, max_letters: 5 })
      const lengths = new Set<number>()
      for (const env of envs) {
        const { question, feedback } = yield* answered(env, "")
        const text = question.replace("reverse ", "")
        lengths.add(text.length)
        assert.deepStrictEqual([feedback.score, feedback.target], [0, reversed(text)])
        assert.strictEqual((yield* answered(env, reversed(text))).feedback.score, 1)
        if (text !== reversed(text)) assert.strictEqual((yield* answered(env, text)).feedback.score, 0)
      }
      assert.deepStrictEqual([...lengths].sort(), [2, 3, 4, 5])
    }),
  )

  it.effect("draws the same texts from the same seed, others from another, and only the first letters if asked", () =>
    Effect.gen(function* () {
      const questions = (seed: number) =>
        Effect.flatMap(tasksOf({ type: "reverse_text", num_tasks: 50, seed, alphabet: 3 }), (envs) =>
          Effect.forEach(envs, (env) => Effect.map(answered(env, ""), ({ question }) => question)),
        )
      const [one, again, other] = [yield* questions(1), yield* questions(1), yield* questions(2)]
      assert.deepStrictEqual(one, again)
      assert.notDeepEqual(one, other)
      for (const question of one) assert.match(question, /^reverse [abc]{1,8}$/)
    }),
  )

  it("scores by similarity the share of letters in the same order", () => {
    const score = (answer: string) => similarity(answer, { targets: ["lertsek"] }).score
    assert.strictEqual(score(" lertsek\n"), 1)
    assert.strictEqual(score("lertsk"), 12 / 13)
    assert.strictEqual(score("xyz"), 0)
    assert.strictEqual(score(""), 0)
    // Of "kestrel", the longest subsequence of "lertsek" has three letters, such as "ese" or "ert".
    assert.strictEqual(score("kestrel"), 6 / 14)
    assert.strictEqual(score("l".repeat(10_001)), 0)
  })

  it.effect("refuses a smallest length above the largest", () =>
    Effect.gen(function* () {
      const message = yield* problem({ type: "reverse_text", min_letters: 9 })
      assert.strictEqual(message, "conf.yaml: max_letters: expected at least min_letters, 9, found 8")
    }),
  )
})
