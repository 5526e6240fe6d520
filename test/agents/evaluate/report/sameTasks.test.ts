import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { scorerIdentity } from "../../../../src/agents/evaluate/openParts.ts"
import * as Report from "../../../../src/agents/evaluate/report/Report.ts"
import type { EpisodeRow } from "../../../../src/agents/evaluate/rows.ts"
import { taskProblem, withIdsOf } from "../../../../src/agents/evaluate/report/sameTasks.ts"
import * as Datasets from "../../../../src/agents/task/Datasets.ts"
import { disk } from "../../../run/store/disk.ts"

const row = (task: number, content: string | undefined, score: number): EpisodeRow => ({
  agent: "a",
  episode_index: task + 1,
  task,
  repeat: 0,
  env_id: `qa-${task + 1}`,
  env_type: "qa",
  metadata: {},
  ...(content === undefined ? {} : { content }),
  answer: "x",
  target: null,
  score,
  scores: { score },
  steps: 1,
  terminated: true,
  truncated: false,
  truncation_reason: null,
  calls: 1,
  retries: 0,
  input_tokens: 0,
  output_tokens: 0,
  cost: null,
  duration_ms: 0,
  error: null,
})

const rowsOf = (contents: ReadonlyArray<string | undefined>, scores: ReadonlyArray<number>) =>
  contents.map((content, task) => row(task, content, scores[task]))

describe("questions without ids in two evaluations", () => {
  it("are the same if their content is, wherever they are", () => {
    const before = rowsOf(["rome", "paris", "lima"], [0.1, 0.2, 0.3])
    const after = rowsOf(["lima", "new", "rome", "paris"], [0.3, 1, 0.1, 0.2])
    const renamed = withIdsOf(after, before)
    assert.deepStrictEqual(
      renamed.map(({ env_id }) => env_id),
      ["qa-3", "qa-4", "qa-1"],
    )
    assert.isUndefined(taskProblem(renamed, after))
    const [compared] = Report.against(renamed, after, { scorers: ["score"] })
    assert.deepInclude(compared, { tasks: 3, difference: 0, better: 0, worse: 0 })
    // By their positions, three other pairs would be compared.
    assert.notStrictEqual(Report.against(before, after, { scorers: ["score"] })[0].difference, 0)
  })

  it("are left out if only one evaluation has them, and equal ones are told apart by their order", () => {
    const before = rowsOf(["gone", "same", "same"], [1, 0.2, 0.3])
    const after = rowsOf(["same", "same", "same"], [0.2, 0.3, 1])
    assert.deepStrictEqual(
      withIdsOf(after, before).map(({ env_id }) => env_id),
      ["qa-1 (only before)", "qa-1", "qa-2"],
    )
  })

  it("keep their ids if one of the evaluations has not saved their contents", () => {
    const [old, now] = [rowsOf([undefined, undefined], [0, 1]), rowsOf(["a", "b"], [0, 1])]
    assert.strictEqual(withIdsOf(now, old), old)
    assert.strictEqual(withIdsOf(old, now), now)
  })

  it.effect("have a content that is their text and choices; those with an id have none", () =>
    Effect.gen(function* () {
      const contentsOf = (items: ReadonlyArray<object>, more: object = {}) =>
        Effect.gen(function* () {
          const { tasks } = yield* Datasets.open(
            { type: "qa", items, ...more },
            { baseDir: ".", from: { source: "test" } },
          )
          return yield* Effect.forEach(items.keys(), (at) => Effect.map(tasks.at(at), ({ content }) => content))
        })
      const [a, b] = [{ question: "a?", answer: "1" }, { question: "b?", answer: "2" }] // prettier-ignore
      const [first, second] = yield* contentsOf([a, b], { instruction_template: "Answer: {question}" })
      assert.notStrictEqual(first, second)
      assert.deepStrictEqual(yield* contentsOf([b, { ...a, answer: "3" }]), [second, first])
      assert.deepStrictEqual(yield* contentsOf([{ ...a, id: "one" }], { id_field: "id" }), [undefined])
    }).pipe(Effect.scoped, Effect.provide(disk)),
  )
})

describe("a scorer's identity", () => {
  it("has its judge's model in a file without the folders, as a saved config has them and its own may not", () => {
    const judge = (model: string) => scorerIdentity({ type: "judge", lmConfig: { model, temperature: 0 } })
    assert.deepStrictEqual(judge("builtin:/home/a/models/judge.json"), judge("builtin:judge.json"))
    assert.deepStrictEqual(judge("gpt-4.1-mini"), { type: "judge", model: "gpt-4.1-mini", temperature: 0 })
  })
})
