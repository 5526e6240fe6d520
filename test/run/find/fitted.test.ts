import { assert, describe, it } from "vitest"
import { type TableColumn, fitted } from "../../../src/run/find/fitted.ts"

const columnsOf = (headings: Readonly<Record<string, TableColumn["role"]>>, rows: ReadonlyArray<TableColumn["cells"]>) =>
  Object.entries(headings).map(([heading, role], index): TableColumn => ({ heading, role, cells: rows.map((row) => row[index]) })) // prettier-ignore

/** Returns the columns of `effect runs`. */
const runs = (values: ReadonlyArray<readonly [algorithm: string, rate: string, seed: number]>) =>
  columnsOf(
    { time: "detail", name: "name", environment: "name", algorithm: "name", learning_rate: "name", seed: "figure", state: "figure", steps: "detail", validation: "figure", path: "path" }, // prettier-ignore
    values.map(([algorithm, rate, seed]) => [
      "2026-01-31_12-00-00",
      "cartpole",
      "CartPole-v1",
      algorithm,
      rate,
      seed,
      "finished",
      100_000,
      499.25,
      `results/2026-01-31_12-00-00/4c61adc_cartpole_environment_algorithm_learning-rate/CartPole-v1_${algorithm}_${rate}/000${seed}`,
    ]),
  )

const some = runs([
  ["ppo", "0.001", 1],
  ["a2c", "0.0003", 2],
])
const widthOf = (text: string): number => Math.max(...text.split("\n").map(({ length }) => length))

