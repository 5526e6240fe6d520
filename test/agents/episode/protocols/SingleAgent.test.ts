import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Schema } from "effect"
import { TestClock } from "effect/testing"
import type { Agent } from "../../../../src/agents/agent/Agent.ts"
import { LmRequest } from "../../../../src/agents/lm/Chat.ts"
import * as MemorylessAgent from "../../../../src/agents/agent/MemorylessAgent.ts"
import { CallContext, Lm, type LmService } from "../../../../src/agents/lm/Lm.ts"
import { lmError } from "../../../../src/agents/lm/LmError.ts"
import { SamplingSeed, seeded } from "../../../../src/agents/lm/middleware/seeded.ts"
import { Rollout, type RolloutStep, totalReward } from "../../../../src/agents/episode/Rollout.ts"
import * as SingleAgent from "../../../../src/agents/episode/protocols/SingleAgent.ts"
import { completion } from "../../lm/support.ts"
import { counting, episodeOf, scripted, type ScriptedAnswer, withTools } from "../support.ts"

const go = (): ScriptedAnswer => ({ act: "go" })
const kinds = (steps: ReadonlyArray<RolloutStep>) =>
  steps.map(({ _tag }) => (_tag === "AgentStep" ? "A" : "E")).join("")

describe("one agent in one env", () => {
  it.effect("is reset, acts, gets results, and reflects at the end", () =>
    Effect.gen(function* () {
      const agent = scripted(go)
      const rollout = yield* SingleAgent.play(agent, episodeOf(counting(2)))
      assert.deepStrictEqual(agent.log, ["reset", "act", "observe", "act", "observe", "endEpisode"])
      assert.deepStrictEqual(agent.seen, [
        { action: "go", observation: "at 1", feedback: { score: 0.1, target: null, message: "go" }, done: false },
        { action: "go", observation: null, feedback: { score: 0.2, target: null, message: "go" }, done: true },
      ])
      assert.strictEqual(kinds(rollout.steps), "AEAE")
      assert.deepStrictEqual(rollout.ending, { terminated: true, truncated: false, truncationReason: null })
      assert.strictEqual(rollout.length, 2)
      assert.closeTo(rollout.totalReward, 0.3, 1e-12)
      assert.deepStrictEqual(
        rollout.steps.map(({ id, turnId }) => [id, turnId]),
        [
          ["e/0", "e/turn/0"],
          ["e/1", "e/turn/0"],
          ["e/2", "e/turn/1"],
          ["e/3", "e/turn/1"],
        ],
      )
    }),
  )

  it.effect("ends where its next prompt is too long for the model, if that is asked for", () =>
    Effect.gen(function* () {
      const tooLong = lmError("m", "rejected", "the prompt has 273 tokens", { attempts: 1, promptTooLong: true })
      /** A model whose answers are always cut off, so that the conversation grows by the feedback until it is too long. */
      const cutOff = (most: number): LmService => ({
        complete: ({ messages }) =>
          messages.length > most
            ? Effect.fail(tooLong)
            : Effect.succeed({ ...completion("much too"), finishReason: "length" }),
      })
      const play = (most: number, options: SingleAgent.SingleAgentOptions) =>
        MemorylessAgent.make({ model: "m" }).pipe(
          Effect.flatMap((agent) => SingleAgent.play(agent, episodeOf(counting(2)), options)),
          Effect.provideService(Lm, cutOff(most)),
        )
      const rollout = yield* play(5, { endsIfPromptTooLong: true })
      assert.strictEqual(kinds(rollout.steps), "AAA")
      assert.deepStrictEqual(rollout.ending, { terminated: false, truncated: true, truncationReason: "max_seq_len" })
      assert.deepInclude(rollout.steps.at(-1), rollout.ending)
      assert.strictEqual((yield* Effect.flip(play(5, {}))).message, tooLong.message)
      assert.strictEqual((yield* Effect.flip(play(0, { endsIfPromptTooLong: true }))).message, tooLong.message)
    }),
  )

  it.effect("gets feedback in training only", () =>
    Effect.gen(function* () {
      const agent = scripted(go, { training: false })
      yield* SingleAgent.play(agent, episodeOf(counting(1)))
      assert.deepStrictEqual(agent.seen, [{ action: "go", observation: null, feedback: null, done: true }])
    }),
  )

  it.effect("gets an empty text if there is no observation", () =>
    Effect.gen(function* () {
      const blind = counting(2, {
        step: (state) => ({
          state: state + 1,
          observation: null,
          feedback: { score: 0, target: null, message: "" },
          terminated: state === 1,
        }),
      })
      const agent = scripted(go)
      yield* SingleAgent.play(agent, episodeOf(blind))
      assert.deepStrictEqual(agent.shown[1], { _tag: "Observation", text: "" })
    }),
  )

  it.effect("survives a line of JSON", () =>
    Effect.gen(function* () {
      const rollout = yield* SingleAgent.play(
        scripted(go, { reflections: ["hm"] }),
        episodeOf(counting(2), { groupId: "g", tags: { split: "train" } }),
      )
      const json = Schema.fromJsonString(Rollout)
      assert.deepStrictEqual(
        yield* Schema.decodeEffect(json)(yield* Schema.encodeEffect(json)(rollout)),
        structuredClone(rollout),
      )
    }),
  )

  it.effect("records the reflection as a last turn without a reward", () =>
    Effect.gen(function* () {
      const rollout = yield* SingleAgent.play(scripted(go, { reflections: ["a", "b"] }), episodeOf(counting(1)))
      assert.strictEqual(kinds(rollout.steps), "AEAA")
      assert.deepStrictEqual(
        rollout.steps.map(({ turnId }) => turnId),
        ["e/turn/0", "e/turn/0", "e/turn/1", "e/turn/1"],
      )
      assert.strictEqual(totalReward(rollout.steps), rollout.totalReward)
    }),
  )
})

