import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as ToolAgent from "../../../../src/agents/agent/ToolAgent.ts"
import * as CalendarTask from "../../../../src/agents/task/games/CalendarTask.ts"
import {
  type Calendar,
  differences,
  drawn,
  hindrance,
  type WeekPlan,
} from "../../../../src/agents/task/games/calendar.ts"
import * as SingleAgent from "../../../../src/agents/episode/protocols/SingleAgent.ts"
import * as Scripted from "../../../../src/agents/lm/providers/scripted.ts"
import { stream } from "../../../../src/base/rng/Rng.ts"
import { play, saying } from "../support.ts"

const before: Calendar = [
  { id: 1, title: "dentist", day: "monday", start: 9, hours: 2 },
  { id: 2, title: "choir", day: "monday", start: 12, hours: 1 },
  { id: 3, title: "review", day: "friday", start: 15, hours: 2 },
]
const plan: WeekPlan = {
  before,
  requests: ['Cancel "choir".', 'Move "review" to Monday, as early as it fits.'],
  calls: [
    { name: "cancel_event", arguments: { id: 2 } },
    { name: "move_event", arguments: { id: 3, day: "monday", start: 11 } },
  ],
  after: [before[0], { ...before[2], day: "monday", start: 11 }],
}
const env = CalendarTask.make({ id: "c", plan })

const begun = env.begin(stream(1))

describe("a calendar", () => {
  it.effect("is right if it equals the expected one, in whatever way", () =>
    Effect.gen(function* () {
      const { observation, call, step } = yield* begun
      assert.include(
        observation,
        '1. Cancel "choir".\n2. Move "review" to Monday, as early as it fits.\nThen answer: done',
      )
      const run = (name: string, args: object) => call({ id: "1", name, arguments: JSON.stringify(args) })
      assert.deepStrictEqual(yield* run("list_events", { day: "monday" }), {
        content: '[{"id":1,"title":"dentist","start":9,"end":11},{"id":2,"title":"choir","start":12,"end":13}]',
      })
      yield* run("cancel_event", { id: 3 })
      yield* run("cancel_event", { id: 2 })
      assert.deepStrictEqual(yield* run("add_event", { title: "review", day: "monday", start: 11, hours: 2 }), {
        content: '{"id":2}',
      })
      assert.deepStrictEqual((yield* step("All done!")).feedback, {
        score: 1,
        target: null,
        message: "The calendar is as it should be.",
      })
    }),
  )

  it.effect("reports an invalid call, and stays unchanged", () =>
    Effect.gen(function* () {
      const { call, step } = yield* begun
      const calls: ReadonlyArray<[name: string, args: object, said: string]> = [
        [
          "move_event",
          { id: 3, day: "monday", start: 11 },
          `It can't be moved: "choir" (id 2) is there from 12 to 13.`,
        ],
        ["move_event", { id: 7, day: "monday", start: 11 }, "There is no event with the id 7; list_events says which"],
        ["move_event", { id: 3, day: "monday", start: 16 }, "It can't be moved: events are between 9 and 17."],
        ["add_event", { title: "x", day: "monday", start: 10, hours: 1 }, `It can't be added: "dentist" (id 1)`],
        [
          "add_event",
          { title: "x", day: "sunday", start: 10, hours: 1 },
          "The arguments are invalid: add_event: day: ",
        ],
        [
          "add_event",
          { title: "x", day: "monday", start: "ten", hours: 1 },
          "The arguments are invalid: add_event: start: ",
        ],
        ["cancel_event", { id: 9 }, "There is no event with the id 9"],
      ]
      for (const [name, args, said] of calls) {
        const result = yield* call({ id: "1", name, arguments: JSON.stringify(args) })
        assert.isTrue(result.isError)
        assert.isTrue(result.content.startsWith(said), result.content)
      }
      const { feedback, terminated } = yield* step("done")
      assert.isTrue(terminated)
      assert.strictEqual(feedback.score, 0)
      assert.strictEqual(
        feedback.message,
        'The calendar is wrong; missing: "review" on Monday from 11 to 13; too much: "choir" on Monday from 12 to 13; too much: "review" on Friday from 15 to 17.',
      )
    }),
  )

  it.effect("continues after other answers, and is truncated if there are only these", () =>
    Effect.gen(function* () {
      const { steps, observations, terminated, score } = yield* play(env, saying("I will", "think: done?", "hm"))
      assert.include(
        observations[1],
        'Call functions (list_events, add_event, move_event, cancel_event), and answer "done"',
      )
      assert.strictEqual(observations[2], "OK.")
      assert.strictEqual(steps.length, 10)
      assert.isFalse(terminated)
      assert.strictEqual(score, 0)
    }),
  )

  it("differs by missing, additional and repeated events", () => {
    assert.deepStrictEqual(
      differences(
        before,
        before.toReversed().map((event) => ({ ...event, id: 9 })),
      ),
      [],
    )
    assert.deepStrictEqual(differences([...before, before[1]], before), ['too much: "choir" on Monday from 12 to 13'])
  })

  it.effect("is kept by the calls of any drawn plan", () =>
    Effect.gen(function* () {
      for (let seed = 0; seed < 1000; seed++) {
        const own = drawn(6 + (seed % 3), 1 + (seed % 5), stream(seed))
        assert.isTrue(own.before.every((event) => hindrance(own.before, event, event.id) === undefined))
        assert.isNotEmpty(differences(own.before, own.after), `${seed}`)
        const { observation, call, step } = yield* CalendarTask.make({ id: "c", plan: own }).begin(stream(1))
        for (const one of own.calls) {
          const done = yield* call({ id: "1", name: one.name, arguments: JSON.stringify(one.arguments) })
          assert.isUndefined(done.isError, done.content)
        }
        const { feedback } = yield* step("done")
        assert.strictEqual(feedback.score, 1, `${seed}: ${observation} ${feedback.message}`)
      }
    }),
  )

  it.effect("is kept by an agent that calls tools", () =>
    Effect.gen(function* () {
      const agent = yield* ToolAgent.make({ model: "scripted" })
      const rollout = yield* SingleAgent.play(agent, { id: "r", env, envSeed: 1, samplingSeed: 1 })
      assert.strictEqual(rollout.totalReward, 1)
    }).pipe(
      Effect.provide(
        Scripted.layer(({ messages }) => {
          const call = plan.calls[messages.filter(({ role }) => role === "tool").length]
          return call === undefined
            ? "done"
            : { toolCalls: [{ id: call.name, name: call.name, arguments: JSON.stringify(call.arguments) }] }
        }),
      ),
    ),
  )
})
