import { Effect } from "effect"
import { assert, describe, it } from "vitest"
import {
  type AgentStep,
  notEnded,
  type Rollout,
  type RolloutStep,
  terminated,
} from "../../../src/agents/episode/Rollout.ts"
import { toolResultsOf } from "../../../src/agents/interchange/atif/conversation.ts"
import * as Atif from "../../../src/agents/interchange/Atif.ts"
import type { ChatMessage, Completion } from "../../../src/agents/lm/Chat.ts"

const completion: Completion = {
  content: "go",
  toolCalls: [],
  finishReason: "stop",
  usage: { inputTokens: 3, outputTokens: 2, reasoningTokens: 1 },
  tokens: { promptIds: [1, 2, 3], completionIds: [4, 5], logprobs: [-0.5, -0.25] },
  model: "small",
  attempts: 1,
}

const call = (index: number, messages: ReadonlyArray<ChatMessage>, more: Partial<Completion> = {}): AgentStep => ({
  _tag: "AgentStep",
  id: `r/${index}`,
  index,
  turnId: "r/turn/0",
  parentId: null,
  call: {
    purpose: "action",
    target: "internal",
    loopIndex: index,
    messages,
    completion: { ...completion, ...more },
    toolResults: [],
    parsed: null,
    incomplete: false,
  },
  toolResults: [],
  reward: 0,
  ...notEnded,
})

const rollout = (steps: ReadonlyArray<RolloutStep>): Rollout => ({
  id: "r",
  meta: {
    envId: "task",
    envType: "test",
    agent: "history_agent",
    model: "small",
    envSeed: 1,
    samplingSeed: 2,
    groupId: null,
    parentRolloutId: null,
    depth: 0,
    player: null,
    tags: { split: "train" },
  },
  steps,
  totalReward: 0,
  length: 0,
  ending: terminated,
})

const user = (content: string): ChatMessage => ({ role: "user", content })
const assistant = (content: string): ChatMessage => ({ role: "assistant", content })

const written = (one: Rollout): Atif.Trajectory => Atif.trajectoriesOf([one], { version: "1.2.3" })[0]
const unknownTask = { id: "hello", type: "atif", reward: 1 }
const decoded = (value: unknown) => Effect.runPromise(Atif.trajectoryOf(value, "t.json"))
const again = async (one: Rollout): Promise<ReadonlyArray<Rollout>> =>
  Effect.runPromise(Atif.rolloutsOf(await decoded(JSON.parse(JSON.stringify(written(one)))), unknownTask))