describe("a failed parse", () => {
  it.effect("costs a penalty, gives feedback, takes a step, and never reaches the env", () =>
    Effect.gen(function* () {
      const agent = scripted((index) => (index === 0 ? { fail: "say it plainly", reward: -0.5 } : go()))
      const rollout = yield* SingleAgent.play(agent, episodeOf(counting(2)), { maxSteps: 2 })
      assert.strictEqual(kinds(rollout.steps), "AAE")
      assert.deepStrictEqual(agent.shown[1], { _tag: "Observation", text: "say it plainly" })
      assert.deepStrictEqual(
        rollout.steps.map(({ reward }) => reward),
        [-0.5, 0, 0.1],
      )
      assert.strictEqual(rollout.length, 1)
      assert.deepStrictEqual(rollout.ending, { terminated: false, truncated: true, truncationReason: "max_steps" })
      assert.deepInclude(rollout.steps[2], { nextObservation: "at 1", truncated: true, truncationReason: "max_steps" })
    }),
  )

  it.effect("is marked as truncated if it is the last step", () =>
    Effect.gen(function* () {
      const rollout = yield* SingleAgent.play(
        scripted((index) => (index === 0 ? go() : { fail: "no" })),
        episodeOf(counting(5)),
        { maxSteps: 3 },
      )
      assert.strictEqual(kinds(rollout.steps), "AEAA")
      assert.deepStrictEqual(
        rollout.steps.map(({ truncated, truncationReason }) => [truncated, truncationReason]),
        [
          [false, null],
          [false, null],
          [false, null],
          [true, "max_steps"],
        ],
      )
      assert.closeTo(rollout.totalReward, 0.1 - 0.2, 1e-12)
    }),
  )

  it.effect("ends the episode if configured so, as terminated", () =>
    Effect.gen(function* () {
      const rollout = yield* SingleAgent.play(
        scripted(() => ({ fail: "no" })),
        episodeOf(counting(5)),
        { stopOnParseError: true, maxSteps: 1 },
      )
      assert.strictEqual(kinds(rollout.steps), "A")
      assert.deepStrictEqual(rollout.ending, { terminated: true, truncated: false, truncationReason: null })
      assert.deepInclude(rollout.steps[0], { terminated: true, truncated: false, truncationReason: null })
    }),
  )

  it.effect("of a completion that was cut off is recorded as such, and truncates nothing", () =>
    Effect.gen(function* () {
      const rollout = yield* SingleAgent.play(
        scripted((index) => (index === 0 ? { fail: "too long", finish: "length" } : go())),
        episodeOf(counting(1)),
      )
      const [cut, then] = rollout.steps
      assert.deepInclude(cut, { truncated: false, truncationReason: null })
      assert.strictEqual(cut._tag === "AgentStep" && cut.call.completion.finishReason, "length")
      assert.strictEqual(then.reward, 0)
      assert.deepStrictEqual(rollout.ending, { terminated: true, truncated: false, truncationReason: null })
    }),
  )
})

