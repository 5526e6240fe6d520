import { assert, describe, it } from "@effect/vitest"
import { Cause, Effect, Exit, Fiber, Schema } from "effect"
import { TestClock } from "effect/testing"
import * as Tool from "../../../src/agents/agent/Tool.ts"

const add = Tool.make({
  name: "add",
  description: "The sum of two numbers.",
  parameters: Schema.Struct({ a: Schema.Finite, b: Schema.Finite }),
  run: ({ a, b }) => Effect.succeed(a + b),
})

const plain = <E>(run: () => Effect.Effect<Schema.Json, E>, timeout?: "2 seconds") =>
  Tool.make({
    name: "t",
    description: "",
    parameters: Schema.Struct({}),
    run,
    ...(timeout === undefined ? {} : { timeout }),
  })

const callOf = (name: string, args: string) => ({ id: "1", name, arguments: args })

describe("a tool", () => {
  it.effect("is described by its Schema", () =>
    Effect.sync(() => {
      assert.strictEqual(add.spec.name, "add")
      assert.deepInclude(add.spec.parameters, { type: "object", required: ["a", "b"] })
      assert.deepEqual(JSON.parse(JSON.stringify(add.spec.parameters)), add.spec.parameters)
    }),
  )

  it.effect("gives a text as it is, and anything else as JSON", () =>
    Effect.gen(function* () {
      const result = yield* add.call(callOf("add", '{"a": 1, "b": 2.5}'))
      assert.deepStrictEqual(result, { toolCallId: "1", toolName: "add", content: "3.5", isError: false })
      const answers: ReadonlyArray<readonly [Schema.Json, string]> = [
        ["two\nlines", "two\nlines"],
        [{ a: [1, null] }, '{"a":[1,null]}'],
        [null, "null"],
      ]
      for (const [answer, content] of answers) {
        const tool = plain(() => Effect.succeed(answer))
        assert.strictEqual((yield* tool.call(callOf("t", ""))).content, content)
      }
    }),
  )

  it.effect("explains in its result what was wrong with a call", () =>
    Effect.gen(function* () {
      const table: ReadonlyArray<readonly [Tool.Tool, string, RegExp]> = [
        [add, '{"a": 1', /^The arguments of add are not JSON \(.+\); expected an object\.$/],
        [add, '{"a": 1}', /^The arguments are invalid: add: b: missing key$/],
        [add, '{"a": 1, "b": "2"}', /^The arguments are invalid: add: b: expected .*number.*, found "2"$/],
        [add, '{"a": 1, "b": 2, "bb": 3}', /^The arguments are invalid: add: unknown key "bb"; did you mean "b"\?$/],
        [add, "7", /^The arguments are invalid: add: config: expected object, found 7$/],
        [plain(() => Effect.fail(new Error("no\nway"))), "{}", /^t failed: no; way$/],
        [plain(() => Effect.die(new Error("oh"))), "{}", /^t failed: oh$/],
        [plain(() => Effect.interrupt), "{}", /^t failed: it was interrupted$/],
        [
          plain(() => {
            throw new Error("at once")
          }),
          "{}",
          /^t failed: at once$/,
        ],
      ]
      for (const [tool, args, content] of table) {
        const result = yield* tool.call(callOf(tool.spec.name, args))
        assert.isTrue(result.isError, args)
        assert.match(result.content, content)
        assert.strictEqual(result.toolCallId, "1")
      }
    }),
  )

  it.effect("is stopped at its time limit", () =>
    Effect.gen(function* () {
      let stopped = false
      const never = Effect.onInterrupt(Effect.never, () =>
        Effect.sync(() => {
          stopped = true
        }),
      )
      const fiber = yield* Effect.forkChild(plain(() => never, "2 seconds").call(callOf("t", "{}")))
      yield* TestClock.adjust("2 seconds")
      const result = yield* Fiber.join(fiber)
      assert.deepStrictEqual([result.content, result.isError], ["t took longer than 2s and was stopped.", true])
      assert.isTrue(stopped)
    }),
  )

  it.effect("can be interrupted, which gives no result", () =>
    Effect.gen(function* () {
      const fiber = yield* Effect.forkChild(plain(() => Effect.never).call(callOf("t", "{}")))
      yield* TestClock.adjust("1 second")
      yield* Fiber.interrupt(fiber)
      const exit = yield* Fiber.await(fiber)
      assert.isTrue(Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause))
    }),
  )
})
