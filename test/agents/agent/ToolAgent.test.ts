import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Schema } from "effect"
import { TestClock } from "effect/testing"
import type { ToolResult } from "../../../src/agents/agent/Agent.ts"
import * as HistoryList from "../../../src/agents/agent/memory/HistoryList.ts"
import * as Parser from "../../../src/agents/agent/Parser.ts"
import * as Tool from "../../../src/agents/agent/Tool.ts"
import * as ToolAgent from "../../../src/agents/agent/ToolAgent.ts"
import * as TextEnv from "../../../src/agents/task/TextEnv.ts"
import * as RolloutFilters from "../../../src/agents/episode/rollouts/RolloutFilters.ts"
import * as Samples from "../../../src/agents/episode/samples/samples.ts"
import * as SingleAgent from "../../../src/agents/episode/protocols/SingleAgent.ts"
import { scored } from "../../../src/agents/evaluate/PlayedEpisode.ts"
import { bytes } from "../../../src/base/tokens/words.ts"
import type { Completion, ToolSpec } from "../../../src/agents/lm/Chat.ts"
import { broken, calls, inTurn, lastOf, linesOf, look, play, said, told } from "./support.ts"

const add = Tool.make({
  name: "add",
  description: "The sum of two numbers.",
  parameters: Schema.Struct({ a: Schema.Finite, b: Schema.Finite }),
  run: ({ a, b }) => Effect.succeed(a + b),
})

const weather: ToolSpec = { name: "weather", description: "Outside.", parameters: { type: "object" } }

const made = (
  config: Omit<ToolAgent.ToolAgentConfig, "model">,
  ...answers: ReadonlyArray<Completion | string | null>
) => {
  const script = inTurn(...answers)
  return Effect.map(Effect.provide(ToolAgent.make({ model: "m", ...config }), script.layer), (agent) => ({
    agent,
    script,
  }))
}

const result = (toolCallId: string, toolName: string, content: string, isError = false): ToolResult => ({
  toolCallId,
  toolName,
  content,
  isError,
})

const seeing = (text: string, ...tools: ReadonlyArray<ToolSpec>) => ({ _tag: "Observation", text, tools }) as const

