import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { checkTasks } from "../../../src/agents/evaluate/checkTasks.ts"
import * as Question from "../../../src/agents/task/Question.ts"
import * as TaskSet from "../../../src/agents/task/TaskSet.ts"

const task = (id: string, metadata: Readonly<Record<string, unknown>>) =>
  Question.make({
    id,
    type: "qa",
    metadata,
    observation: "?",
    key: { targets: ["a"] },
    score: () => ({ score: 1, target: "a", message: "" }),
  })

const tasks = (...ids: ReadonlyArray<string>) =>
  TaskSet.of(
    "some",
    ids.map((id) => task(id, { topic: "birds", level: 1 })),
  )

const from = { source: "eval.yaml" }
const refused = (set: TaskSet.TaskSet, by: ReadonlyArray<string> = []) =>
  Effect.map(Effect.flip(checkTasks(set, { by }, from)), ({ message }) => message)

describe("the tasks of an evaluation", () => {
  it.effect("have different ids, and the keys of `by`", () => checkTasks(tasks("a", "b"), { by: ["topic"] }, from))

  it.effect("with the same id are refused", () =>
    Effect.map(refused(tasks("a", "b", "a")), (message) =>
      assert.strictEqual(message, 'eval.yaml: dataset: expected tasks with different ids, found "a" for tasks 0 and 2'),
    ),
  )

  it.effect("are all checked, also those of a large set", () =>
    Effect.gen(function* () {
      const large = tasks(...Array.from({ length: 12_000 }, (_, index) => `${index % 11_999}`))
      const message = 'eval.yaml: dataset: expected tasks with different ids, found "0" for tasks 0 and 11999'
      assert.strictEqual(yield* refused(large), message)
      assert.include(yield* refused(large, ["nope"]), 'by: no task has the key "nope" in its metadata')
    }),
  )

  it.effect("without a key of `by` are refused", () =>
    Effect.gen(function* () {
      assert.strictEqual(
        yield* refused(tasks("a"), ["nope"]),
        'eval.yaml: by: no task has the key "nope" in its metadata; expected one of level, topic',
      )
      assert.include(yield* refused(tasks("a"), ["topics"]), 'did you mean "topic"?')
    }),
  )
})