describe("endings", () => {
  const cases: ReadonlyArray<
    [what: string, goal: number, action: string, maxSteps: number | null, own: number | null, expected: string]
  > = [
    ["the env's word", 2, "go", null, null, "terminated null 2"],
    ["the env's word at the limit", 2, "go", 2, null, "terminated null 2"],
    ["the limit", 5, "go", 3, null, "truncated max_steps 3"],
    ["the env's own limit", 5, "go", null, 2, "truncated max_steps 2"],
    ["the smaller of two limits", 5, "go", 4, 2, "truncated max_steps 2"],
    ["the smaller of two limits, the other way", 5, "go", 1, 2, "truncated max_steps 1"],
    ["a truncation by the env", 5, "stop", null, null, "truncated env 1"],
    ["a truncation by the env at the limit", 5, "stop", 1, null, "truncated env 1"],
    ["both words of the env at once", 1, "stop", null, null, "terminated null 1"],
  ]
  for (const [what, goal, action, maxSteps, own, expected] of cases) {
    it.effect(what, () =>
      Effect.gen(function* () {
        const env = counting(goal, own === null ? {} : { maxSteps: own })
        const rollout = yield* SingleAgent.play(
          scripted(() => ({ act: action })),
          episodeOf(env),
          { maxSteps },
        )
        const { ending, steps, length } = rollout
        const word = ending.terminated ? "terminated" : ending.truncated ? "truncated" : "neither"
        assert.strictEqual(`${word} ${ending.truncationReason} ${length}`, expected)
        const last = steps[steps.length - 1]
        const { terminated, truncated, truncationReason } = last
        assert.deepStrictEqual({ terminated, truncated, truncationReason }, ending)
        // A value function needs the observation after the step at which a limit cut the episode off.
        const next = ending.truncated ? `at ${length}` : null
        assert.strictEqual(last._tag === "EnvironmentStep" ? last.nextObservation : undefined, next)
      }),
    )
  }

  const budgets: ReadonlyArray<
    [what: string, script: (index: number) => ScriptedAnswer, kinds: string, rewards: Array<number>]
  > = [
    ["acting", go, "AEAE", [0, 0.1, 0, 0.2]],
    ["a failed parse", (index) => (index === 1 ? { fail: "no" } : go()), "AEA", [0, 0.1, -0.1]],
    [
      "a call of a tool, which then isn't answered",
      (index) => (index === 1 ? { tools: [["lookup", ""]] } : go()),
      "AEA",
      [0, 0.1, -0.1],
    ],
  ]
  for (const [what, script, expected, rewards] of budgets) {
    it.effect(`the model was asked as often as it may be: ${what}`, () =>
      Effect.gen(function* () {
        const agent = scripted(script)
        const { steps, ending } = yield* SingleAgent.play(agent, episodeOf(withTools(5)), { maxCalls: 2 })
        assert.strictEqual(kinds(steps), expected)
        assert.deepStrictEqual(
          steps.map(({ reward }) => reward),
          rewards,
        )
        assert.deepStrictEqual(ending, { terminated: false, truncated: true, truncationReason: "max_steps" })
        assert.deepInclude(steps.at(-1), ending)
      }),
    )
  }

  it.effect("an invalid limit is refused", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(SingleAgent.play(scripted(go), episodeOf(counting(1)), { maxSteps: 0 }))
      assert.deepInclude(error, {
        _tag: "ProtocolError",
        message: "maxSteps: expected a whole number of at least 1, found 0",
      })
    }),
  )
})

