import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import * as Parser from "../../../src/agents/agent/Parser.ts"
import * as ReActAgent from "../../../src/agents/agent/ReActAgent.ts"
import * as Tool from "../../../src/agents/agent/Tool.ts"
import type { Completion } from "../../../src/agents/lm/Chat.ts"
import { inTurn, look, play, told } from "./support.ts"

const lookup = Tool.make({
  name: "lookup",
  description: "What an encyclopedia says.",
  parameters: Schema.Struct({ topic: Schema.String }),
  run: ({ topic }) => (topic === "Paris" ? Effect.succeed("A city.") : Effect.fail(new Error("nothing found"))),
})

const double = Tool.make({
  name: "double",
  description: "Twice a number.",
  parameters: Schema.Struct({ of: Schema.Finite }),
  run: ({ of }) => Effect.succeed(2 * of),
})

const made = (
  config: Omit<ReActAgent.ReActAgentConfig, "model">,
  ...answers: ReadonlyArray<Completion | string | null>
) => {
  const script = inTurn(...answers)
  return Effect.map(Effect.provide(ReActAgent.make({ model: "m", ...config }), script.layer), (agent) => ({
    agent,
    script,
  }))
}

describe("an action line", () => {
  it("is the first one, up to the observation that the model invents", () => {
    const parse = ReActAgent.action()
    const table: ReadonlyArray<readonly [string, string | null]> = [
      ["Thought: a key?\nAction: take key", "take key"],
      ["thought 1: hm\naction 1: look\nObservation 1: a door\nAction 2: open", "look"],
      ["Action: write\ntwo lines\nThought: done", "write\ntwo lines"],
      ["  Action:   go  ", "go"],
      ["Action:\n", null],
      ["Thought: what Action: is there", null],
      ["take key", null],
    ]
    for (const [text, action] of table) {
      const expected =
        action === null
          ? Parser.refused("Answer with a line `Thought: …` and then a line `Action: …`.")
          : Parser.parsed(action)
      assert.deepStrictEqual(parse(text), expected, text)
    }
  })
})

