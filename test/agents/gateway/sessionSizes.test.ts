import { assert, describe, it } from "@effect/vitest"
import { Context, Deferred, Effect, Fiber } from "effect"
import { noTotals, SessionRecords } from "../../../src/agents/gateway/run/SessionRecords.ts"
import { counted, Sessions } from "../../../src/agents/gateway/Sessions.ts"
import { completion } from "../lm/support.ts"

const open = (sessions: Sessions, id: string, recorded = 0) =>
  sessions.add(
    {
      id,
      modelOf: () => undefined,
      models: [],
      embed: null,
      begin: () => ({ index: 0, end: () => Effect.void }),
      recorded: () => recorded,
      onReward: () => Effect.void,
      onEnd: () => Effect.void,
    },
    Context.empty(),
    0,
  )

describe("sessions", () => {
  it.effect("refuse calls whose records would be too large for one rollout", () =>
    Effect.gen(function* () {
      const session = yield* open(new Sessions({ sessions: 9 }), "a")
      const call = (size: number) => counted(session, { nowMillis: 0, size }, Effect.void)
      yield* call(1.5e8)
      yield* call(0.5e8)
      const { status, code } = yield* Effect.flip(call(1))
      assert.deepStrictEqual([status, code], [429, "session_too_large"])
    }),
  )

  it.effect("refuse calls that would fill the memory, until others have ended", () =>
    Effect.gen(function* () {
      const sessions = new Sessions({ sessions: 9 })
      const end = yield* Deferred.make<void>()
      const session = yield* open(sessions, "a", 0.85e9)
      const other = yield* open(sessions, "b", 0.85e9)
      const request = { nowMillis: 0, size: 1e8 }
      const long = yield* Effect.forkChild(counted(session, request, Deferred.await(end)), { startImmediately: true })
      const refused = yield* Effect.flip(counted(other, request, Effect.void))
      assert.deepStrictEqual([refused.status, refused.code], [429, "sessions_too_large"])
      yield* Deferred.succeed(end, undefined)
      yield* Fiber.join(long)
      yield* counted(other, request, Effect.void)
    }),
  )

  it("count a message that several calls have once, and nothing after their end", () => {
    const records = new SessionRecords(noTotals())
    records.add({ _tag: "Begun", id: "a", agent: "mine", groupId: null, tags: {}, samplingSeed: 1 })
    const sizes = Array.from({ length: 3 }, (_, index) => {
      const messages = Array.from({ length: index + 1 }, () => ({ role: "user" as const, content: "x".repeat(1e4) }))
      const tools = [{ name: "add", description: "y".repeat(1e4), parameters: {} }]
      const call = { purpose: "action" as const, target: "internal" as const, loopIndex: index, messages, tools }
      const ended = { ...call, completion: completion("z"), toolResults: [], parsed: null, incomplete: false }
      const spent = { calls: 0, inputTokens: 0, outputTokens: 0, money: 0 }
      records.add({ _tag: "Call", id: "a", index, call: ended, problem: null, latencyMillis: 1, spent, seconds: 1 })
      return Math.floor(records.characters / 1e4)
    })
    assert.deepStrictEqual(sizes, [2, 3, 4])
    records.add({ _tag: "Ended", id: "a", how: "agent", seconds: 1 })
    assert.strictEqual(records.characters, 0)
  })
})