describe("external tools", () => {
  it.effect("are described once, at the beginning", () =>
    Effect.gen(function* () {
      const agent = scripted(go)
      const ask = { name: "ask", description: "asks", parameters: {} }
      yield* SingleAgent.play(agent, episodeOf(withTools(2)), { tools: [ask] })
      assert.deepStrictEqual(
        agent.shown.map((shown) => shown._tag === "Observation" && shown.tools?.map(({ name }) => name)),
        [["lookup", "ask"], undefined],
      )
    }),
  )

  it.effect("are answered by the env, between its steps", () =>
    Effect.gen(function* () {
      const agent = scripted((index) =>
        index === 0
          ? {
              tools: [
                ["lookup", "x"],
                ["peek", "y"],
              ],
            }
          : go(),
      )
      const rollout = yield* SingleAgent.play(agent, episodeOf(withTools(1)), { maxSteps: 1 })
      assert.strictEqual(kinds(rollout.steps), "AAE")
      const results = [
        { toolCallId: "call-1-0", toolName: "lookup", content: "lookup x at 0", isError: false },
        {
          toolCallId: "call-1-1",
          toolName: "peek",
          content: `There is no tool "peek"; there are lookup.`,
          isError: true,
        },
      ]
      assert.deepStrictEqual(agent.shown[1], { _tag: "ToolResults", results })
      const [first, second, env] = rollout.steps
      assert.deepInclude(first, { reward: 0, toolResults: results })
      assert.strictEqual(first.turnId, second.turnId)
      assert.deepInclude(env, { sourceAgentStepId: "e/1", agentStepIds: ["e/0", "e/1"], terminated: true })
    }),
  )

  it.effect("are answered by handlers first; a failure is a result with the reason", () =>
    Effect.gen(function* () {
      const agent = scripted((index) =>
        index === 0
          ? {
              tools: [
                ["lookup", "x"],
                ["broken", ""],
                ["no", ""],
              ],
            }
          : go(),
      )
      yield* SingleAgent.play(agent, episodeOf(counting(1)), {
        handlers: {
          lookup: (call, from) => Effect.succeed({ content: `${call.arguments} for ${from.stepId} of ${from.turnId}` }),
          broken: () => Effect.fail(new Error("out of order")),
        },
      })
      assert.deepStrictEqual(
        agent.shown[1]._tag === "ToolResults" &&
          agent.shown[1].results.map(({ content, isError }) => [content, isError]),
        [
          ["x for e/0 of e/turn/0", false],
          ["out of order", true],
          [`There is no tool "no"; there are lookup, broken.`, true],
        ],
      )
    }),
  )

  it.effect("that nothing answers are an error", () =>
    Effect.gen(function* () {
      const agent = scripted(() => ({ tools: [["lookup", ""]] }))
      const error = yield* Effect.flip(SingleAgent.play(agent, episodeOf(counting(1))))
      assert.deepInclude(error, {
        _tag: "ProtocolError",
        rollout: "e",
        message: `e/turn/0: nothing answers the call of the tool "lookup": the env has no tools, and there are no handlers`,
      })
    }),
  )

  it.effect("that do not answer in time give a result", () =>
    Effect.gen(function* () {
      const agent = scripted((index) => (index === 0 ? { tools: [["slow", ""]] } : go()))
      const playing = yield* Effect.forkChild(
        SingleAgent.play(agent, episodeOf(counting(1)), {
          handlers: { slow: () => Effect.never },
          toolTimeout: "5 seconds",
        }),
      )
      yield* TestClock.adjust("4 seconds")
      assert.strictEqual(agent.shown.length, 1)
      yield* TestClock.adjust("1 second")
      yield* Fiber.join(playing)
      assert.deepInclude(agent.shown[1]._tag === "ToolResults" ? agent.shown[1].results[0] : {}, {
        content: `The tool "slow" gave no answer within 5s.`,
        isError: true,
      })
    }),
  )

  it.effect("are answered a limited number of times; then the turn fails, and takes a step", () =>
    Effect.gen(function* () {
      const agent = scripted(() => ({ tools: [["lookup", ""]] }))
      const rollout = yield* SingleAgent.play(agent, episodeOf(withTools(1)), { maxToolRounds: 2, maxSteps: 2 })
      // Each turn: answered, answered, refused.
      assert.strictEqual(kinds(rollout.steps), "AAAAAA")
      assert.deepStrictEqual(
        rollout.steps.map(({ reward }) => reward),
        [0, 0, -0.1, 0, 0, -0.1],
      )
      const refused = "Not called: tools were called 2 times already in this turn. Answer now."
      assert.strictEqual(agent.shown[3]._tag === "ToolResults" && agent.shown[3].results[0].content, refused)
      assert.deepStrictEqual(rollout.ending, { terminated: false, truncated: true, truncationReason: "max_steps" })
      assert.deepInclude(rollout.steps[5], { truncated: true, truncationReason: "max_steps" })
    }),
  )
})

