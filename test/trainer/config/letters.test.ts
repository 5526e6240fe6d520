import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { lettersWarning, missingLetters } from "../../../src/trainer/config/letters.ts"
import * as Question from "../../../src/agents/task/Question.ts"
import * as TaskSet from "../../../src/agents/task/TaskSet.ts"

const tasks = TaskSet.of("words", [
  Question.make({
    id: "a",
    type: "qa",
    observation: "Is 5 > 4?",
    key: { targets: ["yes"] },
    score: () => ({ score: 1, target: "yes", message: "" }),
  }),
])

it.effect("an alphabet without letters of the tasks gives a warning that names them", () =>
  Effect.gen(function* () {
    assert.deepStrictEqual(yield* missingLetters(tasks, "Is 54?>"), [])
    const missing = yield* missingLetters(tasks, "Is ?")
    assert.deepStrictEqual(missing, ["4", "5", ">"])
    assert.strictEqual(
      lettersWarning("words", missing),
      'runs.words: model.tokenizer.alphabet lacks "4", "5", ">" of its tasks, which the model can neither read nor write; add them, or leave the alphabet out',
    )
  }),
)
