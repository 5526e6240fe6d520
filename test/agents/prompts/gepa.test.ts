import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { bestOf } from "../../../src/agents/prompts/candidates.ts"
import { type GepaSettings, search } from "../../../src/agents/prompts/gepa.ts"
import type { Reflection } from "../../../src/agents/prompts/search.ts"
import { scoreOf, scripted } from "./world.ts"

const settings: GepaSettings = {
  seed: 1,
  minibatchSize: 3,
  merge: true,
  maxMerges: 5,
  perfectScore: 1,
  maxMetricCalls: 300,
  maxTokens: null,
  stopScore: null,
}
const seedTexts = { plan: "plan 1", answer: "answer 1" }

const text = (answer: string): Reflection["answer"] => ({ _tag: "Text", text: answer })

const found = (seed: number) => {
  const { around } = scripted({ train: 3, validation: 5 }, scoreOf, ({ name }, call) => text(`${name} ${call + 1}`))
  return Effect.map(search({ ...settings, seed }, seedTexts, around), ({ state }) =>
    state.candidates.map(({ texts, parents, foundAfter }) =>
      [texts["plan"], texts["answer"], `from ${parents.join(", ")}`, foundAfter].join("; "),
    ),
  )
}

describe("GEPA", () => {
  // The reference implementation (gepa-ai/gepa at b265bf9c) found these candidates from the same scores and reflections. It
  // was told which candidates to select and to merge, because it draws them from a generator, and ours from addressed streams.
  it.effect("finds the candidates that the reference implementation finds on the same answers", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* found(1), [
        "plan 1; answer 1; from ; 0",
        "plan 2; answer 1; from 0; 11",
        "plan 1; answer 4; from 0; 28",
        "plan 2; answer 4; from 1, 2; 38",
        "plan 5; answer 4; from 3; 44",
        "plan 5; answer 7; from 4; 61",
        "plan 8; answer 7; from 5; 72",
        "plan 8; answer 11; from 6; 95",
        "plan 14; answer 7; from 6; 118",
        "plan 14; answer 11; from 7, 8; 128",
        "plan 14; answer 16; from 8; 140",
        "plan 14; answer 19; from 8; 163",
        "plan 14; answer 28; from 11; 222",
        "plan 31; answer 11; from 7; 245",
        "plan 14; answer 33; from 8; 262",
      ])
      assert.deepStrictEqual(yield* found(5), [
        "plan 1; answer 1; from ; 0",
        "plan 2; answer 1; from 0; 11",
        "plan 2; answer 4; from 1; 28",
        "plan 5; answer 4; from 2; 39",
        "plan 2; answer 8; from 2; 62",
        "plan 5; answer 8; from 3, 4; 72",
        "plan 11; answer 4; from 3; 90",
        "plan 11; answer 8; from 4, 6; 100",
        "plan 11; answer 14; from 7; 118",
        "plan 28; answer 14; from 8; 207",
        "plan 28; answer 31; from 9; 230",
      ])
    }),
  )

  it.effect("accepts only a higher sum of the minibatch, and validates no other proposal", () =>
    Effect.gen(function* () {
      const values: Readonly<Record<string, number>> = { "plan 1": 0.5, same: 0.5, worse: 0.4, better: 0.6 }
      const answers = ["same", "worse", "better"]
      const { around, requests } = scripted(
        { train: 2, validation: 6 },
        ({ plan }) => values[plan],
        (_, call) => text(answers[(call - 1) % 3]),
      )
      const limits = { ...settings, minibatchSize: 2, maxMetricCalls: 30 }
      const { state, end } = yield* search(limits, { plan: "plan 1" }, around)
      assert.deepStrictEqual(
        state.iterations.map(({ outcome, before, after }) => [outcome, before, after]),
        [
          ["rejected", [0.5, 0.5], [0.5, 0.5]],
          ["rejected", [0.5, 0.5], [0.4, 0.4]],
          ["accepted", [0.5, 0.5], [0.6, 0.6]],
        ],
      )
      assert.deepStrictEqual(
        requests.map(({ place }) => place),
        [
          "validation/0",
          ...["parent", "reflection", "proposal"].map((part) => `iteration/0/${part}`),
          ...["parent", "reflection", "proposal"].map((part) => `iteration/1/${part}`),
          ...["parent", "reflection", "proposal"].map((part) => `iteration/2/${part}`),
          "validation/1",
        ],
      )
      // 6 + 3 · (2 + 2) + 6: a further iteration could play 10 tasks, which the budget does not allow.
      assert.deepStrictEqual([state.metricCalls, end, bestOf(state)], [24, "metric_calls", 1])
    }),
  )

  it.effect("does not reflect on a perfect minibatch, and does not take a text's turn for it", () =>
    Effect.gen(function* () {
      const { around, requests } = scripted(
        { train: 2, validation: 6 },
        (_, set) => (set === "train" ? 1 : 0),
        () => text("never"),
      )
      const { state } = yield* search({ ...settings, maxMetricCalls: 24 }, seedTexts, around)
      assert.deepStrictEqual(
        state.iterations.map(({ outcome }) => outcome),
        ["perfect", "perfect", "perfect", "perfect", "perfect"],
      )
      assert.isFalse(requests.some(({ place }) => place.includes("reflection")))
      assert.strictEqual(state.candidates[0].nextText, 0)
    }),
  )

  it.effect("records a reflection without a new text, counts its tokens, and continues with the next text", () =>
    Effect.gen(function* () {
      const { around, requests } = scripted(
        { train: 3, validation: 5 },
        () => 0.5,
        ({ name }) => (name === "plan" ? { _tag: "None", reason: "no_text" } : { _tag: "None", reason: "same_text" }),
      )
      const { state } = yield* search({ ...settings, maxMetricCalls: 22 }, seedTexts, around)
      assert.deepStrictEqual(
        state.iterations.map(({ outcome, changed, after }) => [outcome, ...changed, after.length]),
        [
          ["no_text", "plan", 0],
          ["same_text", "answer", 0],
          ["no_text", "plan", 0],
        ],
      )
      assert.strictEqual(state.metricCalls, 5 + 3 * 3)
      assert.strictEqual(state.tokens, 10 * (5 + 3 * 3) + 3 * 5)
      assert.isFalse(requests.some(({ place }) => place.includes("proposal")))
    }),
  )

  it.effect("ends at its limit of tokens, or when a candidate reaches the score to stop at", () =>
    Effect.gen(function* () {
      const ended = (more: Partial<GepaSettings>) => {
        const { around } = scripted({ train: 3, validation: 5 }, scoreOf, ({ name }, call) =>
          text(`${name} ${call + 1}`),
        )
        return search({ ...settings, ...more }, seedTexts, around)
      }
      const byTokens = yield* ended({ maxTokens: 200 })
      assert.strictEqual(byTokens.end, "tokens")
      assert.isAtLeast(byTokens.state.tokens, 200)
      const byScore = yield* ended({ stopScore: 0.6 })
      assert.strictEqual(byScore.end, "score")
      const scores = byScore.state.candidates.map(({ scores }) => scores.reduce((sum, one) => sum + one, 0) / 5)
      assert.isAtLeast(scores.at(-1) ?? 0, 0.6)
      assert.isTrue(scores.slice(0, -1).every((score) => score < 0.6))
    }),
  )

  it.effect("never merges if merges are switched off", () =>
    Effect.gen(function* () {
      const { around } = scripted({ train: 3, validation: 5 }, scoreOf, ({ name }, call) => text(`${name} ${call + 1}`))
      const { state } = yield* search({ ...settings, merge: false }, seedTexts, around)
      assert.isTrue(state.iterations.every(({ kind }) => kind === "reflection"))
      assert.isAbove(state.candidates.length, 3)
    }),
  )
})
