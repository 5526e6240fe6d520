import { assert, describe, it } from "@effect/vitest"
import { Context, Effect } from "effect"
import { KeptAnswers } from "../../../src/agents/gateway/KeptAnswers.ts"
import { counted, type SessionOptions, Sessions, setReward } from "../../../src/agents/gateway/Sessions.ts"

describe("a session that has ended", () => {
  it.effect("takes no call and no reward of a request that it had accepted before", () =>
    Effect.gen(function* () {
      const rewards: Array<number> = []
      const options: SessionOptions = {
        id: "late",
        modelOf: () => undefined,
        models: [],
        embed: null,
        begin: () => ({ index: 0, end: () => Effect.void }),
        onReward: (reward) => Effect.sync(() => void rewards.push(reward)),
        onEnd: () => Effect.void,
      }
      const sessions = new Sessions({ sessions: 1 })
      const session = yield* sessions.add(options, Context.empty(), 0)
      yield* sessions.end(session, "program")
      let asked = 0
      const call = Effect.sync(() => asked++)
      const errors = [
        yield* Effect.flip(counted(session, { nowMillis: 0, size: 0 }, call)),
        yield* Effect.flip(setReward(session, 1)),
      ]
      assert.deepStrictEqual(
        errors.map(({ code }) => code),
        ["session_ended", "session_ended"],
      )
      assert.deepStrictEqual([asked, rewards, session.reward], [0, [], null])
    }),
  )
})

describe("the answers that a session keeps", () => {
  it("are the latest ones, as far as they are not too large", () => {
    const kept = new KeptAnswers(8e6)
    const large = [{ role: "user" as const, content: "x".repeat(3e6) }]
    for (const id of ["a", "b", "c"]) kept.add(id, large)
    assert.deepStrictEqual(
      ["a", "b", "c"].map((id) => kept.get(id) === large),
      [false, true, true],
    )
    kept.add("d", [{ role: "user", content: "x".repeat(9e6) }])
    assert.strictEqual(kept.get("d"), undefined)
    assert.strictEqual(kept.get("c"), large)
  })

  it("count once if several have the same id, and with their ids", () => {
    const kept = new KeptAnswers(1000)
    const answer = [{ role: "assistant" as const, content: "x".repeat(400) }]
    for (let at = 0; at < 5; at++) kept.add("a", answer)
    kept.add("b", answer)
    assert.deepStrictEqual([kept.get("a"), kept.get("b")], [answer, answer])
    kept.add("c", [{ role: "tool", toolCallId: "y".repeat(2000), toolName: "add", content: "" }])
    assert.strictEqual(kept.get("c"), undefined)
  })
})
