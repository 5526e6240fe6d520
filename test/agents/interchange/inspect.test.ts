import { isDeepStrictEqual } from "node:util"
import { Effect, Stream } from "effect"
import { assert, describe, it } from "vitest"
import { type AgentStep, notEnded, type Rollout, terminated } from "../../../src/agents/episode/Rollout.ts"
import type { EpisodeRow } from "../../../src/agents/evaluate/rows.ts"
import { episodesOfArchive, episodesOfJson, parseLog } from "../../../src/agents/interchange/inspect/readInspect.ts"
import { InspectLog } from "../../../src/agents/interchange/inspect/writeInspect.ts"
import type { ChatMessage } from "../../../src/agents/lm/Chat.ts"
import { zipEntries } from "../../../src/base/formats/zip/directory.ts"
import { unzip } from "../../../src/base/formats/zip/unzip.ts"

const run = Effect.runPromise

const row: EpisodeRow = {
  agent: "mine",
  episode_index: 1,
  task: 0,
  repeat: 0,
  env_id: "france",
  env_type: "qa",
  metadata: { continent: "Europe" },
  answer: "Paris",
  target: "Paris",
  score: 1,
  scores: { exact: 1, judge: null },
  steps: 1,
  terminated: true,
  truncated: false,
  truncation_reason: null,
  calls: 2,
  retries: 0,
  input_tokens: 7,
  output_tokens: 3,
  cost: null,
  duration_ms: 1500,
  error: null,
}

const call = (index: number, messages: ReadonlyArray<ChatMessage>, more: object = {}): AgentStep => ({
  _tag: "AgentStep",
  id: `task-0/${index}`,
  index,
  turnId: "task-0/turn/0",
  parentId: null,
  call: {
    purpose: "action",
    target: "env",
    loopIndex: index,
    messages,
    completion: {
      content: "Paris",
      toolCalls: [],
      finishReason: "stop",
      usage: { inputTokens: 4, outputTokens: 2, reasoningTokens: 0 },
      tokens: { promptIds: [1, 2], completionIds: [3], logprobs: [-0.5] },
      model: "small",
      attempts: 1,
      ...more,
    },
    toolResults: [],
    parsed: null,
    incomplete: false,
  },
  toolResults: [],
  reward: 0,
  ...notEnded,
})

const question: ChatMessage = { role: "user", content: "What is the capital of France?" }
const lookUp = { id: "c", name: "look_up", arguments: `{"word":"France"}` }
const asked: ChatMessage = { role: "assistant", content: "", toolCalls: [lookUp] }
const told: ChatMessage = { role: "tool", toolCallId: "c", toolName: "look_up", content: "Paris" }
const rollout: Rollout = {
  id: "task-0",
  meta: {
    envId: "france",
    envType: "qa",
    agent: "tool_agent",
    model: "small",
    envSeed: 0,
    samplingSeed: 0,
    groupId: null,
    parentRolloutId: null,
    depth: 0,
    player: null,
    tags: {},
  },
  steps: [
    {
      ...call(0, [question], {
        content: "",
        toolCalls: [lookUp],
        usage: { inputTokens: 3, outputTokens: 1, reasoningTokens: 0 },
      }),
      toolResults: [{ toolCallId: "c", toolName: "look_up", content: "Paris", isError: false }],
    },
    call(1, [question, asked, told]),
    {
      _tag: "EnvironmentStep",
      id: "task-0/2",
      index: 2,
      turnId: "task-0/turn/0",
      sourceAgentStepId: "task-0/1",
      agentStepIds: ["task-0/0", "task-0/1"],
      observation: question.content,
      action: "Paris",
      nextObservation: null,
      feedback: { score: 1, target: "Paris", message: "Correct." },
      reward: 1,
      ...terminated,
    },
  ],
  totalReward: 1,
  length: 1,
  ending: terminated,
}

const failed: EpisodeRow = {
  ...row,
  repeat: 1,
  scores: {},
  answer: null,
  error: { error: "LmError", message: "no answer" },
}

const written = () =>
  run(
    Effect.gen(function* () {
      const log = new InspectLog(
        {
          task: "capitals",
          agent: "mine",
          model: "small",
          id: "0123",
          startedAt: new Date(0),
          endedAt: new Date(1000),
          epochs: 2,
          scorers: ["exact", "judge"],
          version: "1.2.3",
        },
        ({ env_id }) => env_id,
      )
      yield* log.add(row, [rollout])
      yield* log.add(failed, [])
      return yield* log.finish()
    }),
  )