describe("trajectories of our rollouts", () => {
  it("have tokens, log-probabilities and usage in ATIF's own fields", () => {
    const { steps, agent, final_metrics } = written(rollout([call(0, [user("Where?")])]))
    assert.deepEqual(
      steps.map(({ source, message }) => [source, message]),
      [
        ["user", "Where?"],
        ["agent", "go"],
      ],
    )
    assert.deepEqual(steps[1].metrics, {
      prompt_tokens: 3,
      completion_tokens: 2,
      prompt_token_ids: [1, 2, 3],
      completion_token_ids: [4, 5],
      logprobs: [-0.5, -0.25],
      extra: { reasoning_tokens: 1 },
    })
    assert.deepEqual([agent.name, agent.version, agent.model_name], ["history_agent", "1.2.3", "small"])
    assert.deepEqual([final_metrics?.total_prompt_tokens, final_metrics?.total_steps], [3, 2])
  })

  it("write a message once if prompts continue each other", async () => {
    const first = [user("one")]
    const one = rollout([call(0, first), call(1, [...first, assistant("go"), user("two")])])
    assert.deepEqual(
      written(one).steps.map(({ message }) => message),
      ["one", "go", "two", "go"],
    )
    assert.deepEqual(await again(one), [one])
  })

  it("begin again with a prompt that does not continue the last one, and mark what is repeated", async () => {
    const system: ChatMessage = { role: "system", content: "Be brief." }
    const one = rollout([
      call(0, [system, user("one")]),
      call(1, [system, user("two"), assistant("as before"), user("!")]),
    ])
    assert.deepEqual(
      written(one).steps.map(({ source, message, is_copied_context }) => [source, message, is_copied_context]),
      [
        ["system", "Be brief.", undefined],
        ["user", "one", undefined],
        ["agent", "go", undefined],
        ["system", "Be brief.", true],
        ["user", "two", undefined],
        ["agent", "as before", true],
        ["user", "!", undefined],
        ["agent", "go", undefined],
      ],
    )
    assert.deepEqual(await again(one), [one])
  })

  it("keep prompts and tool calls that steps cannot express", async () => {
    const toolCalls = [
      { id: "same", name: "add", arguments: `{ "a": 1 }` },
      { id: "same", name: "add", arguments: "{" },
      { id: "c", name: "add", arguments: `{"a":1}` },
    ]
    const orphan: ChatMessage = { role: "tool", toolCallId: "x", toolName: "look", content: "dark" }
    const results = [{ toolCallId: "elsewhere", toolName: "look", content: "dark", isError: true }]
    const one = rollout([
      { ...call(0, [user("one")], { toolCalls }), toolResults: results },
      call(1, [orphan]),
      call(2, []),
      call(3, [{ role: "assistant", content: "", toolCalls: [] }]),
    ])
    const ids = written(one).steps[1].tool_calls?.map(({ tool_call_id }) => tool_call_id) ?? []
    assert.strictEqual(new Set(ids).size, 3)
    assert.deepEqual(written(one).steps[1].tool_calls?.[2].arguments, { a: 1 })
    assert.deepEqual(await again(one), [one])
  })

  it("have results of tools that only the next prompt has", async () => {
    const ask = [user("How is the weather?")]
    const toolCalls = [{ id: "a", name: "look", arguments: `{"at": "sea"}` }]
    // Libraries write the arguments anew before they send them back.
    const asked: ChatMessage = {
      role: "assistant",
      content: "go",
      toolCalls: [{ ...toolCalls[0], arguments: `{"at":"sea"}` }],
    }
    const dark: ChatMessage = { role: "tool", toolCallId: "a", toolName: "look", content: "dark" }
    const one = rollout([call(0, ask, { toolCalls }), call(1, [user("another agent")]), call(2, [...ask, asked, dark])])
    assert.deepEqual(
      written(one).steps.map(({ message, observation }) => [message, observation?.results]),
      [
        ["How is the weather?", undefined],
        ["go", [{ source_call_id: "a", content: "dark" }]],
        ["another agent", undefined],
        ["go", undefined],
        ["How is the weather?", undefined],
        ["go", [{ source_call_id: "a", content: "dark" }]],
        ["go", undefined],
      ],
    )
    const alone = rollout([call(0, ask, { toolCalls }), call(1, [...ask, asked, dark])])
    assert.deepEqual(
      written(alone).steps.map(({ source, observation }) => [source, observation?.results.length]),
      [
        ["user", undefined],
        ["agent", 1],
        ["agent", undefined],
      ],
    )
    assert.deepEqual(await again(one), [one])
    assert.deepEqual(await again(alone), [alone])
  })

  it("show an agent that asks no model, and an episode without steps", async () => {
    const env: RolloutStep = {
      _tag: "EnvironmentStep",
      id: "r/0",
      index: 0,
      turnId: "r/turn/0",
      sourceAgentStepId: null,
      agentStepIds: [],
      observation: "Where?",
      action: "north",
      nextObservation: null,
      feedback: { score: 1, target: null, message: "There." },
      reward: 1,
      ...terminated,
    }
    const one = rollout([env])
    assert.deepEqual(
      written(one).steps.map(({ source, message, llm_call_count }) => [source, message, llm_call_count]),
      [
        ["user", "Where?", undefined],
        ["agent", "north", 0],
      ],
    )
    assert.deepEqual(await again(one), [one])
    assert.strictEqual(written(rollout([])).steps.length, 1)
    assert.deepEqual(await again(rollout([])), [rollout([])])
  })
})

const foreign = {
  schema_version: "ATIF-v1.8",
  session_id: "s",
  agent: {
    name: "terminus",
    version: "2.0",
    model_name: "some-model",
    tool_definitions: [
      { type: "function", function: { name: "bash", description: "Runs", parameters: { type: "object" } } },
    ],
  },
  notes: null,
  steps: [
    { step_id: 1, source: "system", message: "You are an agent." },
    {
      step_id: 2,
      source: "user",
      message: [
        { type: "text", text: "Say hello." },
        { type: "image", source: {} },
      ],
    },
    {
      step_id: 3,
      timestamp: "2026-01-01T00:00:00Z",
      source: "agent",
      message: "",
      reasoning_content: "hm",
      tool_calls: [{ tool_call_id: "a", function_name: "bash", arguments: { command: "ls" } }],
      observation: {
        results: [{ source_call_id: "a", content: "file" }, { subagent_trajectory_ref: [{ trajectory_id: "child" }] }],
      },
      metrics: {
        prompt_tokens: 10,
        completion_tokens: 4,
        prompt_token_ids: [1],
        completion_token_ids: [2],
        logprobs: [-1],
      },
    },
    { step_id: 4, source: "agent", message: "copied", is_copied_context: true },
    { step_id: 5, source: "agent", message: "no model", llm_call_count: 0 },
    { step_id: 6, source: "agent", message: "first", observation: { results: [{ content: "wrong" }] } },
    { step_id: 7, source: "agent", message: "hello" },
  ],
  subagent_trajectories: [
    {
      schema_version: "ATIF-v1.7",
      trajectory_id: "child",
      agent: { name: "helper", version: "1" },
      steps: [{ step_id: 1, source: "agent", message: "done" }],
    },
  ],
}

