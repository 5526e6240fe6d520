import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Logger } from "effect"
import * as HistoryAgent from "../../../src/agents/agent/HistoryAgent.ts"
import * as HistoryList from "../../../src/agents/agent/memory/HistoryList.ts"
import * as MemorylessAgent from "../../../src/agents/agent/MemorylessAgent.ts"
import * as Parser from "../../../src/agents/agent/Parser.ts"
import type { ChatMessage, Completion } from "../../../src/agents/lm/Chat.ts"
import { broken, inTurn, lastOf, linesOf, look, play, said, scripted, told } from "./support.ts"

const made = (
  config: Omit<HistoryAgent.HistoryAgentConfig, "model">,
  ...answers: ReadonlyArray<Completion | string | null>
) => {
  const script = inTurn(...answers)
  return Effect.map(Effect.provide(HistoryAgent.make({ model: "m", ...config }), script.layer), (agent) => ({
    agent,
    script,
  }))
}

/** Two steps: a door is opened, then gone through. */
const twoSteps = [
  { observation: "It is open.", feedback: told(0, "Go on.") },
  { observation: "A garden.", feedback: told(1, "Well done.") },
]

describe("an agent with a history", () => {
  it.effect("remembers every observation once, then the action and the feedback", () =>
    Effect.gen(function* () {
      const { agent } = yield* made({}, "open", "go")
      const { looking } = yield* play(agent, "A door.", twoSteps)
      assert.deepStrictEqual(yield* linesOf(agent.memory), [
        "Observation: A door.",
        "Action: open",
        "Feedback: Go on.",
        "Observation: It is open.",
        "Action: go",
        "Feedback: Well done.",
        "Observation: A garden.",
      ])
      assert.deepStrictEqual(looking, [])
    }),
  )

  it.effect("does not remember empty observations", () =>
    Effect.gen(function* () {
      const { agent } = yield* made({}, "open", "go")
      yield* play(agent, "", [
        { observation: "", feedback: told(0, "Go on.") },
        { observation: "", feedback: told(1, "Well done.") },
      ])
      assert.deepStrictEqual(yield* linesOf(agent.memory), [
        "Action: open",
        "Feedback: Go on.",
        "Action: go",
        "Feedback: Well done.",
      ])
    }),
  )

  it.effect("has its memory in its prompt, and then the observation", () =>
    Effect.gen(function* () {
      const { agent, script } = yield* made({ systemPrompt: "Play." }, "open", "go", "look")
      yield* play(agent, "A door.", twoSteps)
      yield* agent.reset
      yield* agent.act(look("A gate."))
      const system: ChatMessage = { role: "system", content: "Play." }
      assert.deepStrictEqual(script.requests[0].messages, [system, { role: "user", content: "A door." }])
      assert.strictEqual(
        lastOf(script.requests[1]),
        "OBSERVATION: A door.\n\nACTION: open\n\nFEEDBACK: Go on.\n\nIt is open.",
      )
      assert.strictEqual(
        lastOf(script.requests[2]),
        "OBSERVATION: A door.\n\nACTION: open\n\nFEEDBACK: Go on.\n\nOBSERVATION: It is open.\n\nACTION: go\n\n" +
          "FEEDBACK: Well done.\n\nOBSERVATION: A garden.\n\nA gate.",
      )
      assert.isTrue(script.requests.every(({ messages }) => messages.length === 2))
    }),
  )

  it.effect("shows the last k entries: null is all, 0 is none", () =>
    Effect.gen(function* () {
      const table: ReadonlyArray<readonly [number | null, string]> = [
        [null, "OBSERVATION: a\n\nACTION: x\n\nFEEDBACK: Wrong.\n\nb"],
        [0, "b"],
        [1, "FEEDBACK: Wrong.\n\nb"],
        [2, "ACTION: x\n\nFEEDBACK: Wrong.\n\nb"],
        [9, "OBSERVATION: a\n\nACTION: x\n\nFEEDBACK: Wrong.\n\nb"],
      ]
      for (const [historyK, expected] of table) {
        const { agent, script } = yield* made({ historyK }, "x", "y")
        yield* play(agent, "a", [{ observation: null, feedback: told(0) }])
        yield* agent.reset
        yield* agent.act(look("b"))
        assert.strictEqual(lastOf(script.requests[1]), expected)
      }
      for (const historyK of [-1, 1.5, Number.NaN]) {
        const error = yield* Effect.flip(made({ historyK }))
        assert.match(error.message, /^history_agent: history_k: expected a whole number of at least 0, found /)
      }
    }),
  )

  it.effect("continues the conversation after a failed parse, and remembers only the action", () =>
    Effect.gen(function* () {
      const { agent, script } = yield* made({ parser: Parser.tagged("do") }, "hm", "<do>open</do>")
      const { turns } = yield* play(agent, "A door.", [{ observation: null, feedback: told(1) }])
      assert.deepStrictEqual(
        turns.map(({ outcome }) => outcome),
        [
          { _tag: "NoAction", feedback: "Answer with <do>…</do>.", reward: -0.1 },
          { _tag: "Act", action: "open", reward: 0 },
        ],
      )
      assert.deepStrictEqual(
        script.requests[1].messages.map(({ role, content }) => [role, content]),
        [
          ["user", "A door."],
          ["assistant", "hm"],
          ["user", "Answer with <do>…</do>."],
        ],
      )
      assert.deepStrictEqual(yield* linesOf(agent.memory), [
        "Observation: A door.",
        "Action: open",
        "Feedback: Correct.",
      ])
    }),
  )

  it.effect("refuses an answer that was cut off, unless configured otherwise, and keeps it in the conversation", () =>
    Effect.gen(function* () {
      const cut = said("open the do", { finishReason: "length" })
      const { agent, script } = yield* made({}, cut, "open")
      const turn = yield* agent.act(look("A door."))
      const outcome = turn.outcome
      assert.strictEqual(outcome._tag, "NoAction")
      assert.strictEqual(outcome._tag === "NoAction" ? outcome.reward : 0, -0.1)
      assert.isTrue(turn.calls[0].incomplete)
      assert.strictEqual(turn.calls[0].completion.content, "open the do")
      yield* agent.act(look("Be brief."))
      assert.deepInclude(script.requests[1].messages[1], { role: "assistant", content: "open the do" })
      const other = yield* made({ rejectIncompleteCompletions: false }, cut)
      const acted = yield* other.agent.act(look("A door."))
      assert.deepStrictEqual(acted.outcome, { _tag: "Act", action: "open the do", reward: 0 })
      assert.isFalse(acted.calls[0].incomplete)
    }),
  )

  it.effect("fails if a filter withheld the answer, whichever provider gave it", () =>
    Effect.gen(function* () {
      const { agent, script } = yield* made({}, said("open the do", { finishReason: "content_filter" }), "open")
      const error = yield* Effect.flip(agent.act(look("A door.")))
      assert.deepInclude(error, { _tag: "LmError", reason: "refused" })
      // Nothing of it stays in the conversation.
      yield* agent.act(look("A door."))
      assert.notInclude(JSON.stringify(script.requests[1].messages), "open the do")
    }),
  )

  it.effect("warns of an answer that was cut off", () =>
    Effect.gen(function* () {
      const warnings: Array<string> = []
      const logger = Logger.make(({ logLevel, message }) => warnings.push(`${logLevel}: ${String(message)}`))
      const cut = said("open the do", { finishReason: "length" })
      for (const rejectIncompleteCompletions of [true, false]) {
        const { agent } = yield* made({ maxOutputTokens: 3, rejectIncompleteCompletions }, cut, "open")
        yield* agent.act(look("A door.")).pipe(Effect.provide(Logger.layer([logger])))
      }
      const warning = "Warn: m: an answer was cut off at its length (max_output_tokens: 3)"
      assert.deepStrictEqual(warnings, [`${warning}, so the agent does not act upon it`, warning])
    }),
  )

  it.effect("carries nothing from a failed episode into the next one", () =>
    Effect.gen(function* () {
      const { agent, script } = yield* made({ historyK: 0, parser: Parser.tagged("do") }, "hm", null, "<do>x</do>")
      yield* agent.reset
      yield* agent.act(look("A door."))
      assert.strictEqual(yield* Effect.flip(agent.act(look("Once more."))), broken)
      yield* agent.reset
      yield* agent.act(look("A gate."))
      assert.deepStrictEqual(script.requests[2].messages, [{ role: "user", content: "A gate." }])
      assert.deepStrictEqual(yield* linesOf(agent.memory), [])
    }),
  )

  it.effect("shows in evaluation the entries of this episode, and writes nothing", () =>
    Effect.gen(function* () {
      const { agent: parent, script } = yield* made({ historyK: 3 }, "open", "go", "open", "go")
      yield* play(parent, "A door.", twoSteps)
      const before = yield* parent.memory?.snapshot ?? Effect.succeed("")
      const clone = yield* parent.cloneForEpisode({ training: false, shareMemory: true })
      assert.isFalse(clone.training)
      assert.isTrue(parent.training)
      yield* play(clone, "A gate.", twoSteps)
      assert.strictEqual(
        lastOf(script.requests[3]),
        "OBSERVATION: A garden.\n\nOBSERVATION: A gate.\n\nACTION: open\n\nIt is open.",
      )
      assert.strictEqual(yield* parent.memory?.snapshot ?? Effect.succeed(""), before)
      assert.strictEqual(yield* clone.memory?.snapshot ?? Effect.succeed(""), before)
    }),
  )

  it.effect("shows in evaluation no more entries than its memory can hold", () =>
    Effect.gen(function* () {
      const { agent: parent, script } = yield* made(
        { memory: HistoryList.make({ maxLength: 3 }) },
        "a",
        "b",
        "c",
        "d",
        "e",
      )
      yield* play(parent, "A door.", twoSteps)
      const clone = yield* parent.cloneForEpisode({ training: false, shareMemory: true })
      yield* play(clone, "One.", [
        { observation: "Two.", feedback: told(0) },
        { observation: "Three.", feedback: told(0) },
        { observation: null, feedback: told(0) },
      ])
      assert.strictEqual(lastOf(script.requests[4]), "ACTION: c\n\nOBSERVATION: Two.\n\nACTION: d\n\nThree.")
    }),
  )

  it.effect("is unaffected in training by its clones in evaluation, and by theirs", () =>
    Effect.gen(function* () {
      const { agent: parent } = yield* made({}, "a", null, "b", "c")
      yield* play(parent, "One.", [{ observation: null, feedback: told(0) }])
      const before = yield* linesOf(parent.memory)
      const clone = yield* parent.cloneForEpisode({ training: false, shareMemory: true })
      const failed = yield* Effect.flip(play(clone, "Two.", [{ observation: null, feedback: told(1) }]))
      assert.strictEqual(failed, broken)
      const nested = yield* clone.cloneForEpisode({ training: false, shareMemory: true })
      yield* play(nested, "Three.", [{ observation: null, feedback: told(1) }])
      const apart = yield* parent.cloneForEpisode({ training: false, shareMemory: false })
      assert.deepStrictEqual(yield* linesOf(apart.memory), before)
      assert.isTrue(
        Exit.hasDies(yield* Effect.exit(apart.memory?.add({ type: "Action", content: "x" }) ?? Effect.void)),
      )
      assert.deepStrictEqual(yield* linesOf(parent.memory), before)
      assert.deepStrictEqual([parent.training, clone.training, nested.training], [true, false, false])
      yield* play(parent, "Four.", [{ observation: null, feedback: told(0) }])
      assert.strictEqual((yield* linesOf(parent.memory)).length, 6)
    }),
  )

  it.effect("is cloned with its memory or a copy of it, and never with its short-term state", () =>
    Effect.gen(function* () {
      const script = scripted(({ messages }) => String(messages.length))
      const parent = yield* Effect.provide(HistoryAgent.make({ model: "m" }), script.layer)
      yield* play(parent, "a", [{ observation: null, feedback: told(0) }])
      yield* parent.act(look("half done"))
      const sharing = yield* parent.cloneForEpisode({ training: true, shareMemory: true })
      const apart = yield* parent.cloneForEpisode({ training: true, shareMemory: false })
      yield* apart.act(look("b"))
      assert.notInclude(lastOf(script.requests.at(-1)), "half done")
      assert.include(lastOf(script.requests.at(-1)), "OBSERVATION: a\n\n")
      yield* play(apart, "c", [{ observation: null, feedback: told(0) }])
      assert.strictEqual(yield* parent.memory?.length ?? Effect.succeed(0), 3)
      yield* play(sharing, "d", [{ observation: null, feedback: told(0) }])
      assert.strictEqual(yield* parent.memory?.length ?? Effect.succeed(0), 6)
      assert.strictEqual(yield* apart.memory?.length ?? Effect.succeed(0), 6)
    }),
  )

  it.effect("keeps to the limit of its memory", () =>
    Effect.gen(function* () {
      const { agent } = yield* made({ memory: HistoryList.make({ maxLength: 4 }) }, "x", "y")
      yield* play(agent, "a", [{ observation: null, feedback: told(0) }])
      yield* play(agent, "b", [{ observation: null, feedback: told(0) }])
      assert.deepStrictEqual(yield* linesOf(agent.memory), [
        "Feedback: Wrong.",
        "Observation: b",
        "Action: y",
        "Feedback: Wrong.",
      ])
    }),
  )
})

