import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import type { ModelCall } from "../../../../src/agents/agent/Agent.ts"
import { Rollout } from "../../../../src/agents/episode/Rollout.ts"
import * as Samples from "../../../../src/agents/episode/samples/samples.ts"
import { placesOf } from "../../../../src/agents/gateway/run/conversations.ts"
import { type RecordedSession, rolloutOf } from "../../../../src/agents/gateway/run/rollout.ts"
import { asMessage, type ChatMessage, type Completion } from "../../../../src/agents/lm/Chat.ts"
import { bytes } from "../../../../src/base/tokens/words.ts"
import { completion } from "../../lm/support.ts"

const user = (content: string): ChatMessage => ({ role: "user", content })
const system: ChatMessage = { role: "system", content: "Be brief." }

const call = (messages: ReadonlyArray<ChatMessage>, answer: string | Partial<Completion>): ModelCall => ({
  purpose: "action",
  target: "internal",
  loopIndex: 0,
  messages,
  completion: typeof answer === "string" ? completion(answer) : { ...completion(""), ...answer },
  toolResults: [],
  parsed: null,
  incomplete: false,
})

/** Returns the messages of the call that continues another one. */
const after = (earlier: ModelCall, ...more: ReadonlyArray<ChatMessage>): ReadonlyArray<ChatMessage> => [
  ...earlier.messages,
  asMessage(earlier.completion),
  ...more,
]

const add = { id: "call_1", name: "add", arguments: '{"a": 1, "b": 2}' }
const first = call([system, user("1 + 2?")], { toolCalls: [add], finishReason: "tool_calls" })
const result: ChatMessage = { role: "tool", toolCallId: "call_1", toolName: "add", content: "3" }
const second = call(after(first, result), "3")

const session = (calls: ReadonlyArray<ModelCall>, more: Partial<RecordedSession> = {}): RecordedSession => ({
  id: "s",
  agent: "mine",
  groupId: null,
  tags: {},
  samplingSeed: 1,
  calls,
  reward: null,
  isComplete: true,
  ...more,
})

describe("conversations", () => {
  it("grow by calls that continue an answer, and branch where a prompt was rewritten", () => {
    const rewritten = call([system, user("1 + 2 = ?"), ...second.messages.slice(2)], "three")
    const other = call([system, user("What else?")], "Nothing.")
    const third = call(after(second, user("Sure?")), "Yes")
    const again = call(after(second, user("Really?")), "Yes")
    const all = placesOf([first, other, second, rewritten, third, again])
    assert.deepStrictEqual(
      all.map(({ conversation, position, continues }) => [conversation, position, continues]),
      [
        [0, 0, null],
        [1, 0, null],
        [0, 1, 0],
        [2, 0, null],
        [0, 2, 2],
        [3, 0, null],
      ],
    )
  })

  it("continue although the program wrote arguments and spaces anew, and gave calls other ids", () => {
    const written = {
      role: "assistant" as const,
      content: " ".trimEnd(),
      toolCalls: [{ ...add, id: "x", arguments: '{"b":2,"a":1}' }],
    }
    const next = call([...first.messages, written, result], "3")
    assert.strictEqual(placesOf([first, next])[1].continues, 0)
    const changed = { ...written, toolCalls: [{ ...add, arguments: '{"a":2,"b":2}' }] }
    assert.strictEqual(placesOf([first, call([...first.messages, changed, result], "4")])[1].continues, null)
  })

  it("read the arguments of each message once, and not for each pair of calls", () => {
    let read = 0
    const toolCall = (id: string) => ({
      id,
      name: "add",
      get arguments() {
        read++
        return `{"a":1,"${id}":2}`
      },
    })
    const [calls, rounds] = [40, 10]
    const all = Array.from({ length: calls }, (_, at) => {
      const turns = Array.from({ length: rounds }, (_, round): ChatMessage => {
        return { role: "assistant", content: "", toolCalls: [toolCall(`r${round}`)] }
      })
      return call([user(`${at}`), ...turns, user("Go on.")], { toolCalls: [toolCall("x")] })
    })
    const next = call(after(all[0], result), "3")
    assert.strictEqual(placesOf([...all, next])[calls].continues, 0)
    // One more message for each answer, and the answer in the last call.
    assert.isAtMost(read, calls * (rounds + 1) + 1)
  })

  it("find the newest call with equal messages and an equal answer", () => {
    const again = placesOf([first, first, second, second])
    assert.deepStrictEqual(
      again.map(({ conversation, continues }) => [conversation, continues]),
      [
        [0, null],
        [1, null],
        [1, 1],
        [2, null],
      ],
    )
  })
})

describe("the rollout of a session", () => {
  it("has a turn for each conversation, the results of tools, and the reward as the env's step", () => {
    const other = call([user("Hm?")], "Hm.")
    const rollout = rolloutOf(session([first, other, second], { reward: 0.5, groupId: "g" }))
    assert.isTrue(Schema.is(Rollout)(JSON.parse(JSON.stringify(rollout))))
    const { steps, totalReward, length, ending, meta } = rollout
    assert.deepStrictEqual([totalReward, length, ending.terminated, meta.groupId], [0.5, 1, true, "g"])
    assert.deepStrictEqual(
      steps.map(({ turnId }) => turnId),
      ["s/turn/0", "s/turn/1", "s/turn/0", "s/turn/0"],
    )
    const [one, , two, env] = steps
    assert.isTrue(one._tag === "AgentStep" && two._tag === "AgentStep" && env._tag === "EnvironmentStep")
    if (one._tag !== "AgentStep" || two._tag !== "AgentStep" || env._tag !== "EnvironmentStep") return
    assert.deepStrictEqual(
      one.call.toolResults.map(({ content }) => content),
      ["3"],
    )
    assert.deepStrictEqual([one.call.target, two.call.target, two.call.loopIndex], ["internal", "env", 1])
    assert.deepStrictEqual([env.action, env.observation, env.sourceAgentStepId], ["3", "1 + 2?", "s/2"])
    assert.deepStrictEqual(env.agentStepIds, ["s/0", "s/2"])
  })

  it("without a reward ends with its last call, and is truncated if nobody ended it", () => {
    const { steps, length, totalReward } = rolloutOf(session([first]))
    assert.deepStrictEqual([steps.length, length, totalReward, steps[0].terminated], [1, 0, 0, true])
    const cut = rolloutOf(session([first], { isComplete: false }))
    assert.deepStrictEqual([cut.steps[0].truncated, cut.ending.truncationReason], [true, "env"])
    assert.deepStrictEqual(rolloutOf(session([])).steps, [])
  })

  it.effect("becomes samples, of which each conversation is one", () =>
    Effect.gen(function* () {
      const rollout = rolloutOf(session([first, second, call([user("Hm?")], "Hm.")], { reward: 2 }))
      const samples = yield* Samples.of([rollout], { tokenizer: bytes })
      assert.deepStrictEqual(
        samples.map(({ turnId, credit, stepIndices }) => [turnId, credit, stepIndices]),
        [
          ["s/turn/0", 2, [0, 1]],
          ["s/turn/1", 2, [2]],
        ],
      )
    }),
  )
})