const fileIn = async (bytes: Uint8Array, name: string) => {
  const entry = zipEntries(bytes).find((one) => one.name === name)
  if (entry === undefined) return assert.fail(`no ${name}`)
  return JSON.parse(new TextDecoder().decode(await run(unzip(entry, { most: 1e6 }))))
}

const inArchive = (bytes: Uint8Array) => run(Stream.runCollect(episodesOfArchive(bytes, "a.eval", undefined)))
const inJson = (text: string) =>
  Effect.gen(function* () {
    const value = yield* parseLog(new TextEncoder().encode(text), "log.json")
    return yield* Stream.runCollect(episodesOfJson(value, "log.json"))
  })

describe("logs of Inspect that we write", () => {
  it("have the conversation, scores, usage, and each call with its whole prompt", async () => {
    const bytes = await written()
    const sample = await fileIn(bytes, "samples/france_epoch_1.json")
    assert.deepEqual([sample.id, sample.epoch, sample.input, sample.target], ["france", 1, question.content, "Paris"])
    assert.deepEqual(
      sample.messages.map(({ role, source }: { role: string; source?: string }) => [role, source]),
      [
        ["user", undefined],
        ["assistant", "generate"],
        ["tool", undefined],
        ["assistant", "generate"],
      ],
    )
    assert.deepEqual(sample.messages[1].tool_calls, [
      { id: "c", function: "look_up", type: "function", arguments: { word: "France" } },
    ])
    assert.deepEqual(sample.scores, { exact: { value: 1, answer: "Paris", explanation: "Correct." } })
    assert.deepEqual(sample.model_usage, { small: { input_tokens: 7, output_tokens: 3, total_tokens: 10 } })
    assert.deepEqual([sample.total_time, sample.metadata], [1.5, { continent: "Europe" }])
    const [first, second, env] = sample.events
    assert.deepEqual([first.event, second.event, env.event], ["model", "model", "info"])
    // The prompts refer to a pool, in which each message is once.
    assert.deepEqual([first.input_refs, second.input_refs], [[[0, 1]], [[0, 3]]])
    assert.strictEqual(sample.events_data.messages.length, 3)
    assert.deepEqual(second.output.choices[0].logprobs, { content: [{ token: "", logprob: -0.5 }] })
    assert.deepEqual(env.data.feedback, "Correct.")
  })

  it("have means over tasks, and an error for an episode that failed", async () => {
    const bytes = await written()
    const { eval: spec, results } = await fileIn(bytes, "header.json")
    assert.deepEqual([spec.task, spec.model, spec.solver, spec.config], ["capitals", "small", "mine", { epochs: 2 }])
    assert.deepEqual([results.total_samples, results.completed_samples], [2, 1])
    const [exact, judge] = results.scores
    assert.deepEqual([exact.metrics.mean.value, exact.metrics.stderr.value, exact.reducer], [1, 0, "mean"])
    assert.deepEqual([judge.scored_samples, judge.unscored_samples, judge.metrics], [0, 1, {}])
    const { error } = await fileIn(bytes, "samples/france_epoch_2.json")
    assert.strictEqual(error.message, "LmError: no answer")
    assert.lengthOf(await fileIn(bytes, "summaries.json"), 2)
  })

  it("are read again with tokens, log-probabilities, tools and scores", async () => {
    const [first, second] = await inArchive(await written())
    assert.deepEqual([first.agent, first.model, first.task.id, first.repeat], ["mine", "small", "france", 0])
    assert.deepEqual([first.variant, first.group], ["mine", "capitals"])
    assert.deepEqual([first.scores, first.answer, first.target], [{ exact: 1 }, "Paris", "Paris"])
    assert.deepEqual(first.usage, { inputTokens: 7, outputTokens: 3 })
    const { steps } = first.rollouts[0]
    const calls = steps.filter((step) => step._tag === "AgentStep")
    assert.deepEqual(
      calls.map(({ call: { messages } }) => messages),
      [[question], [question, asked, told]],
    )
    assert.deepEqual(
      calls.map(({ call: { completion } }) => [completion.tokens, completion.usage.inputTokens]),
      rollout.steps.flatMap((step) =>
        step._tag === "AgentStep" ? [[step.call.completion.tokens, step.call.completion.usage.inputTokens]] : [],
      ),
    )
    assert.deepEqual(
      calls[0].toolResults.map(({ content }) => content),
      ["Paris"],
    )
    assert.deepEqual([steps.at(-1)?.reward, second.repeat, second.rollouts.length], [1, 1, 0])
    assert.deepEqual(second.error, { error: "EvalError", message: "LmError: no answer" })
  })
})

