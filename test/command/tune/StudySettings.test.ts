import { Effect } from "effect"
import { assert, describe, it } from "vitest"
import { keyPlaces, parseYaml } from "../../../src/base/config/yaml.ts"
import { readStudy } from "../../../src/command/tune/StudySettings.ts"

const read = (text: string) => {
  const document = parseYaml(text)
  if ("problem" in document) throw new Error(document.problem)
  return readStudy(document.value, { source: "space.yaml", sources: keyPlaces(document, "space.yaml") })
}
const studyOf = (text: string) => Effect.runSync(read(text))
const problemOf = (text: string): string => Effect.runSync(Effect.flip(read(text))).message

describe("a study's file", () => {
  it("has parameters by their paths, in sections or in one word", () => {
    const { space, settings } = studyOf(`
metric: best_validation
direction: minimize
sampler: { name: random }
parameters:
  algorithm.learning_rate: { log_uniform: [1e-5, 1e-2] }
  algorithm:
    epochs: { int: [1, 9], step: 2 }
    hidden: { choice: [[64], [64, 64]] }
  num_envs: { log_int: [4, 64], when: { algorithm.hidden: [[64]] } }
`)
    assert.deepStrictEqual(space, [
      { _tag: "Number", path: "algorithm.learning_rate", low: 1e-5, high: 1e-2, isLog: true, step: null, when: [] },
      { _tag: "Number", path: "algorithm.epochs", low: 1, high: 9, isLog: false, step: 2, when: [] },
      { _tag: "Choice", path: "algorithm.hidden", values: [[64], [64, 64]], when: [] },
      {
        _tag: "Number",
        path: "num_envs",
        low: 4,
        high: 64,
        isLog: true,
        step: 1,
        when: [{ path: "algorithm.hidden", values: [[64]] }],
      },
    ])
    assert.strictEqual(settings.trials, 20)
    assert.strictEqual(settings.sampler.name, "random")
  })

  it.each([
    ["trials: 5", /^space\.yaml: parameters: missing key/],
    ["parameters: {}", /^space\.yaml:1: parameters: expected at least one parameter, found none/],
    ["trials: 0\nparameters:\n  a: { int: [1, 2] }", /^space\.yaml:1: trials: .* found 0/],
    ["trails: 5\nparameters:\n  a: { int: [1, 2] }", /^space\.yaml:1: unknown key "trails"; did you mean "trials"\?/],
    [
      "parameters:\n  a: { int: [1, 2] }\n  b: 3",
      /^space\.yaml:3: parameters\.b: expected a range, such as .* found 3$/,
    ],
    ["parameters:\n  a_b: { unifrom: [1, 2] }", /^space\.yaml:2: unknown key "parameters\.a_b\.unifrom"; did you mean/],
    ["parameters:\n  a: { step: 1 }", /^space\.yaml:2: parameters\.a: expected one of uniform, .*, found none of them/],
    ["parameters:\n  a: { int: [1, 2], choice: [1, 2] }", /found int and choice$/],
    ["parameters:\n  a: { int: [2, 1] }", /^space\.yaml:2: parameters\.a\.int: expected a list of the smallest/],
    ["parameters:\n  a: { int: [1, 2, 3] }", /expected a list of the smallest and the largest value, found \[1,2,3\]/],
    ["parameters:\n  a: { int: [1, 2.5] }", /expected whole numbers, found \[1,2\.5\]/],
    ["parameters:\n  a: { log_uniform: [0, 1] }", /parameters\.a\.log_uniform: expected numbers above 0/],
    ["parameters:\n  a: { log_uniform: [1, 2], step: 1 }", /a logarithmic range has no step/],
    ["parameters:\n  a: { int: [1, 2], step: 0.5 }", /expected a step that is a whole number, found 0\.5/],
    ["parameters:\n  a: { choice: [1] }", /expected at least two values, found 1/],
    ["parameters:\n  a: { choice: [1, 2, 1] }", /1 is listed twice/],
    [
      "parameters:\n  a: { int: [1, 2], when: { b: 1 } }\n  b: { choice: [1, 2] }",
      /^space\.yaml:2: parameters\.a: when: expected a choice that is listed before, found b/,
    ],
    [
      "parameters:\n  b: { choice: [1, 2] }\n  a: { int: [1, 2], when: { b: 3 } }",
      /^space\.yaml:3: parameters\.a: when: b is one of \[1,2\], found 3/,
    ],
    [
      "parameters:\n  a.b: { int: [1, 2] }\n  a: { b: { int: [1, 2] } }",
      /parameters\.a\.b: this parameter is listed twice/,
    ],
    [
      "metric: mean_score\npruner: { name: asha }\nparameters:\n  a: { int: [1, 2] }",
      /^space\.yaml:2: pruner\.name: asha compares validations; expected the metric validation, found mean_score/,
    ],
  ])("is refused with a message that names the line: %j", (text, message) => {
    assert.match(problemOf(text), message)
  })
})
