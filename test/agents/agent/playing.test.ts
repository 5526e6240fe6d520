import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import * as ReActAgent from "../../../src/agents/agent/ReActAgent.ts"
import * as Tool from "../../../src/agents/agent/Tool.ts"
import * as ToolAgent from "../../../src/agents/agent/ToolAgent.ts"
import * as Parser from "../../../src/agents/agent/Parser.ts"
import * as TextEnv from "../../../src/agents/task/TextEnv.ts"
import * as SingleAgent from "../../../src/agents/episode/protocols/SingleAgent.ts"
import type { Rollout } from "../../../src/agents/episode/Rollout.ts"
import { calls, inTurn, type Script } from "./support.ts"

/** A locked box: a tool of the env gives its number, and the answer is twice that number. */
const box = TextEnv.make<number>({
  id: "box",
  type: "box",
  tools: [{ name: "read", description: "Reads the label.", parameters: { type: "object", properties: {} } }],
  begin: () => ({ state: 0, observation: "A box." }),
  call: (state) => ({ state: state + 1, content: "21" }),
  step: (state, action) => ({
    state,
    observation: action === "42" ? null : "Still locked.",
    feedback: { score: action === "42" ? 1 : 0, target: "42", message: `read ${state} times` },
    terminated: action === "42",
  }),
})

const double = Tool.make({
  name: "double",
  description: "Twice a number.",
  parameters: Schema.Struct({ of: Schema.Finite }),
  run: ({ of }) => Effect.succeed(2 * of),
})

const episode = { id: "e", env: box, envSeed: 1, samplingSeed: 1 }

const played = (
  made: ReturnType<typeof ToolAgent.make>,
  script: Script,
  options: SingleAgent.SingleAgentOptions = {},
) =>
  Effect.gen(function* () {
    const agent = yield* Effect.provide(made, script.layer)
    return yield* SingleAgent.play(agent, episode, options)
  })

const told = ({ steps }: Rollout) =>
  steps.map((step) =>
    step._tag === "AgentStep"
      ? [step.turnId, step.call.target, step.toolResults.concat(step.call.toolResults).map(({ content }) => content)]
      : [step.turnId, step.action, step.reward],
  )

describe("an agent that plays by a protocol", () => {
  it.effect("calls the env's tools and its own, in one turn or several, with prompts that only grow", () =>
    Effect.gen(function* () {
      const script = inTurn(
        "12",
        calls(["1", "read", {}], ["2", "double", { of: 1 }]),
        calls(["3", "double", { of: 21 }]),
        "42",
      )
      const rollout = yield* played(ToolAgent.make({ model: "m", tools: [double] }), script)
      assert.deepStrictEqual(told(rollout), [
        ["e/turn/0", "env", []],
        ["e/turn/0", "12", 0],
        ["e/turn/1", "external", ["21", "2"]],
        ["e/turn/1", "internal", ["42"]],
        ["e/turn/1", "env", []],
        ["e/turn/1", "42", 1],
      ])
      assert.deepStrictEqual(
        script.requests.map(({ tools }) => tools.map(({ name }) => name)),
        script.requests.map(() => ["double", "read"]),
      )
      for (const [at, { messages }] of script.requests.slice(1).entries()) {
        const before = script.requests[at].messages
        assert.deepStrictEqual(messages.slice(0, before.length), before)
      }
    }),
  )

  it.effect("pays for an answer in the wrong format, and continues", () =>
    Effect.gen(function* () {
      const script = inTurn("42", "<a>41</a>", "<a>42</a>")
      const parser = Parser.tagged("a", { reward: 0.25, penalty: -0.5 })
      const rollout = yield* played(ToolAgent.make({ model: "m", parser }), script)
      assert.strictEqual(rollout.totalReward, -0.5 + 0.25 + 1.25)
      assert.strictEqual(rollout.length, 2)
      assert.isTrue(rollout.ending.terminated)
    }),
  )

  it.effect("works as a ReAct agent, with tools in its action lines", () =>
    Effect.gen(function* () {
      const script = inTurn("Thought: try\nAction: 41", "Thought: so\nAction: double[21]", "Action: finish[42]")
      const rollout = yield* played(ReActAgent.make({ model: "m", tools: [double] }), script)
      assert.deepStrictEqual(
        told(rollout).map(([, what, result]) => [what, result]),
        [
          ["env", []],
          ["41", 0],
          ["internal", ["42"]],
          ["env", []],
          ["42", 1],
        ],
      )
    }),
  )
})
