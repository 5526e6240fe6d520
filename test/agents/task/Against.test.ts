import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Against from "../../../src/agents/task/Against.ts"
import * as MultiTextEnv from "../../../src/agents/task/MultiTextEnv.ts"
import { stream } from "../../../src/base/rng/Rng.ts"

const told = (score: number, message = "") => ({ score, target: null, message })

/** Both say a number at once, three times; the higher one gets a third of a point. */
const higher = MultiTextEnv.make<number>({
  id: "higher",
  type: "higher",
  metadata: { rounds: 3 },
  players: ["left", "right"],
  maxSteps: 5,
  begin: () => ({ state: 1, toMove: ["left", "right"], observations: { left: "left 1", right: "right 1" } }),
  step: (round, { left, right }) => ({
    state: round + 1,
    toMove: round === 3 ? [] : ["left", "right"],
    observations: { left: `left ${round + 1}`, right: `right ${round + 1}: ${left} and ${right}` },
    feedback: {
      left: told(Number(left) > Number(right) ? 1 / 3 : 0),
      right: told(Number(right) > Number(left) ? 1 / 3 : 0, `left said ${left}`),
    },
    terminated: round === 3,
    info: { round },
  }),
})

/** One says a word, then the other three times: each time both get a quarter of a point. */
const inTurn = MultiTextEnv.make<number>({
  id: "turns",
  type: "turns",
  players: ["one", "other"],
  begin: () => ({ state: 0, toMove: ["other"], observations: { other: "0", one: "0" } }),
  step: (step) => {
    const next = step + 1
    return {
      state: next,
      toMove: [next % 4 === 1 ? "one" : "other"],
      observations: { one: String(next), other: String(next) },
      feedback: { one: told(0.25), ...(next === 6 ? { one: told(0) } : {}) },
      terminated: false,
      truncated: next === 7,
    }
  },
})

describe("a game as a task for one player", () => {
  it.effect("shows the player's observations, and plays the others by theirs", () =>
    Effect.gen(function* () {
      const seen: Array<string> = []
      const env = Against.make(higher, {
        id: "h-1",
        type: "higher",
        player: "right",
        others: (observation) => {
          seen.push(observation)
          return "4"
        },
      })
      assert.strictEqual(env.maxSteps, 5)
      assert.deepStrictEqual(env.metadata, { rounds: 3 })
      const episode = yield* env.begin(stream(1))
      assert.strictEqual(episode.observation, "right 1")
      assert.deepStrictEqual(yield* episode.step("7"), {
        observation: "right 2: 4 and 7",
        feedback: { score: 1 / 3, target: null, message: "left said 4" },
        terminated: false,
        info: { round: 1 },
      })
      assert.strictEqual((yield* episode.step("1")).feedback.score, 0)
      const last = yield* episode.step("7")
      assert.isTrue(last.terminated)
      assert.strictEqual(last.observation, "right 4: 4 and 7")
      assert.deepStrictEqual(seen, ["left 1", "left 2", "left 3"])
    }),
  )

  it.effect("adds up the player's scores while the others moved, and passes on a truncation", () =>
    Effect.gen(function* () {
      const env = Against.make(inTurn, { id: "t-1", type: "turns", player: "one", others: () => "" })
      const episode = yield* env.begin(stream(1))
      assert.strictEqual(episode.observation, "1")
      const round = yield* episode.step("")
      assert.strictEqual(round.observation, "5")
      assert.strictEqual(round.feedback.score, 1)
      const last = yield* episode.step("")
      assert.isTrue(last.truncated)
      assert.isFalse(last.terminated)
      assert.strictEqual(last.feedback.score, 0.25)
    }),
  )

  it.effect("gives the others their own random streams, the same for the same seed", () =>
    Effect.gen(function* () {
      const env = Against.make(higher, {
        id: "h-1",
        type: "higher",
        player: "right",
        others: (_, random) => String(random.integer(1000)),
      })
      const said = (seed: number) =>
        Effect.gen(function* () {
          const episode = yield* env.begin(stream(seed))
          return [(yield* episode.step("7")).observation, (yield* episode.step("7")).observation]
        })
      assert.deepStrictEqual(yield* said(1), yield* said(1))
      assert.notDeepEqual(yield* said(1), yield* said(2))
      const [first, second] = (yield* said(1)).map((text) => /: (\d+)/.exec(text ?? "")?.[1])
      assert.notStrictEqual(first, second)
    }),
  )
})
