import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as MemorylessAgent from "../../../../src/agents/agent/MemorylessAgent.ts"
import * as Parser from "../../../../src/agents/agent/Parser.ts"
import * as Delegating from "../../../../src/agents/episode/protocols/Delegating.ts"
import type { RolloutOutcome } from "../../../../src/agents/episode/rollouts/Outcome.ts"
import type { Protocol } from "../../../../src/agents/episode/Protocol.ts"
import * as RolloutEngine from "../../../../src/agents/episode/rollouts/RolloutEngine.ts"
import type { RolloutRequest } from "../../../../src/agents/episode/rollouts/RolloutRequest.ts"
import * as SingleAgent from "../../../../src/agents/episode/protocols/SingleAgent.ts"
import type { ToolHandler } from "../../../../src/agents/episode/protocols/tools.ts"
import * as Scripted from "../../../../src/agents/lm/providers/scripted.ts"
import { batchOf, tasksOf } from "../rollouts/batch.ts"
import { scripted } from "../support.ts"

const collected = Effect.fnUntraced(function* (batch: RolloutEngine.RolloutBatch) {
  const outcomes: Array<RolloutOutcome> = []
  yield* RolloutEngine.each(batch, (outcome) => Effect.sync(() => void outcomes.push(outcome)))
  return outcomes.map(({ rollouts, failure }) => failure ?? rollouts.length)
})

/** Calls a tool, then acts. */
const caller = scripted((index) => (index === 0 ? { tools: [["ask", "{}"]] } : { act: "done" }))

const withHandler = (handler: ToolHandler) => SingleAgent.make(caller, { handlers: { ask: handler } })

/** Goes wrong in the second of four episodes, for the first so many times. */
const brokenOnce = (times: number, wrong: () => ReturnType<ToolHandler>): ToolHandler => {
  let left = times
  return (_, { rolloutId }) =>
    rolloutId === "task-0#1" && left-- > 0 ? wrong() : Effect.succeed({ content: "an answer" })
}

const failed = (problem: string) => ({
  error: "ProtocolError",
  message: `task-0#1/turn/0: the handler of the tool "ask" ${problem}; expected a result, or a failure with a message`,
})

describe("a failing tool handler fails its episode and no other one", () => {
  it.effect.each<readonly [string, () => ReturnType<ToolHandler>, string]>([
    [
      "by throwing",
      () => {
        throw new Error("no\nnetwork")
      },
      "threw: no; network",
    ],
    ["by a defect", () => Effect.die("gone"), "threw: gone"],
    ["by interrupting itself", () => Effect.interrupt, "was interrupted"],
  ])("%s", ([, wrong, problem]) =>
    Effect.gen(function* () {
      const once = () => withHandler(brokenOnce(1, wrong))
      assert.deepStrictEqual(yield* collected(batchOf(2, { protocol: once() })), [1, failed(problem), 1, 1])
      assert.deepStrictEqual(yield* collected(batchOf(2, { protocol: once(), onFailure: "drop" })), [1, 1, 1])
      assert.deepStrictEqual(yield* collected(batchOf(2, { protocol: once(), onFailure: "retry" })), [1, 1, 1, 1])
      const always = withHandler(brokenOnce(Infinity, wrong))
      assert.deepStrictEqual(yield* collected(batchOf(2, { protocol: always, onFailure: "retry" })), [
        1,
        failed(problem),
        1,
        1,
      ])
    }),
  )
})

describe("a failing parser fails its episode and no other one", () => {
  const batchWith = (parser: Parser.Parser) =>
    Effect.map(
      MemorylessAgent.make({ model: "scripted:echo", parser }).pipe(
        Effect.provide(Scripted.layer(Scripted.named["echo"])),
      ),
      (agent) => batchOf(3, { protocol: SingleAgent.make(agent, { maxSteps: 1 }), tasks: tasksOf(3) }),
    )

  it.effect("by throwing", () =>
    Effect.gen(function* () {
      let left = 1
      const batch = yield* batchWith((text) => {
        if (left-- > 0) throw new TypeError("undefined is no move")
        return Parser.whole(text)
      })
      const message = "memoryless_agent: the parser threw: undefined is no move; expected an action, or a failure with feedback" // prettier-ignore
      const outcomes = yield* collected(batch)
      assert.lengthOf(outcomes, 6)
      assert.deepStrictEqual(
        outcomes.filter((outcome) => outcome !== 1),
        [{ error: "AgentError", message }],
      )
      left = 1
      assert.deepStrictEqual(yield* collected({ ...batch, onFailure: "retry" }), [1, 1, 1, 1, 1, 1])
    }),
  )

  it.effect("by giving an invalid result", () =>
    Effect.gen(function* () {
      const nothing = Parser.map(Parser.whole, () => ({ _tag: "Parsed", action: "x", reward: NaN }))
      const [first] = yield* collected(yield* batchWith(nothing))
      assert.containSubset(first, { error: "AgentError" })
    }),
  )
})

describe("the result of a sub-agent that throws", () => {
  it.effect.each<readonly [string, Partial<Delegating.SubAgent>]>([
    [
      "env",
      {
        env: () => {
          throw new Error("no room")
        },
      },
    ],
    [
      "result",
      {
        result: () => {
          throw new Error("no room")
        },
      },
    ],
  ])("its %s is what the delegation results in", ([what, about]) =>
    Effect.gen(function* () {
      const lead = scripted((index) =>
        index === 0 ? { tools: [["delegate", '{"agent":"helper","task":"look"}']] } : { act: "done" },
      )
      const helper = { agent: scripted(() => ({ act: "seen" })), description: "Helps.", ...about }
      const protocol = Delegating.make(lead, { agents: { helper } })
      const env = yield* tasksOf(1).at(0)
      const [rollout] = yield* protocol.play({ id: "e", env, envSeed: 1, samplingSeed: 1 })
      const [step] = rollout.steps
      assert.strictEqual(step._tag, "AgentStep")
      assert.containSubset(step, {
        toolResults: [{ isError: true, content: `helper failed: its ${what} threw: no room` }],
      })
    }),
  )
})

describe("a function from request to protocol that throws", () => {
  it.effect("fails its episode and no other one", () =>
    Effect.gen(function* () {
      const agent = scripted(() => ({ act: "done" }))
      const protocol = (request: RolloutRequest): Protocol => {
        if (request.id === "task-0#1") throw new Error("no\nprotocol")
        return SingleAgent.make(agent)
      }
      const outcomes = yield* collected({ ...batchOf(2), protocol })
      assert.deepStrictEqual(
        outcomes.filter((outcome) => typeof outcome !== "number"),
        [
          {
            error: "ProtocolError",
            message: "protocol: the function threw for the request task-0#1: no; protocol; expected a protocol",
          },
        ],
      )
      assert.isAbove(outcomes.length, 1)
    }),
  )
})