const sample = {
  id: 1,
  epoch: 1,
  input: "attachment://k",
  target: [" Yes", "Y"],
  messages: [
    { role: "system", content: "Be brief." },
    { role: "assistant", content: "an example", source: "input" },
    {
      role: "user",
      content: [
        { type: "text", text: "attachment://k" },
        { type: "image", image: "…" },
      ],
    },
    {
      role: "assistant",
      content: [
        { type: "reasoning", reasoning: "hm" },
        { type: "text", text: "Yes" },
      ],
    },
  ],
  output: {
    model: "gpt",
    choices: [{ stop_reason: "max_tokens" }],
    usage: { input_tokens: 5, output_tokens: 2, input_tokens_cache_read: 4 },
  },
  scores: { match: { value: "C", answer: "Yes" }, parts: { value: { a: 0.5, b: "I" } }, odd: { value: "unclear" } },
  attachments: { k: "Is it so?" },
  events: [{ event: "sample_init" }],
}
const log = (samples: ReadonlyArray<unknown>) =>
  JSON.stringify({ version: 2, status: "success", eval: { task: "popularity", model: "openai/gpt" }, samples })

describe("logs of Inspect", () => {
  it("become episodes with numbers for grades, and texts for attachments", async () => {
    const [one] = await run(inJson(log([sample])))
    assert.deepEqual(one.scores, { match: 1, "parts.a": 0.5, "parts.b": 0, odd: null })
    assert.deepEqual([one.agent, one.task.id, one.answer, one.target], ["openai/gpt", "1", "Yes", "Yes"])
    const [step, env] = one.rollouts[0].steps
    if (step._tag !== "AgentStep" || env._tag !== "EnvironmentStep") return assert.fail("expected a call and a step")
    assert.deepEqual(
      step.call.messages.map(({ content }) => content),
      ["Be brief.", "an example", "Is it so?\n[image]"],
    )
    const { content, finishReason, usage, model } = step.call.completion
    assert.deepEqual([content, finishReason, usage.inputTokens, model], ["Yes", "length", 9, "gpt"])
    assert.deepEqual([env.action, env.reward, one.rollouts[0].meta.envType], ["Yes", 1, "imported"])
  })

  it("may have numbers that JSON does not have, and the scores of older versions", { tags: "slow" }, async () => {
    const { scores: _, ...older } = sample
    const text = log([{ ...older, score: { value: "NaN", metadata: { text: "NaN and Infinity" } } }])
    const [one] = await run(inJson(text.replace(`"value":"NaN"`, `"value":NaN`)))
    assert.deepEqual(one.scores, { score: null })
    const texts = ['"NaN" \\" Infinity', "\n".repeat(2 ** 22)]
    const [long] = await run(
      inJson(log([{ ...sample, metadata: { texts, nothing: "?" } }]).replace('"?"', "-Infinity")),
    )
    assert.isTrue(isDeepStrictEqual(long.task.metadata, { texts, nothing: null }))
    const [two] = await run(inJson(log([{ ...older, score: { value: true } }])))
    assert.deepEqual(two.scores, { score: 1 })
  })

  it("are refused if their parts name one long text too often", async () => {
    const content = Array.from({ length: 1000 }, () => ({ type: "text", text: "attachment://k" }))
    const attachments = { k: "A".repeat(1_000_000) }
    const many = log([{ ...sample, attachments, messages: [{ role: "user", content }] }])
    const { message } = await run(Effect.flip(inJson(many)))
    assert.match(message, /^log\.json: the episode .* is too long: its texts have more than 268435456 characters/)
  })

  it("are refused with the file and the key that is wrong", async () => {
    const problem = (text: string) => run(Effect.flip(inJson(text))).then(({ message }) => message)
    assert.match(await problem(log([{ ...sample, epoch: "one" }])), /^log\.json: samples\.0\.epoch: expected .*"one"/)
    assert.match(await problem("{"), /^log\.json: expected JSON/)
    assert.match(await problem("[".repeat(100_000)), /^log\.json: .*expected at most/)
    const archive = (bytes: Uint8Array) =>
      run(Effect.flip(Stream.runDrain(episodesOfArchive(bytes, "a.eval", undefined)))).then(({ message }) => message)
    assert.match(await archive(new Uint8Array(10)), /^a\.eval: expected a zip archive/)
    const bytes = await written()
    assert.match(await archive(bytes.subarray(0, bytes.length - 30)), /^a\.eval: /)
  })
})
