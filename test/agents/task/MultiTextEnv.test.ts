import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as MultiTextEnv from "../../../src/agents/task/MultiTextEnv.ts"
import { stream } from "../../../src/base/rng/Rng.ts"

const told = (score: number) => ({ score, target: null, message: "" })

/** `a` and `b` add to a number in turn. */
const adding = (about: Partial<MultiTextEnv.MultiTextRules<number>> = {}): MultiTextEnv.MultiTextEnv =>
  MultiTextEnv.make<number>({
    id: "add",
    type: "adding",
    players: ["a", "b"],
    begin: (random) => ({ state: random.integer(10), toMove: ["a"], observations: { a: "begin" } }),
    step: (state, actions, random) => {
      const [[who, action]] = Object.entries(actions)
      const sum = state + Number(action)
      const other = who === "a" ? "b" : "a"
      return {
        state: sum,
        toMove: sum >= 20 ? [] : [other],
        observations: { [other]: `${sum} ${random.integer(100)}` },
        feedback: { [who]: told(sum) },
        terminated: sum >= 20,
      }
    },
    ...about,
  })

describe("an env for several players", () => {
  it.effect("plays the same episode for the same stream and actions", () =>
    Effect.gen(function* () {
      const play = Effect.gen(function* () {
        const episode = yield* adding().begin(stream(1, "env"))
        const all: Array<unknown> = [episode.toMove, episode.observations]
        for (let step = 0; ; step++) {
          const led = yield* episode.step({ [step % 2 === 0 ? "a" : "b"]: "4" })
          all.push(led)
          if (led.terminated) return all
        }
      })
      assert.deepStrictEqual(yield* play, yield* play)
    }),
  )

  const wrong: ReadonlyArray<
    [what: string, about: Partial<MultiTextEnv.MultiTextRules<number>>, actions: Record<string, string>, said: string]
  > = [
    ["an action of somebody else", {}, { b: "1" }, `expected actions of "a", found those of "b"`],
    ["an action too many", {}, { a: "1", b: "1" }, `expected actions of "a", found those of "a", "b"`],
    ["no action", {}, {}, `expected actions of "a", found those of no player`],
    ["what it throws", { step: () => assert.fail("oh no") }, { a: "1" }, "threw at step 1: oh no"],
    [
      "going on without anybody",
      { step: (state) => ({ state, toMove: [], observations: {}, feedback: {}, terminated: false }) },
      { a: "1" },
      "at step 1 continues, but no player is to move",
    ],
    [
      "somebody to move who sees nothing",
      { step: (state) => ({ state, toMove: ["b"], observations: { a: "" }, feedback: {}, terminated: false }) },
      { a: "1" },
      `at step 1 has no observation for "b", who is to move`,
    ],
    [
      "somebody twice",
      { step: (state) => ({ state, toMove: ["b", "b"], observations: { b: "" }, feedback: {}, terminated: false }) },
      { a: "1" },
      `at step 1 names a player to move twice: "b", "b"`,
    ],
    [
      "somebody unknown",
      { step: (state) => ({ state, toMove: [], observations: {}, feedback: { c: told(1) }, terminated: true }) },
      { a: "1" },
      `at step 1 named "c"; its players are "a", "b"`,
    ],
    [
      "a score that is none",
      { step: (state) => ({ state, toMove: [], observations: {}, feedback: { b: told(NaN) }, terminated: true }) },
      { a: "1" },
      `at step 1 gave "b" the score NaN; expected a finite number`,
    ],
  ]
  for (const [what, about, actions, said] of wrong) {
    it.effect(`refuses ${what}`, () =>
      Effect.gen(function* () {
        const episode = yield* adding(about).begin(stream(1, "env"))
        const error = yield* Effect.flip(episode.step(actions))
        assert.strictEqual(error.message, `env "add" ${said}`)
      }),
    )
  }

  it.effect("refuses an invalid beginning, and steps after the end", () =>
    Effect.gen(function* () {
      const nobody = adding({ begin: () => ({ state: 0, toMove: [], observations: {} }) })
      const error = yield* Effect.flip(nobody.begin(stream(1, "env")))
      assert.strictEqual(error.message, `env "add" at its beginning continues, but no player is to move`)
      const episode = yield* adding().begin(stream(1, "env"))
      yield* episode.step({ a: "30" })
      const late = yield* Effect.flip(episode.step({ b: "1" }))
      assert.strictEqual(late.message, `env "add" was stepped after its episode was over`)
    }),
  )

  it.effect("takes tool calls of players between its steps", () =>
    Effect.gen(function* () {
      const asked = adding({
        tools: [{ name: "sum", description: "says it", parameters: {} }],
        begin: () => ({ state: 3, toMove: ["a"], observations: { a: "" } }),
        call: (state, player) => ({ state: state + 1, content: `${player}: ${state}` }),
      })
      const episode = yield* asked.begin(stream(1, "env"))
      const call = (name: string) =>
        Effect.suspend(() => episode.call?.("b", { id: "1", name, arguments: "" }) ?? Effect.die("no tools"))
      assert.deepStrictEqual(yield* call("sum"), { content: "b: 3" })
      assert.deepStrictEqual(yield* call("sum"), { content: "b: 4" })
      assert.deepStrictEqual(yield* call("total"), {
        content: `There is no tool "total"; there are sum.`,
        isError: true,
      })
    }),
  )
})
