import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { type BootstrapSettings, examplesText, search } from "../../../src/agents/prompts/bootstrap.ts"
import { bestOf } from "../../../src/agents/prompts/candidates.ts"
import type { Surroundings } from "../../../src/agents/prompts/search.ts"
import { trial } from "./world.ts"

const settings: BootstrapSettings = {
  seed: 1,
  text: "examples",
  shots: 2,
  sets: 3,
  goodScore: 1,
  maxMetricCalls: 100,
  maxTokens: null,
  stopScore: null,
}

/** The agent succeeds at even training tasks, and at the validation tasks whose number its examples show. */
const around = (requests: Array<string>): Surroundings<never, never> => ({
  sizes: { train: 20, validation: 10 },
  play: ({ place, set, texts, tasks }) =>
    Effect.sync(() => {
      requests.push(place)
      return tasks.map((task) => ({
        ...trial(task, set === "train" ? (task + 1) % 2 : Number((texts["examples"] ?? "").includes(`Q${task}\n`))),
        shot: { input: `Q${task}`, output: `A${task}` },
      }))
    }),
  reflect: () => Effect.die("no reflection model is asked"),
  changed: () => Effect.void,
})

describe("bootstrapped few-shot examples", () => {
  it.effect("are successes on training tasks, of which the best set is kept", () =>
    Effect.gen(function* () {
      const requests: Array<string> = []
      const { state, end } = yield* search(settings, { system_prompt: "Go.", examples: "" }, around(requests))
      assert.deepStrictEqual(requests, [
        "validation/0",
        "bootstrap/0",
        "bootstrap/8",
        "validation/1",
        "validation/2",
        "validation/3",
      ])
      assert.strictEqual(end, "done")
      for (const { texts, parents } of state.candidates.slice(1)) {
        assert.deepStrictEqual(parents, [0])
        assert.strictEqual(texts["system_prompt"], "Go.")
        assert.match(texts["examples"], /^Example 1\n\nInput:\nQ\d+\n\nOutput:\nA\d+\n\nExample 2\n/)
        for (const [, task] of texts["examples"].matchAll(/Q(\d+)/g)) assert.strictEqual(Number(task) % 2, 0)
      }
      assert.isAbove(bestOf(state), 0)
      assert.strictEqual(state.metricCalls, 10 + 16 + 3 * 10)
    }),
  )

  it.effect("are not sought beyond the budget", () =>
    Effect.gen(function* () {
      const requests: Array<string> = []
      const { state, end } = yield* search({ ...settings, maxMetricCalls: 30 }, { examples: "" }, around(requests))
      assert.deepStrictEqual(requests, ["validation/0", "bootstrap/0", "validation/1"])
      assert.strictEqual(end, "metric_calls")
      assert.strictEqual(state.metricCalls, 28)
    }),
  )

  it.effect("are validated once, if the same set is drawn again", () =>
    Effect.gen(function* () {
      const requests: Array<string> = []
      const rarely: Surroundings<never, never> = {
        ...around(requests),
        play: (request) =>
          Effect.map(around(requests).play(request), (trials) =>
            trials.map((one) => (request.set === "train" ? { ...one, score: Number(one.task < 2) } : one)),
          ),
      }
      const { state, end } = yield* search({ ...settings, sets: 8 }, { examples: "" }, rarely)
      const texts = state.candidates.map((candidate) => candidate.texts["examples"])
      // Two successes have two orders.
      assert.lengthOf(texts, 3)
      assert.lengthOf(new Set(texts), 3)
      assert.strictEqual(state.metricCalls, 10 + 20 + 2 * 10)
      assert.strictEqual(end, "done")
    }),
  )

  it.effect("may be none, and then the search ends for the reason for which no more were sought", () =>
    Effect.gen(function* () {
      const never: Surroundings<never, never> = {
        ...around([]),
        play: ({ tasks }) => Effect.succeed(tasks.map((task) => trial(task, 0))),
      }
      const ended = (more: Partial<BootstrapSettings>) =>
        Effect.map(search({ ...settings, ...more }, { examples: "" }, never), ({ end }) => end)
      assert.strictEqual(yield* ended({}), "done")
      assert.strictEqual(yield* ended({ maxMetricCalls: 30 }), "metric_calls")
      assert.strictEqual(yield* ended({ stopScore: 0 }), "score")
    }),
  )

  it("are written one after the other", () => {
    assert.strictEqual(
      examplesText([
        { input: "1 + 1", output: "2" },
        { input: "2 + 2", output: "4" },
      ]),
      "Example 1\n\nInput:\n1 + 1\n\nOutput:\n2\n\nExample 2\n\nInput:\n2 + 2\n\nOutput:\n4",
    )
  })
})