describe("a table of runs", () => {
  it("is whole where there is room, or nobody counts the columns", () => {
    const whole = fitted(some, {})
    assert.strictEqual(whole, fitted(some, { width: 400 }))
    assert.include(whole, "learning-rate/CartPole-v1_ppo_0.001/0001\n")
    assert.lengthOf(whole.trimEnd().split("\n"), 3)
  })

  it("of 140 columns has the ends of the paths", () => {
    assert.deepStrictEqual(fitted(some, { width: 140 }).split("\n"), [
      "time                 name      environment  algorithm  learning_rate  seed  state      steps  validation  path",
      "2026-01-31_12-00-00  cartpole  CartPole-v1  ppo        0.001             1  finished  100000       499.3  …/CartPole-v1_ppo_0.001/0001",
      "2026-01-31_12-00-00  cartpole  CartPole-v1  a2c        0.0003            2  finished  100000       499.3  …/CartPole-v1_a2c_0.0003/0002",
      "",
    ])
  })

  it("of 120 columns says once what is the same in all runs", () => {
    assert.deepStrictEqual(fitted(some, { width: 120 }).split("\n"), [
      "time                 algorithm  learning_rate  seed  state      steps  validation  path",
      "2026-01-31_12-00-00  ppo        0.001             1  finished  100000       499.3  …/CartPole-v1_ppo_0.001/0001",
      "2026-01-31_12-00-00  a2c        0.0003            2  finished  100000       499.3  …/CartPole-v1_a2c_0.0003/0002",
      "the same in all: name cartpole, environment CartPole-v1",
      "",
    ])
  })

  it("of 100 columns says that of details, too", () => {
    assert.deepStrictEqual(fitted(some, { width: 100 }).split("\n"), [
      "algorithm  learning_rate  seed  state     validation  path",
      "ppo        0.001             1  finished       499.3  …/CartPole-v1_ppo_0.001/0001",
      "a2c        0.0003            2  finished       499.3  …/CartPole-v1_a2c_0.0003/0002",
      "the same in all: time 2026-01-31_12-00-00, name cartpole, environment CartPole-v1, steps 100000",
      "",
    ])
  })

  const swept = columnsOf(
    { time: "detail", name: "name", environment: "name", algorithm: "name", "algorithm.learning_rate": "name", num_envs: "name", seed: "figure", state: "figure", steps: "detail", validation: "figure", path: "path" }, // prettier-ignore
    [
      ["0.001", "4", 100_352],
      ["0.001", "8", 100_864],
      ["0.0001", "8", 100_864],
    ].map(([rate, envs, steps]) => [
      "2026-01-31_12-00-00",
      "cartpole",
      "CartPole-v1",
      "ppo",
      rate,
      envs,
      1,
      "finished",
      steps,
      499.25,
      `results/2026-01-31_12-00-00/4c61adc_cartpole_environment_algorithm_algorithm.learning-rate_num-envs/CartPole-v1_ppo_${rate}_${envs}/0001`,
    ]),
  )

  it("of 80 columns has every setting of a sweep", () => {
    assert.deepStrictEqual(fitted(swept, { width: 80 }).split("\n"), [
      "algorithm.learning_rate  num_envs  seed  state      steps  validation",
      "0.001                    4            1  finished  100352       499.3",
      "0.001                    8            1  finished  100864       499.3",
      "0.0001                   8            1  finished  100864       499.3",
      "the same in all: time 2026-01-31_12-00-00, name cartpole, environment",
      "CartPole-v1, algorithm ppo",
      "not shown: path; a wider terminal or --json has all",
      "",
    ])
  })

  it("of 64 columns has them without the details that vary", () => {
    assert.include(fitted(swept, { width: 64 }), "algorithm.learning_rate  num_envs  seed  state     validation\n")
    assert.include(fitted(swept, { width: 64 }), "not shown: steps, path;")
  })

  it("shows the shortest ends of the paths that no other run has", () => {
    const paths = ["results/09-00/a_train/ppo/0001", "results/10-00/a_train/ppo/0001", "results/10-00/a_train/a2c/0001"]
    const columns = columnsOf({ seed: "figure", path: "path" }, paths.map((path) => [1, path])) // prettier-ignore
    assert.deepStrictEqual(fitted(columns, { width: 33 }).trimEnd().split("\n").slice(1), [
      "   1  …/09-00/a_train/ppo/0001",
      "   1  …/10-00/a_train/ppo/0001",
      "   1  …/10-00/a_train/a2c/0001",
    ])
    assert.notInclude(fitted(columns, { width: 25 }), "…/")
  })

  for (const width of [80, 100, 140]) {
    it(`is never wider than ${width} columns, whatever varies, with all figures of a run in one line`, () => {
      const names = ["algorithm", "learning_rate", "num_envs", "hidden", "activation"]
      for (let count = 0; count <= names.length; count++) {
        const headings = Object.fromEntries(names.slice(0, count).map((name) => [name, "name" as const]))
        const columns = columnsOf(
          { time: "detail", name: "name", ...headings, seed: "figure", state: "figure", steps: "detail", validation: "figure", path: "path" }, // prettier-ignore
          [1, 2, 3].map((seed) => [
            "2026-01-31_12-00-00",
            `a-long-name-of-a-file-${seed}`,
            ...names.slice(0, count).map((name) => `${name}-value-${seed}`),
            seed,
            "running",
            1_000_000_000,
            -123.456,
            `results/2026-01-31_12-00-00/4c61adc_a-long-name_${names.join("_")}/${"x".repeat(60)}/000${seed}`,
          ]),
        )
        const text = fitted(columns, { width })
        assert.isAtMost(widthOf(text), width, text)
        for (const seed of [1, 2, 3]) assert.match(text, new RegExp(`^.*\\b${seed}  running  (1000000000 )? *-123.5`, "m")) // prettier-ignore
      }
    })
  }

  it("colours cells without counting the colours as columns", () => {
    const paint = (text: string, heading: string, row: number | undefined) =>
      heading === "state" && row !== undefined ? `<${text}>` : text
    const plain = fitted(some, { width: 120 })
    const painted = fitted(some, { width: 120, paint })
    assert.include(painted, "<finished>  100000")
    assert.strictEqual(painted.replaceAll(/[<>]/g, ""), plain)
  })
})
