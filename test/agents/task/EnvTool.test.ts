import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import * as EnvTool from "../../../src/agents/task/EnvTool.ts"
import * as TextEnv from "../../../src/agents/task/TextEnv.ts"
import { stream } from "../../../src/base/rng/Rng.ts"

const deposit = EnvTool.make({
  name: "deposit",
  description: "Puts money into the account.",
  parameters: Schema.Struct({ amount: Schema.Int }),
  run: (balance: number, { amount }) =>
    amount > 0 ? { state: balance + amount, content: { balance: balance + amount } } : { problem: "too little" },
})

const bank = TextEnv.make<number>({
  id: "bank",
  type: "bank",
  begin: () => ({ state: 1, observation: "" }),
  step: (state) => ({
    state,
    observation: String(state),
    feedback: { score: 0, target: null, message: "" },
    terminated: false,
  }),
  ...EnvTool.all([deposit]),
})

describe("a tool of an env", () => {
  it("is described by a JSON Schema", () => {
    const [spec] = bank.tools ?? []
    assert.strictEqual(spec.name, "deposit")
    assert.strictEqual(spec.parameters["type"], "object")
    assert.deepStrictEqual(spec.parameters["required"], ["amount"])
  })

  it.effect("changes the state for a valid call, and reports an invalid one", () =>
    Effect.gen(function* () {
      const { call, step } = yield* bank.begin(stream(1))
      const calls: ReadonlyArray<[args: string, content: string, isError?: boolean]> = [
        ['{"amount": 5}', '{"balance":6}'],
        ['{"amount": -5}', "too little", true],
        ['{"amount": 1.5}', "The arguments are invalid: deposit: amount: expected", true],
        ["{}", "The arguments are invalid: deposit: amount: ", true],
        ["", "The arguments are invalid: deposit: amount: ", true],
        ['{"amount": 5', "The arguments of deposit are not JSON", true],
        ['{"amount": 5, "currency": "EUR"}', "The arguments are invalid: deposit: ", true],
      ]
      for (const [args, content, isError] of calls) {
        const result = yield* call({ id: "1", name: "deposit", arguments: args })
        assert.isTrue(result.content.startsWith(content), `${args}: ${result.content}`)
        assert.strictEqual(result.isError, isError, args)
        assert.notProperty(result, "state")
      }
      assert.strictEqual((yield* step("")).observation, "6")
      const other = yield* call({ id: "1", name: "withdraw", arguments: "{}" })
      assert.deepStrictEqual(other, { content: 'There is no tool "withdraw"; there are deposit.', isError: true })
    }),
  )
})