describe("an observer of steps", () => {
  it.effect("gets every step when it is complete, and no other", () =>
    Effect.gen(function* () {
      const told: Array<string> = []
      const agent = scripted((index) => (index === 1 ? { broken: "no model" } : go()))
      const error = yield* Effect.flip(
        SingleAgent.play(
          agent,
          episodeOf(counting(3), { onStep: ({ id, _tag }) => Effect.sync(() => void told.push(`${id} ${_tag}`)) }),
        ),
      )
      assert.strictEqual(error.message, "no model")
      assert.deepStrictEqual(told, ["e/0 AgentStep", "e/1 EnvironmentStep"])
    }),
  )

  it.effect("sees no end of an episode that is interrupted", () =>
    Effect.gen(function* () {
      const agent = scripted(go, { before: Effect.sleep("1 second") })
      const playing = yield* Effect.forkChild(SingleAgent.play(agent, episodeOf(counting(3))))
      yield* TestClock.adjust("1500 millis")
      yield* Fiber.interrupt(playing)
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual(agent.log, ["reset", "act", "observe"])
    }),
  )

  it.effect("finds every call of the model by its position", () =>
    Effect.gen(function* () {
      const places: Array<string> = []
      const note = Effect.flatMap(CallContext, ({ phase, purpose, episode, step }) =>
        Effect.sync(() => void places.push(`${phase._tag} ${purpose} ${episode} ${step}`)),
      )
      const inner = scripted((index) => (index === 0 ? { fail: "no" } : go()))
      const agent: Agent = {
        ...inner,
        act: (shown) => Effect.andThen(note, inner.act(shown)),
        observe: (seen) => Effect.andThen(note, inner.observe(seen)),
        endEpisode: Effect.andThen(note, inner.endEpisode),
      }
      yield* Effect.provideService(SingleAgent.play(agent, episodeOf(counting(2))), CallContext, {
        phase: { _tag: "train" },
        purpose: "action",
        episode: 7,
        step: 0,
      })
      assert.deepStrictEqual(places, [
        "train action 7 1",
        "train action 7 2",
        "train action 7 2",
        "train action 7 3",
        "train action 7 3",
        "train reflection 7 3",
      ])
    }),
  )
})

describe("sampling seeds", () => {
  it.effect("reach the requests, differ by step and episode, and are reproducible", () =>
    Effect.gen(function* () {
      const seeds: Array<number | null> = []
      const counter: Lm["Service"] = {
        complete: ({ seed }) =>
          Effect.sync(() => {
            seeds.push(seed)
            return {
              content: "go",
              toolCalls: [],
              finishReason: "stop",
              usage: { inputTokens: 0, outputTokens: 0, reasoningTokens: 0 },
              tokens: null,
              model: "m",
              attempts: 1,
            }
          }),
      }
      const lm = Lm.middleware(seeded).pipe(Layer.provide(Layer.succeed(Lm, counter)))
      const service = yield* Effect.provide(Lm, lm)
      const inner = scripted(go)
      const request = { ...LmRequest.defaults, model: "m", messages: [] }
      const agent: Agent = {
        ...inner,
        act: (shown) => Effect.andThen(service.complete(request), inner.act(shown)),
      }
      for (const samplingSeed of [1, 2, 1]) {
        yield* SingleAgent.play(agent, episodeOf(counting(2), { samplingSeed }))
      }
      assert.deepStrictEqual(seeds.slice(4), seeds.slice(0, 2))
      assert.strictEqual(new Set(seeds).size, 4)
      seeds.length = 0
      yield* service.complete(request)
      yield* Effect.provideService(service.complete({ ...request, seed: 5 }), SamplingSeed, 1)
      assert.deepStrictEqual(seeds, [null, 5])
    }),
  )
})

describe("a protocol", () => {
  it.effect("plays many episodes at a time by independent clones", () =>
    Effect.gen(function* () {
      const agent = scripted((index) => ({ act: String(index) }), { before: Effect.yieldNow })
      const protocol = SingleAgent.make(agent)
      const rollouts = yield* Effect.scoped(
        Effect.forEach([1, 2, 3, 4, 5], (goal) => protocol.play(episodeOf(counting(goal), { id: `e${goal}` })), {
          concurrency: "unbounded",
        }),
      )
      assert.deepStrictEqual(
        rollouts.map(([{ id, steps }]) => [
          id,
          steps.flatMap((step) => (step._tag === "EnvironmentStep" ? [step.action] : [])).join(""),
        ]),
        [
          ["e1", "0"],
          ["e2", "01"],
          ["e3", "012"],
          ["e4", "0123"],
          ["e5", "01234"],
        ],
      )
      assert.deepStrictEqual(agent.log, [])
    }),
  )
})
