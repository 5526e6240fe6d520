import { assert, describe, it } from "@effect/vitest"
import { Context, Effect } from "effect"
import { answerCall } from "../../../src/agents/gateway/answerCall.ts"
import { chatCompletions } from "../../../src/agents/gateway/protocols/chatCompletions.ts"
import { type SessionLimits, Sessions } from "../../../src/agents/gateway/Sessions.ts"
import { LmRequest } from "../../../src/agents/lm/Chat.ts"
import { lmError } from "../../../src/agents/lm/LmError.ts"
import { completion } from "../lm/support.ts"

/** Opens a session whose model answers if `answers` is true, and returns a function that makes a call of it. */
const opened = Effect.fnUntraced(function* (answers: boolean, limits: Partial<SessionLimits> = {}) {
  const complete = () => (answers ? Effect.succeed(completion("Yes.")) : lmError("m", "unavailable", "It is down."))
  const model = { lm: { complete }, base: { ...LmRequest.defaults, model: "m" } }
  const session = yield* new Sessions(limits).add(
    {
      id: "a",
      modelOf: (name) => (name === "m" ? model : undefined),
      models: ["m"],
      embed: null,
      begin: () => ({ index: 0, end: () => Effect.void }),
      onReward: () => Effect.void,
      onEnd: () => Effect.void,
    },
    Context.empty(),
    0,
  )
  const call = (body: { readonly messages: ReadonlyArray<object>; readonly model?: string }) =>
    answerCall(session, {
      name: "chat",
      protocol: chatCompletions,
      body: { model: "m", ...body },
      headers: {},
      caller: null,
    })
  return { session, call }
})

const bodyOf = (content: string) => ({ messages: [{ role: "user", content }] })

describe("the requests that a session keeps to share them", () => {
  it.effect("are those of calls that were answered", () =>
    Effect.gen(function* () {
      const { session, call } = yield* opened(true)
      const first = bodyOf("Hi")
      yield* call(first)
      assert.deepStrictEqual(session.shared.body(bodyOf("Hi")).messages, first.messages)
      assert.isTrue(Object.is(Object.values(session.shared.body(bodyOf("Hi")).messages ?? [])[0], first.messages[0]))
    }).pipe(Effect.scoped),
  )

  it.effect("are none of a call that failed, or that was refused, since no limit on the memory counts these", () =>
    Effect.gen(function* () {
      for (const [answers, limits, body] of [
        [false, {}, bodyOf("Hi")],
        [true, { perSession: 10 }, bodyOf("Hi")],
        [true, {}, { ...bodyOf("Hi"), model: "other" }],
        [true, {}, { messages: [...bodyOf("Hi").messages, { role: "nobody" }] }],
      ] as const) {
        const { session, call } = yield* opened(answers, limits)
        yield* Effect.flip(call(body))
        const [kept] = Object.values(session.shared.body(bodyOf("Hi")).messages ?? [])
        assert.isFalse(Object.is(kept, body.messages[0]))
      }
    }).pipe(Effect.scoped),
  )
})