describe("a ReAct agent", () => {
  it.effect("runs its tools by action lines, and continues with their results", () =>
    Effect.gen(function* () {
      const { agent, script } = yield* made(
        { tools: [lookup, double], systemPrompt: "Answer." },
        "Thought: what is it?\nAction: lookup[Paris]",
        "Thought: and?\nAction: lookup[Rome]",
        'Thought: twice\nAction: double({"of": 2})',
        "Thought: again\nAction: double[3]",
        "Thought: I know.\nAction: finish[a city]",
      )
      const turn = yield* agent.act(look("What is Paris?"))
      assert.deepStrictEqual(turn.outcome, { _tag: "Act", action: "a city", reward: 0 })
      assert.deepStrictEqual(
        turn.calls.map(({ target }) => target),
        ["internal", "internal", "internal", "internal", "env"],
      )
      assert.deepStrictEqual(
        script.requests[4].messages.slice(1).map(({ role, content }) => [role, content]),
        [
          ["user", "Observation: What is Paris?"],
          ["assistant", "Thought: what is it?\nAction: lookup[Paris]"],
          ["user", "Observation: A city."],
          ["assistant", "Thought: and?\nAction: lookup[Rome]"],
          ["user", "Observation: lookup failed: nothing found"],
          ["assistant", 'Thought: twice\nAction: double({"of": 2})'],
          ["user", "Observation: 4"],
          ["assistant", "Thought: again\nAction: double[3]"],
          ["user", "Observation: 6"],
        ],
      )
      const [{ messages, tools, stop }] = script.requests
      assert.deepStrictEqual(tools, [])
      assert.deepStrictEqual(stop, ["\nObservation:"])
      assert.match(
        messages[0].content,
        /^Answer\.\n\nAnswer with two lines: .*\n.*\n- lookup: What an encyclopedia says\. Its input: \{/,
      )
    }),
  )

  it.effect("leaves every other action to the env, and asks for the format if it is missing", () =>
    Effect.gen(function* () {
      const { agent, script } = yield* made({ tools: [lookup] }, "Action: open[door]", "go", "Action: go")
      const { turns } = yield* play(agent, "A door.", [
        { observation: "It is open.", feedback: told(0) },
        { observation: null, feedback: told(1) },
      ])
      assert.deepStrictEqual(
        turns.map(({ outcome }) => (outcome._tag === "Act" ? outcome.action : outcome._tag)),
        ["open[door]", "NoAction", "go"],
      )
      assert.deepStrictEqual(
        script.requests[2].messages.slice(1).map(({ content }) => content),
        [
          "Observation: A door.",
          "Action: open[door]",
          "Observation: It is open.",
          "go",
          "Answer with a line `Thought: …` and then a line `Action: …`.",
        ],
      )
    }),
  )

  it.effect("calls external tools by action lines, and describes them to the model", () =>
    Effect.gen(function* () {
      const { agent, script } = yield* made(
        { tools: [lookup] },
        'Thought: a job\nAction: delegate[{"task": "count"}]',
        "Action: delegate[count again]",
        "Action: finish[3]",
        "Action: delegate[once more]",
      )
      const delegate = {
        name: "delegate",
        description: "Has a task done.",
        parameters: { type: "object", properties: { task: { type: "string" } } },
      }
      const asked = (task: string) => [{ id: "action", name: "delegate", arguments: `{"task": "${task}"}` }]
      const answered = (content: string) => ({
        _tag: "ToolResults" as const,
        results: [{ toolCallId: "action", toolName: "delegate", content, isError: false }],
      })
      const first = yield* agent.act({ ...look("How many?"), tools: [delegate] })
      assert.deepStrictEqual(first.outcome, { _tag: "CallTools", toolCalls: asked("count") })
      assert.strictEqual(first.calls[0].target, "external")
      const second = yield* agent.act(answered("2"))
      assert.deepStrictEqual(second.outcome, { _tag: "CallTools", toolCalls: asked("count again") })
      const third = yield* agent.act(answered("3"))
      assert.deepStrictEqual(third.outcome, { _tag: "Act", action: "3", reward: 0 })
      const [system, opening, ...rest] = script.requests[2].messages
      assert.match(system.content, /\n- lookup: /)
      assert.match(
        opening.content,
        /^You can also call, by `Action: name\[input\]`:\n- delegate: Has a task done\. Its input: \{.*\n.*\n\nObservation: How many\?$/,
      )
      assert.deepStrictEqual(
        rest.map(({ role, content }) => [role, content]),
        [
          ["assistant", 'Thought: a job\nAction: delegate[{"task": "count"}]'],
          ["user", "Observation: 2"],
          ["assistant", "Action: delegate[count again]"],
          ["user", "Observation: 3"],
        ],
      )
      // No server has to know of tools.
      for (const { tools } of script.requests) assert.deepStrictEqual(tools, [])
      // Without it, the same line is an action.
      yield* agent.reset
      const other = yield* agent.act(look("How many?"))
      assert.deepStrictEqual(other.outcome, { _tag: "Act", action: "delegate[once more]", reward: 0 })
    }),
  )

  it.effect("describes a tool again if its schema changed", () =>
    Effect.gen(function* () {
      const { agent, script } = yield* made({}, ...Array.from({ length: 3 }, () => "Action: wait"))
      const toolOf = (parameter: string) => ({
        name: "ask",
        description: "Asks.",
        parameters: { type: "object", properties: { [parameter]: { type: "string" } } },
      })
      for (const tool of [toolOf("a"), toolOf("a"), toolOf("b")]) yield* agent.act({ ...look("Well?"), tools: [tool] })
      const messages = script.requests[2].messages.filter(({ role }) => role === "user")
      assert.deepStrictEqual(
        messages.map(({ content }) => /properties":\{"(.)"/.exec(content)?.[1]),
        ["a", undefined, "b"],
      )
    }),
  )

  it.effect("stops at its limit of calls", () =>
    Effect.gen(function* () {
      const again = "Action: lookup[Paris]"
      const { agent, script } = yield* made({ tools: [lookup], maxCalls: 2 }, again, again)
      const turn = yield* agent.act(look("Well?"))
      const feedback = "No more tools can be called for this. Answer without one."
      assert.deepStrictEqual(turn.outcome, { _tag: "NoAction", feedback, reward: -0.1 })
      assert.strictEqual(script.requests.length, 2)
    }),
  )

  it.effect("parses the text after `Action:` by a user's own parser", () =>
    Effect.gen(function* () {
      const { agent } = yield* made({ parser: Parser.tagged("a") }, "Action: x", "Action: <a>x</a>")
      assert.strictEqual((yield* agent.act(look("Well?"))).outcome._tag, "NoAction")
      assert.deepStrictEqual((yield* agent.act(look("Well?"))).outcome, { _tag: "Act", action: "x", reward: 0 })
    }),
  )
})