describe("trajectories of other programs", () => {
  it("become rollouts of their messages, with tokens, tools and sub-agents", async () => {
    const [own, child, ...rest] = await Effect.runPromise(Atif.rolloutsOf(await decoded(foreign), unknownTask))
    assert.deepEqual(rest, [])
    assert.deepEqual(
      own.steps.map((step) =>
        step._tag === "AgentStep" ? [step.call.completion.content, step.call.target] : step.action,
      ),
      [["", "external"], ["first", "env"], "first", ["hello", "env"], "hello"],
    )
    const [first, , answered, last, end] = own.steps
    if (first._tag !== "AgentStep" || last._tag !== "AgentStep") return assert.fail("expected calls")
    if (answered._tag !== "EnvironmentStep" || end._tag !== "EnvironmentStep") return assert.fail("expected env steps")
    assert.deepEqual(
      last.call.messages.map(({ role, content }) => [role, content]),
      [
        ["system", "You are an agent."],
        ["user", "Say hello.\n[image]"],
        ["assistant", ""],
        ["tool", "file"],
        ["assistant", "copied"],
        ["assistant", "no model"],
        ["assistant", "first"],
        ["user", "wrong"],
      ],
    )
    assert.deepEqual(first.call.completion.tokens, { promptIds: [1], completionIds: [2], logprobs: [-1] })
    assert.deepEqual(
      first.call.tools?.map(({ name }) => name),
      ["bash"],
    )
    assert.deepEqual(first.toolResults, [{ toolCallId: "a", toolName: "bash", content: "file", isError: false }])
    assert.deepEqual([answered.nextObservation, answered.reward], ["wrong", 0])
    assert.deepEqual([end.reward, end.terminated, own.totalReward], [1, true, 1])
    assert.deepEqual([own.meta.envId, own.meta.agent, own.meta.model], ["hello", "terminus", "some-model"])
    assert.deepEqual([child.meta.parentRolloutId, child.meta.depth, child.steps[0].id], ["hello", 1, "hello/sub/0/0"])
    assert.strictEqual(child.steps[0]._tag === "AgentStep" ? child.steps[0].parentId : "", first.id)
  })

  it("are refused if all prompts together would be much larger than the file", { tags: "slow" }, async () => {
    const { subagent_trajectories: _, ...alone } = foreign
    const steps = Array.from({ length: 20_000 }, (_, at) => ({ step_id: at + 1, source: "agent", message: "m" }))
    const whole = await decoded({ ...alone, steps })
    const { message } = await Effect.runPromise(Effect.flip(Atif.rolloutsOf(whole, unknownTask)))
    assert.match(message, /^the episode "hello" is too long: its prompts have more than 268435456 characters together$/)
  })

  it("count the calls of tools and the tools, too", async () => {
    const { subagent_trajectories: _, ...alone } = foreign
    const problem = async (trajectory: object) =>
      (await Effect.runPromise(Effect.flip(Atif.rolloutsOf(await decoded(trajectory), unknownTask)))).message
    const text = "x".repeat(10_000)
    const call = { tool_call_id: "c", function_name: "f", arguments: { text } }
    const steps = (more: object) =>
      Array.from({ length: 300 }, (_, at) => ({ step_id: at + 1, source: "agent", message: "", ...more }))
    assert.include(await problem({ ...alone, steps: steps({ tool_calls: [call] }) }), "its prompts have more than")
    const agent = { ...foreign.agent, tool_definitions: [{ name: "f", description: text.repeat(100) }] }
    assert.include(await problem({ ...alone, agent, steps: steps({}) }), "its prompts have more than")
  })

  it("may have many calls, and many results of other calls", () => {
    const calls = Array.from({ length: 20_000 }, (_, at) => ({
      tool_call_id: `c${at}`,
      function_name: "f",
      arguments: {},
    }))
    let reads = 0
    const counted = calls.map((call) => ({
      ...call,
      get tool_call_id() {
        reads++
        return call.tool_call_id
      },
    }))
    const results = Array.from({ length: 100 }, () => ({ source_call_id: "none", content: "" }))
    const step = { step_id: 1, source: "agent" as const, message: "", tool_calls: counted, observation: { results } }
    assert.strictEqual(toolResultsOf(step).length, 100)
    assert.isAtMost(reads, calls.length)
  })

  it("are refused with the key that is wrong", async () => {
    const problem = (value: unknown) =>
      Effect.runPromise(Effect.flip(Atif.trajectoryOf(value, "t.json"))).then(({ message }) => message)
    const wrong = { ...foreign, steps: [{ step_id: 1, source: "nobody", message: "" }] }
    assert.match(await problem(wrong), /^t\.json: steps\.0\.source: expected .*found "nobody"/)
    assert.match(await problem([]), /^t\.json: /)
    const noObject = {
      step_id: 1,
      source: "agent",
      message: "",
      tool_calls: [{ tool_call_id: "a", function_name: "f", arguments: "x" }],
    }
    assert.match(await problem({ ...foreign, steps: [noObject] }), /^t\.json: steps\.0\.tool_calls\.0\.arguments: /)
  })
})
