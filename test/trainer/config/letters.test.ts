import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { lettersWarnings } from "../../../src/trainer/config/letters.ts"
import * as Question from "../../../src/agents/task/Question.ts"
import * as TaskSet from "../../../src/agents/task/TaskSet.ts"
import * as TextEnv from "../../../src/agents/task/TextEnv.ts"

const questions = (observation: string, target: string) => ({
  type: "qa",
  tasks: TaskSet.of("words", [
    Question.make({
      id: "a",
      type: "qa",
      observation,
      key: { targets: [target] },
      score: () => ({ score: 1, target, message: "" }),
    }),
  ]),
})
const train = questions("Is 5 > 4?", "yes")

it.effect("an alphabet without letters of the tasks gives a warning that names them", () =>
  Effect.gen(function* () {
    assert.deepStrictEqual(yield* lettersWarnings("words", { train, validation: null }, "Is 54?>yes"), [])
    assert.deepStrictEqual(yield* lettersWarnings("runs.words", { train, validation: null }, "Is ?yes"), [
      'runs.words: model.tokenizer.alphabet lacks "4", "5", ">" of its tasks, which the model can neither read nor write; add them, or leave the alphabet out',
    ])
  }),
)

it.effect(
  "letters are compared of answers and moves, and of validation tasks, but no program is started for them",
  () =>
    Effect.gen(function* () {
      const missingIn = (alphabet: string, validation: typeof train | null) =>
        Effect.map(lettersWarnings("words", { train, validation }, alphabet), (warnings) => warnings.join())
      assert.include(yield* missingIn("Is 5 > 4?e", null), 'lacks "y" of')
      assert.include(yield* missingIn("Is 5 > 4?yes", questions("1?", "no")), 'lacks "1", "n", "o" of')
      const game = TextEnv.make({
        id: "g",
        type: "g",
        begin: () => ({ state: 0, observation: "?" }),
        step: (state) => ({
          state,
          observation: null,
          feedback: { score: 1, target: null, message: "" },
          terminated: true,
        }),
        demonstrate: (seen) => `${seen}B2`,
      })
      assert.include(
        yield* missingIn("Is 5 > 4?yes", { type: "g", tasks: TaskSet.of("g", [game]) }),
        'lacks "2", "B" of',
      )
      const program = { ...game, begin: () => Effect.die("a program was started") }
      assert.strictEqual(yield* missingIn("Is 5 > 4?yes", { type: "foreign", tasks: TaskSet.of("p", [program]) }), "")
    }),
)
