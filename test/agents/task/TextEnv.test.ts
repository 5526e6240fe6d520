import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as MultiTextEnv from "../../../src/agents/task/MultiTextEnv.ts"
import * as TextEnv from "../../../src/agents/task/TextEnv.ts"
import { stream } from "../../../src/base/rng/Rng.ts"

const cycle: Record<string, unknown> = {}
cycle["itself"] = cycle

/** The info of the only step of an env with that info, of one player or of two. */
const stepped = (info: Record<string, unknown>, extra: Record<string, unknown>) => {
  const feedback = { score: 1, target: null, message: "", extra }
  const one = TextEnv.make<null>({
    id: "odd",
    type: "odd",
    begin: () => ({ state: null, observation: "" }),
    step: (state) => ({ state, observation: null, feedback, terminated: true, info }),
  })
  const two = MultiTextEnv.make<null>({
    id: "odd",
    type: "odd",
    players: ["a"],
    begin: () => ({ state: null, toMove: ["a"], observations: { a: "" } }),
    step: (state) => ({ state, toMove: [], observations: {}, feedback: { a: feedback }, terminated: true, info }),
  })
  const own = Effect.flatMap(one.begin(stream(1)), ({ step }) => step("go"))
  const shared = Effect.flatMap(two.begin(stream(1)), ({ step }) => step({ a: "go" }))
  return [Effect.map(own, (led) => led.info), Effect.map(shared, (led) => led.info)]
}

describe("an error in an author's code", () => {
  const thrown = () => {
    throw new Error("off\nthe rails")
  }
  it.effect.each([
    ["a function", thrown],
    ["an Effect", () => Effect.sync(thrown)],
    ["a promise", () => Effect.promise(async () => thrown())],
  ] as const)("in %s is a failure of that env, at that step", ([, step]) =>
    Effect.gen(function* () {
      const env = TextEnv.make<null>({
        id: "odd",
        type: "odd",
        begin: () => ({ state: null, observation: "" }),
        step,
      })
      const episode = yield* env.begin(stream(1))
      const error = yield* Effect.flip(episode.step("go"))
      assert.strictEqual(error._tag, "EnvError")
      assert.strictEqual(error.message, 'env "odd" threw at step 1: off; the rails')
      assert.include(error.userStack, "TextEnv.test.ts")
    }),
  )
})

describe("the info and extra feedback of a step", () => {
  it.effect.each([
    [{ count: 1n }, {}, /BigInt/],
    [{}, { deep: [{ count: 1n }] }, /BigInt/],
    [cycle, {}, /circular/],
  ] as const)("must be what a file can hold: %o", ([info, extra, said]) =>
    Effect.gen(function* () {
      for (const led of stepped(info, extra)) {
        const error = yield* Effect.flip(led)
        assert.strictEqual(error._tag, "EnvError")
        assert.match(
          error.message,
          /^env "odd" gave an info or extra feedback at step 1: .*expected values that JSON can hold$/,
        )
        assert.match(error.message, said)
      }
    }),
  )

  it.effect("may contain values that JSON leaves out or changes", () =>
    Effect.gen(function* () {
      const info = { a: undefined, b: Number.NaN, c: "\ud800\u2028", d: new Date(0), e: () => 1 }
      for (const led of stepped(info, {})) assert.strictEqual(yield* led, info)
    }),
  )
})
