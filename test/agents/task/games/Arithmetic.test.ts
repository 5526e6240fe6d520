import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { constantOf } from "../../../../src/agents/task/answers/expression.ts"
import { stream } from "../../../../src/base/rng/Rng.ts"
import { answered, problem, tasksOf } from "../opening.ts"

const call = (text: string) => ({ id: "1", name: "calculator", arguments: text })

describe("arithmetic", () => {
  it.effect("asks for the value of an expression of two numbers, and scores an answer by its last number", () =>
    Effect.gen(function* () {
      const envs = yield* tasksOf({ type: "arithmetic", num_tasks: 100, seed: 3, max_digits: 2, operators: ["+", "*"] })
      const operators = new Set<string>()
      for (const env of envs) {
        const { question, feedback, terminated } = yield* answered(env, "")
        const [, expression, operator] = /^What is (\d{1,2}([+*])\d{1,2})\?$/.exec(question) ?? assert.fail(question)
        operators.add(operator)
        const value = String(constantOf(expression))
        assert.deepStrictEqual([feedback.score, feedback.target, terminated], [0, value, true])
        assert.strictEqual((yield* answered(env, value)).feedback.score, 1)
        assert.strictEqual((yield* answered(env, `${value}1`)).feedback.score, 0)
      }
      assert.deepStrictEqual([...operators].sort(), ["*", "+"])
    }),
  )

  it.effect("has a calculator, whose wrong calls are results that say so", () =>
    Effect.gen(function* () {
      const [env] = yield* tasksOf({ type: "arithmetic", num_tasks: 1 })
      assert.deepStrictEqual(
        env.tools?.map(({ name }) => name),
        ["calculator"],
      )
      const episode = yield* env.begin(stream(1))
      assert.deepStrictEqual(yield* episode.call(call('{"expression": "12*34"}')), { content: "408" })
      assert.deepStrictEqual(yield* episode.call(call('{"expression": "12*"}')), {
        content: '"12*" has no value; expected an expression such as 48*713',
        isError: true,
      })
      assert.isTrue((yield* episode.call(call("{}"))).isError)
    }),
  )

  it.effect("demonstrates a call of the calculator and an answer with its result", () =>
    Effect.gen(function* () {
      const [env] = yield* tasksOf({ type: "arithmetic", num_tasks: 1, operators: ["-"] })
      const { demonstrate } = env
      if (demonstrate === undefined) return assert.fail("no demonstration")
      const { question, feedback } = yield* answered(env, "")
      const asked = demonstrate(question, stream(1), 0)
      if (typeof asked === "string") return assert.fail(asked)
      assert.include(question, JSON.parse(asked.arguments).expression)
      const episode = yield* env.begin(stream(1))
      const { content } = yield* episode.call({ id: "1", ...asked })
      assert.strictEqual(demonstrate(content, stream(1), 1), feedback.target)
    }),
  )

  it.effect("refuses numbers that are too long", () =>
    Effect.gen(function* () {
      assert.include(yield* problem({ type: "arithmetic", max_digits: 7 }), "conf.yaml: max_digits: expected")
    }),
  )
})