describe("an agent with tools", () => {
  it.effect("may have a parser that throws on the empty text next to a call", () =>
    Effect.gen(function* () {
      const parser: Parser.Parser = (text) => Parser.parsed(String(JSON.parse(text)))
      const { agent } = yield* made({ tools: [add], parser }, calls(["1", "add", { a: 1, b: 2 }]), "7", "{")
      const turn = yield* agent.act(look("Well?"))
      assert.deepStrictEqual(turn.outcome, { _tag: "Act", action: "7", reward: 0 })
      assert.deepStrictEqual(
        turn.calls.map(({ parsed }) => parsed),
        [null, { _tag: "Parsed", action: "7", reward: 0 }],
      )
      // An answer for the env must be parsed.
      const error = yield* Effect.flip(agent.act(look("And?")))
      assert.include(error.message, "the parser threw: ")
    }),
  )

  it.effect("runs its own tools, and the model continues with the results", () =>
    Effect.gen(function* () {
      const call = calls(["1", "add", { a: 1, b: 2 }], ["2", "add", { a: 3, b: 4 }])
      const { agent, script } = yield* made({ tools: [add] }, call, "7")
      const turn = yield* agent.act(look("Well?"))
      assert.deepStrictEqual(turn.outcome, { _tag: "Act", action: "7", reward: 0 })
      assert.deepStrictEqual(
        turn.calls.map(({ target, loopIndex, toolResults, parsed }) => ({ target, loopIndex, toolResults, parsed })),
        [
          {
            target: "internal",
            loopIndex: 0,
            toolResults: [result("1", "add", "3"), result("2", "add", "7")],
            // The original also keeps the parser's result here, which has no effect.
            parsed: { _tag: "Parsed", action: "", reward: 0 },
          },
          { target: "env", loopIndex: 1, toolResults: [], parsed: { _tag: "Parsed", action: "7", reward: 0 } },
        ],
      )
      assert.deepStrictEqual(script.requests[1].messages, [
        { role: "user", content: "Well?" },
        { role: "assistant", content: "", toolCalls: call.toolCalls },
        { role: "tool", toolCallId: "1", toolName: "add", content: "3" },
        { role: "tool", toolCallId: "2", toolName: "add", content: "7" },
      ])
      assert.deepStrictEqual(script.requests[0].tools, [add.spec])
      // The recorded tools are needed to make the prompt's tokens again.
      for (const { tools } of turn.calls) assert.deepStrictEqual(tools, [add.spec])
    }),
  )

  it.effect("records the parse of completions with its own calls, at no cost, and none for external calls", () =>
    Effect.gen(function* () {
      const outside = { ...add.spec, name: "outside" }
      const { agent } = yield* made(
        { tools: [add], parser: Parser.tagged("answer") },
        calls(["1", "add", { a: 1, b: 2 }]),
        calls(["2", "outside", { a: 1, b: 2 }]),
        "<answer>3</answer>",
      )
      const env = TextEnv.make<null>({
        id: "sum",
        type: "sum",
        begin: () => ({ state: null, observation: "Well?" }),
        step: (state) => ({ state, observation: null, feedback: told(1), terminated: true }),
      })
      const rollout = yield* SingleAgent.play(
        agent,
        { id: "e", env, envSeed: 1, samplingSeed: 1 },
        { tools: [outside], handlers: { outside: () => Effect.succeed({ content: "3" }) } },
      )
      assert.deepStrictEqual(
        rollout.steps.map((step) => (step._tag === "AgentStep" ? [step.call.target, step.call.parsed?._tag] : "env")),
        [["internal", "Failed"], ["external", undefined], ["env", "Parsed"], "env"],
      )
      assert.strictEqual(rollout.totalReward, 1)
      assert.strictEqual(RolloutFilters.parseFailures(rollout), 0)
      assert.deepStrictEqual(
        rollout.steps.flatMap((step) => scored(step)?.score ?? []),
        [1],
      )
      const [sample] = yield* Samples.of([rollout], { tokenizer: bytes, onBreak: "split" })
      assert.isFalse(sample.parseFailed)
    }),
  )

  it.effect("shows the model why a call failed", () =>
    Effect.gen(function* () {
      const call = calls(["1", "add", "{"], ["2", "sub", {}])
      const { agent, script } = yield* made({ tools: [add] }, call, "x")
      const turn = yield* agent.act(look("Well?"))
      assert.deepStrictEqual(
        turn.calls[0].toolResults[1],
        result("2", "sub", 'There is no tool "sub"; there are add.', true),
      )
      const shown = script.requests[1].messages.slice(2)
      assert.deepInclude(shown[1], { role: "tool", isError: true, content: 'There is no tool "sub"; there are add.' })
      assert.match(shown[0].content, /^The arguments of add are not JSON/)
    }),
  )

  it.effect("hands external calls to the caller after its own calls, and continues with their results", () =>
    Effect.gen(function* () {
      const call = calls(["1", "weather", {}], ["2", "add", { a: 1, b: 1 }], ["3", "weather", {}])
      const { agent, script } = yield* made({ tools: [add] }, call, "x")
      const turn = yield* agent.act(seeing("Well?", weather))
      assert.deepStrictEqual(turn.outcome, { _tag: "CallTools", toolCalls: [call.toolCalls[0], call.toolCalls[2]] })
      assert.deepInclude(turn.calls[0], { target: "external", toolResults: [result("2", "add", "2")], parsed: null })
      const results = [result("3", "weather", "rain"), result("1", "weather", "sun", true)]
      const next = yield* agent.act({ _tag: "ToolResults", results })
      assert.deepStrictEqual(next.outcome, { _tag: "Act", action: "x", reward: 0 })
      assert.deepInclude(next.calls[0], { target: "env", loopIndex: 1 })
      assert.deepStrictEqual(
        script.requests[1].messages
          .slice(2)
          .map((message) => (message.role === "tool" ? [message.toolCallId, message.content] : [])),
        [
          ["2", "2"],
          ["1", "sun"],
          ["3", "rain"],
        ],
      )
      assert.deepStrictEqual(script.requests[1].tools, [add.spec, weather])
    }),
  )

  it.effect("gives calls with the same id their results in the order in which these came", () =>
    Effect.gen(function* () {
      const call = calls(["1", "weather", {}], ["2", "weather", {}], ["1", "weather", {}])
      const { agent, script } = yield* made({}, call, "x")
      yield* agent.act(seeing("Well?", weather))
      const results = [result("1", "weather", "sun"), result("2", "weather", "rain"), result("1", "weather", "snow")]
      yield* agent.act({ _tag: "ToolResults", results })
      assert.deepStrictEqual(
        script.requests[1].messages.slice(2).map(({ content }) => content),
        ["sun", "rain", "snow"],
      )
    }),
  )

  it.effect("takes the default of a setting that is undefined", () =>
    Effect.gen(function* () {
      const settings: object = { temperature: undefined, stop: undefined, seed: undefined }
      const [one, other] = [yield* made({}, "x"), yield* made(settings, "x")]
      for (const { agent } of [one, other]) yield* agent.act(look("Well?"))
      assert.deepStrictEqual(other.script.requests, one.script.requests)
    }),
  )

  it.effect("refuses unexpected results, and observations while results are missing", () =>
    Effect.gen(function* () {
      const { agent } = yield* made({}, calls(["1", "weather", {}]), "x")
      yield* agent.act(seeing("Well?", weather))
      const early = yield* Effect.flip(agent.act(look("Now?")))
      assert.strictEqual(
        early.message,
        "tool_agent: expected the results of its calls weather (1), found an observation",
      )
      for (const ids of [[], ["2"], ["1", "1"], ["1", "2"]]) {
        const results = ids.map((id) => result(id, "weather", "sun"))
        const wrong = yield* Effect.flip(agent.act({ _tag: "ToolResults", results }))
        assert.strictEqual(
          wrong.message,
          `tool_agent: expected the results of the calls [1], found those of [${ids.join(", ")}]`,
        )
      }
      const turn = yield* agent.act({ _tag: "ToolResults", results: [result("1", "weather", "sun")] })
      assert.strictEqual(turn.outcome._tag, "Act")
    }),
  )

  it.effect("stops at its limit of calls, the last of which forbids tools, with prompts that only grow", () =>
    Effect.gen(function* () {
      const again = (id: string) => calls([id, "add", { a: 1, b: 1 }])
      const { agent, script } = yield* made({ tools: [add], maxCalls: 3 }, again("1"), again("2"), again("3"), "2")
      const turn = yield* agent.act(look("Well?"))
      assert.deepStrictEqual(turn.outcome, {
        _tag: "NoAction",
        feedback: "No more tools can be called for this. Answer without one.",
        reward: -0.1,
      })
      assert.deepStrictEqual(
        script.requests.map(({ toolChoice }) => toolChoice),
        ["auto", "auto", "none"],
      )
      assert.isTrue(script.requests.every(({ tools }) => tools.length === 1))
      assert.deepStrictEqual(
        turn.calls.map(({ target }) => target),
        ["internal", "internal", "env"],
      )
      yield* agent.act(look("Answer."))
      for (const [at, { messages }] of script.requests.slice(1).entries()) {
        const before = script.requests[at].messages
        assert.deepStrictEqual(messages.slice(0, before.length), before)
      }
      // Every call has its answer.
      const answered = script.requests[3].messages.flatMap((message) =>
        message.role === "tool" ? [message.toolCallId] : [],
      )
      assert.deepStrictEqual(answered, ["1", "2", "3"])
      const free = yield* made({ tools: [add], maxCalls: 1, shotClock: false }, "x")
      yield* free.agent.act(look("Well?"))
      assert.strictEqual(free.script.requests[0].toolChoice, "auto")
    }),
  )

  it.effect("counts calls per observation, external results included", () =>
    Effect.gen(function* () {
      const own = calls(["1", "add", { a: 1, b: 1 }])
      const outside = calls(["2", "weather", {}])
      const { agent, script } = yield* made({ tools: [add], maxCalls: 3 }, own, "x", own, outside, own, own, "y")
      yield* agent.act(look("One."))
      const turn = yield* agent.act(seeing("Two.", weather))
      assert.strictEqual(turn.outcome._tag, "CallTools")
      const results = [result("2", "weather", "sun")]
      const last = yield* agent.act({ _tag: "ToolResults", results })
      assert.strictEqual(last.outcome._tag, "NoAction")
      assert.deepStrictEqual(
        last.calls.map(({ loopIndex }) => loopIndex),
        [2],
      )
      assert.strictEqual((yield* agent.act(look("Three."))).outcome._tag, "Act")
      assert.strictEqual(script.requests.length, 7)
    }),
  )

  it.effect("does not run the calls of an answer that was cut off", () =>
    Effect.gen(function* () {
      const ran: Array<string> = []
      const log = Tool.make({
        name: "log",
        description: "",
        parameters: Schema.Struct({}),
        run: () => Effect.sync(() => (ran.push("log"), null)),
      })
      const cut = said("", { toolCalls: [{ id: "1", name: "log", arguments: "{}" }], finishReason: "length" })
      const { agent, script } = yield* made({ tools: [log] }, cut, "x")
      const turn = yield* agent.act(look("Well?"))
      assert.strictEqual(turn.outcome._tag, "NoAction")
      assert.deepInclude(turn.calls[0], { target: "env", incomplete: true })
      assert.deepStrictEqual(ran, [])
      yield* agent.act(look("Again."))
      assert.deepInclude(script.requests[1].messages[2], { role: "tool", toolCallId: "1", isError: true })
    }),
  )

  it.effect("is unchanged after a failed call of the model", () =>
    Effect.gen(function* () {
      const { agent, script } = yield* made({ tools: [add] }, calls(["1", "add", { a: 1, b: 1 }]), null, "x")
      assert.strictEqual(yield* Effect.flip(agent.act(look("Well?"))), broken)
      yield* agent.act(look("Well?"))
      assert.deepStrictEqual(script.requests[2].messages, [{ role: "user", content: "Well?" }])
    }),
  )

  it.effect("is unchanged after an interrupted turn", () =>
    Effect.gen(function* () {
      const waiting = Tool.make({
        name: "wait",
        description: "",
        parameters: Schema.Struct({}),
        run: () => Effect.never,
      })
      const { agent, script } = yield* made({ tools: [waiting] }, calls(["1", "wait", {}]), "x")
      const fiber = yield* Effect.forkChild(agent.act(look("Well?")))
      yield* TestClock.adjust("1 second")
      assert.strictEqual(script.requests.length, 1)
      yield* Fiber.interrupt(fiber)
      yield* agent.act(look("Well?"))
      assert.deepStrictEqual(script.requests[1].messages, [{ role: "user", content: "Well?" }])
    }),
  )

  it.effect("makes one conversation of an episode, which begins with recalled entries", () =>
    Effect.gen(function* () {
      const memory = HistoryList.make({ maxLength: 3 })
      const { agent, script } = yield* made(
        { memory, historyK: 2, parser: Parser.tagged("do") },
        "<do>a</do>",
        "hm",
        "<do>b</do>",
        "<do>c</do>",
      )
      yield* play(agent, "One.", [
        { observation: "Two.", feedback: told(0, "Go on.") },
        { observation: null, feedback: told(1, "Fine.") },
      ])
      yield* play(agent, "Three.", [{ observation: null, feedback: told(1, "Good.") }])
      assert.deepStrictEqual(
        script.requests[2].messages.map(({ content }) => content),
        ["One.", "<do>a</do>", "Two.", "hm", "Answer with <do>…</do>."],
      )
      assert.deepStrictEqual(
        script.requests[3].messages.map(({ content }) => content),
        ["ACTION: b\n\nFEEDBACK: Fine.\n\nThree."],
      )
      assert.deepStrictEqual(yield* linesOf(memory), ["Observation: Three.", "Action: c", "Feedback: Good."])
      const clone = yield* agent.cloneForEpisode({ training: false, shareMemory: true })
      assert.isFalse(clone.training)
      const write = clone.memory?.add({ type: "Action", content: "x" }) ?? Effect.void
      assert.isTrue(Exit.hasDies(yield* Effect.exit(write)))
      assert.strictEqual(lastOf(script.requests[0]), "One.")
    }),
  )

  it.effect("refuses invalid settings", () =>
    Effect.gen(function* () {
      const message = (config: Omit<ToolAgent.ToolAgentConfig, "model">) =>
        Effect.map(Effect.flip(made(config)), (error) => error.message)
      assert.strictEqual(
        yield* message({ tools: [add, add] }),
        'tool_agent: tools: expected different names, found two tools with the name "add"',
      )
      assert.strictEqual(
        yield* message({ maxCalls: 0 }),
        "tool_agent: max_calls: expected a whole number of at least 1, found 0",
      )
    }),
  )
})