describe("an agent without a memory", () => {
  it.effect("begins a new conversation with each observation", () =>
    Effect.gen(function* () {
      const script = inTurn("open", "go")
      const agent = yield* Effect.provide(MemorylessAgent.make({ model: "m", systemPrompt: "Play." }), script.layer)
      yield* play(agent, "A door.", twoSteps)
      assert.deepStrictEqual(
        script.requests.map(({ messages }) => messages),
        ["Q: A door.", "Q: It is open."].map((content): ReadonlyArray<ChatMessage> => [
          { role: "system", content: "Play." },
          { role: "user", content },
        ]),
      )
      assert.isNull(agent.memory)
      const clone = yield* agent.cloneForEpisode({ training: false, shareMemory: true })
      assert.isFalse(clone.training)
    }),
  )

  it.effect("carries nothing from a failed episode into the next one", () =>
    Effect.gen(function* () {
      const script = inTurn("hm", null, "x")
      const making = MemorylessAgent.make({
        model: "m",
        parser: (text) => (text === "x" ? Parser.whole(text) : Parser.refused("No.")),
      })
      const agent = yield* Effect.provide(making, script.layer)
      yield* agent.act(look("a"))
      assert.strictEqual(yield* Effect.flip(agent.act(look("again"))), broken)
      yield* agent.reset
      yield* agent.act(look("b"))
      assert.deepStrictEqual(script.requests[2].messages, [{ role: "user", content: "Q: b" }])
    }),
  )
})
