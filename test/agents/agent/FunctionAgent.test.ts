import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Layer } from "effect"
import { TestClock } from "effect/testing"
import * as HttpClient from "effect/http/HttpClient"
import * as Agents from "../../../src/agents/agent/Agents.ts"
import type { AgentKind } from "../../../src/agents/agent/AgentKind.ts"
import { AgentTexts, AskedTexts } from "../../../src/agents/agent/AgentTexts.ts"
import { answerOf } from "../../../src/agents/agent/outside/answers.ts"
import * as FunctionAgent from "../../../src/agents/agent/FunctionAgent.ts"
import * as Evaluations from "../../../src/agents/evaluate/Evaluations.ts"
import * as SingleAgent from "../../../src/agents/episode/protocols/SingleAgent.ts"
import { Lm } from "../../../src/agents/lm/Lm.ts"
import { LmError } from "../../../src/agents/lm/LmError.ts"
import { SamplingSeed } from "../../../src/agents/lm/middleware/seeded.ts"
import * as Scripted from "../../../src/agents/lm/providers/scripted.ts"
import * as CalendarTask from "../../../src/agents/task/games/CalendarTask.ts"
import { Recorder } from "../../../src/run/record/Recorder.ts"
import { RunStore } from "../../../src/run/store/RunStore.ts"
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import * as NodePath from "@effect/platform-node/NodePath"
import { below, linesOf } from "../evaluate/support.ts"

const files = Layer.merge(NodeFileSystem.layer, NodePath.layer)

const noServers = Layer.succeed(
  HttpClient.HttpClient,
  HttpClient.make(() => Effect.die(new Error("no test of this file asks a server"))),
)

const capitals = [
  { id: "japan", question: "What is the capital of Japan?", answer: "Tokyo" },
  { id: "peru", question: "What is the capital of Peru?", answer: "Lima" },
]

const runsIn = (kept: ReadonlyMap<string, Uint8Array>): ReadonlyArray<string> =>
  [...kept.keys()].flatMap((path) => (path.endsWith("/config.yaml") ? [path.slice(0, -12)] : []))

/** Evaluates agents on two questions, or resumes the evaluation in `kept`. Returns the result with the run's files. */
const evaluated = (config: object, kept = new Map<string, Uint8Array>()) =>
  Effect.gen(function* () {
    const [earlier] = runsIn(kept)
    const memory = RunStore.memory({ files: kept, ...(earlier === undefined ? {} : { resume: earlier }) })
    const result = yield* Effect.exit(
      Evaluations.fromConfig({ dataset: { items: capitals, id_field: "id" }, scorers: ["exact"], ...config }).pipe(
        Effect.provide(Layer.mergeAll(memory.layer, Recorder.layer(), files, noServers)),
      ),
    )
    return { result, files: below(kept, runsIn(kept)[0]) }
  })

const table = ({ files: all }: { readonly files: ReadonlyMap<string, string> }) => linesOf(all.get("episodes.jsonl"))

/** Makes the agent of a kind, with a scripted model. */
const made = (kind: AgentKind, settings: object, script: Scripted.Script = Scripted.echo) =>
  Effect.gen(function* () {
    const decoded = yield* Agents.decode({ type: kind.type, ...settings })
    return { decoded, agent: yield* Effect.provideService(decoded.make, Lm, Scripted.make(script)) }
  }).pipe(Effect.provideService(Agents.Kinds, [kind]), Effect.provide(files))

const withModel = { lm_config: { model: "scripted:echo" } }

const throwing = (error: unknown): never => {
  throw error
}

const asks = (kind: AgentKind, settings: object = {}, script?: Scripted.Script) =>
  Effect.flatMap(made(kind, settings, script), ({ agent }) => agent.act({ _tag: "Observation", text: "How many?" }))

describe("an agent that is a function", () => {
  it.effect("gets different answers to equal requests, always the same ones", () =>
    Effect.gen(function* () {
      const seedsIn = Effect.suspend(() => {
        const seeds: Array<number | null> = []
        const script: Scripted.Script = ({ seed }) => {
          seeds.push(seed)
          return { content: "Six" }
        }
        const voting = FunctionAgent.make("voting", async ({ text }, { lm }) => {
          for (let nth = 0; nth < 3; nth++) await lm.ask(text)
          return "Six"
        })
        return Effect.as(asks(voting, withModel, script), seeds)
      }).pipe(Effect.provideService(SamplingSeed, 7))
      const seeds = yield* seedsIn
      assert.strictEqual(seeds[0], null)
      assert.strictEqual(new Set(seeds).size, 3)
      assert.deepStrictEqual(yield* seedsIn, seeds)
    }),
  )

  it.effect("is evaluated without a model, beside others, and its answers are in the transcripts", () =>
    Effect.gen(function* () {
      const knows = FunctionAgent.make("knows", async ({ text }) => (text.includes("Japan") ? "Tokyo" : "Quito"))
      const run = yield* evaluated({ agents: { mine: knows, echo: withModel } })
      assert.deepStrictEqual(
        table(run).map(({ agent, env_id, answer, scores }) => [agent, env_id, answer, scores]),
        [
          ["mine", "japan", "Tokyo", { exact: 1 }],
          ["mine", "peru", "Quito", { exact: 0 }],
          ["echo", "japan", "What is the capital of Japan?", { exact: 0 }],
          ["echo", "peru", "What is the capital of Peru?", { exact: 0 }],
        ],
      )
      const [first] = linesOf(run.files.get("rollouts/val/0_seen_episodes_rollouts.jsonl"))
      assert.match(JSON.stringify(first), /"content":"Tokyo"/)
      assert.match(run.files.get("config.yaml") ?? "", /type: knows/)
    }),
  )

  it.effect("asks its model through us: each call is recorded, with the answer as the last one", () =>
    Effect.gen(function* () {
      const twice = FunctionAgent.make("twice", async ({ text }, { lm }) => {
        const first = await lm.ask(text)
        const { content } = await lm.complete({ messages: [{ role: "user", content: first }], temperature: 0 })
        return `${lm.name}: ${content}`
      })
      const { calls, outcome } = yield* asks(twice, withModel, ({ messages, temperature }) => ({
        content: `${messages.at(-1)?.content} ${temperature}`,
      }))
      assert.deepStrictEqual(outcome, { _tag: "Act", action: "scripted:echo: How many? 0.2 0", reward: 0 })
      assert.deepStrictEqual(
        calls.map(({ target, loopIndex, completion, parsed }) => [target, loopIndex, completion.content, parsed?._tag]),
        [
          ["internal", 0, "How many? 0.2", undefined],
          ["env", 1, "How many? 0.2 0", "Parsed"],
        ],
      )
    }),
  )

  it.effect("may return usage and tools, as an object whose properties are computed", () =>
    Effect.gen(function* () {
      class Result {
        get text() {
          return "4"
        }
        usage = { inputTokens: 7, outputTokens: undefined, totalTokens: 9 }
        toolCalls = [{ type: "tool-call", toolCallId: "x", toolName: "add", input: { a: 2 } }]
      }
      const { calls } = yield* asks(FunctionAgent.make("adds", () => new Result()))
      const [{ completion }] = calls
      assert.deepStrictEqual(completion.usage, { inputTokens: 7, outputTokens: 0, reasoningTokens: 0 })
      assert.deepStrictEqual(completion.toolCalls, [{ id: "own_0", name: "add", arguments: '{"a":2}' }])
    }),
  )

  it.effect("can call the tools of its task, and sees their results and its earlier turns", () =>
    Effect.gen(function* () {
      const seen: Array<ReadonlyArray<string>> = []
      const planner = FunctionAgent.make("planner", async ({ turns, tools, toolResults }) => {
        seen.push([`${turns.length} turns`, ...tools.map(({ name }) => name), ...toolResults.map((one) => one.content)])
        return toolResults.length === 0 && tools.length > 0
          ? { call: [{ name: tools[0].name, arguments: {} }] }
          : "done"
      })
      const { agent } = yield* made(planner, {})
      const env = CalendarTask.make({ id: "calendar", plan: { before: [], after: [], requests: [], calls: [] } })
      yield* SingleAgent.play(agent, { id: "calendar", env, envSeed: 1, samplingSeed: 1 }, { maxSteps: 2 })
      assert.isAbove(seen.length, 1)
      assert.strictEqual(seen[0][0], "0 turns")
      assert.isAbove(seen[1].length, seen[0].length)
    }),
  )

  it.effect("is asked again after an answer that cannot be used, with the observation and what was wrong", () =>
    Effect.gen(function* () {
      const boxes = FunctionAgent.make("boxes", ({ text, refused }) =>
        refused.length === 0 ? "7" : `${text} ${refused[0].answer} \\boxed{7}`,
      )
      const { agent } = yield* made(boxes, { parser: "boxed" })
      const first = yield* agent.act({ _tag: "Observation", text: "3 + 4?" })
      assert.strictEqual(first.outcome._tag, "NoAction")
      const feedback = first.outcome._tag === "NoAction" ? first.outcome.feedback : ""
      const second = yield* agent.act({ _tag: "Observation", text: feedback })
      assert.deepStrictEqual(second.outcome, { _tag: "Act", action: "7", reward: 0 })
      assert.strictEqual(second.calls[0].completion.content, "3 + 4? 7 \\boxed{7}")
    }),
  )

  it.effect("is refused an answer that was cut off, as other agents are", () =>
    Effect.gen(function* () {
      const asking = FunctionAgent.make("asking", ({ text }, { lm }) => lm.ask(text))
      const cutOff = () => ({ content: "it is seve", finishReason: "length" as const })
      const { outcome, calls } = yield* asks(asking, withModel, cutOff)
      assert.strictEqual(outcome._tag, "NoAction")
      assert.isTrue(calls[0].incomplete)
      const accepted = yield* asks(asking, { ...withModel, reject_incomplete_completions: false }, cutOff)
      assert.strictEqual(accepted.outcome._tag, "Act")
    }),
  )

  it.effect("gets a seed that depends on the episode alone, its options, and texts from outside", () =>
    Effect.gen(function* () {
      const shows = FunctionAgent.make("shows", (_, { seed, options, text }) =>
        JSON.stringify([seed, options, text("system", "Be brief."), text("my_rules", "Yes.")]),
      )
      const settings = { options: { top_k: 3 }, texts: { my_rules: "No." } }
      const { agent, decoded } = yield* made(shows, settings)
      const ask = Effect.map(agent.act({ _tag: "Observation", text: "?" }), ({ outcome }) =>
        outcome._tag === "Act" ? JSON.parse(outcome.action) : null,
      )
      const asked: Record<string, string> = {}
      const [seed, ...rest] = yield* Effect.provideService(ask, AskedTexts, (name, own) => void (asked[name] = own))
      assert.deepStrictEqual(rest, [{ topK: 3 }, "Be brief.", "No."])
      assert.deepStrictEqual((yield* ask)[0], seed)
      assert.deepStrictEqual(asked, { system: "Be brief.", my_rules: "Yes." })
      assert.deepStrictEqual(decoded.texts(asked), { system: "Be brief.", my_rules: "No." })
      assert.deepStrictEqual(decoded.texts(), { my_rules: "No." })
      assert.deepStrictEqual(decoded.config["texts"], { my_rules: "No." })
      const other = yield* Effect.provideService(decoded.make, AgentTexts, { system: "Be long." }).pipe(
        Effect.provideService(Lm, Scripted.make(Scripted.echo)),
      )
      const { outcome } = yield* other.act({ _tag: "Observation", text: "?" })
      assert.match(JSON.stringify(outcome), /Be long/)
    }),
  )

  it.effect("has its own text for every name that nobody has replaced", () =>
    Effect.gen(function* () {
      const shows = FunctionAgent.make("shows", (_, { text }) =>
        [text("constructor", "a"), text("toString", "b")].join(),
      )
      const { outcome } = yield* asks(shows, { texts: { toString: "c" } })
      assert.deepStrictEqual(outcome, { _tag: "Act", action: "a,c", reward: 0 })
    }),
  )

  it.effect("that throws or returns no answer fails its own episode only", () =>
    Effect.gen(function* () {
      const picky = FunctionAgent.make("picky", async ({ text }) => {
        if (text.includes("Japan")) throw new TypeError("no\nJapan")
        return "Lima"
      })
      const run = yield* evaluated({ agent: picky })
      assert.deepStrictEqual(
        table(run).map(({ answer, error }) => [answer, error]),
        [
          [null, { error: "AgentError", message: "picky: it failed: no; Japan" }],
          ["Lima", null],
        ],
      )
      const wrong: ReadonlyArray<readonly [unknown, RegExp]> = [
        [undefined, /expected the answer as a text, or an object with text, found nothing/],
        [{ usage: {} }, /expected the answer as a text/],
        [{ text: "a", usage: { inputTokens: Number.NaN } }, /inputTokens/],
        [{ call: [{}] }, /call: expected the name of a tool/],
        ["x".repeat(2 ** 24 + 1), /at most 16777216 characters/],
      ]
      for (const [returned, message] of wrong) {
        const error = yield* Effect.flip(answerOf("odd", returned))
        assert.match(error.message, message)
      }
    }),
  )

  it.effect("fails its own episode only, whatever its answer and its Effects do", () =>
    Effect.gen(function* () {
      const circular: Record<string, unknown> = {}
      circular["self"] = circular
      const thrower = {
        get text(): string {
          throw new TypeError("no text")
        },
      }
      const unreadable = Object.defineProperty(new Error("a"), "message", { get: () => throwing(new Error("b")) })
      const cases: ReadonlyArray<
        readonly [string, RegExp, () => ReturnType<Parameters<typeof FunctionAgent.make>[1]>]
      > = [
        ["dies", /^dies: it failed: a bug$/, () => Effect.die(new Error("a bug"))],
        ["throws", /^throws: it failed: \{"code":1\}$/, () => Effect.sync(() => throwing({ code: 1 }))],
        ["bare", /^bare: it failed: /, () => throwing(Object.create(null))],
        ["number", /^number: it failed: 5$/, () => throwing(Object.assign(new Error("a"), { message: 5 }))],
        ["stack", /^stack: it failed: a$/, () => throwing(Object.assign(new Error("a"), { stack: 5 }))],
        ["unreadable", /: it failed: what it threw cannot be read$/, () => throwing(unreadable)],
        ["stops", /^stops: it failed: its Effect was interrupted$/, () => Effect.interrupt],
        ["ring", /cannot be read: .*circular/, () => ({ call: [{ name: "t", arguments: circular }] })],
        ["big", /cannot be read: .*BigInt/, () => ({ text: "a", toolCalls: [{ name: "t", result: 10n }] })],
        ["getter", /^getter: its answer cannot be read: no text$/, () => thrower],
      ]
      for (const [name, message, answer] of cases) {
        const error = yield* Effect.flip(asks(FunctionAgent.make(name, answer)))
        assert.match(error.message, message)
      }
    }),
  )

  it.live("may leave a failing call of its model unawaited", () =>
    Effect.gen(function* () {
      const unhandled: Array<unknown> = []
      const keep = (error: unknown) => unhandled.push(error)
      process.on("unhandledRejection", keep)
      yield* Effect.addFinalizer(() => Effect.sync(() => process.off("unhandledRejection", keep)))
      const down = new LmError({ model: "m", reason: "rejected", attempts: 1, message: "m: no" })
      const hasty = FunctionAgent.make("hasty", async ({ text }, { lm }) => {
        void lm.ask(text)
        void lm.complete({ messages: [] })
        void lm.connect()
        return "4"
      })
      const { outcome } = yield* asks(hasty, withModel, () => Effect.fail(down))
      assert.strictEqual(outcome._tag, "Act")
      // The process reports rejections that nobody handles once its promises are done.
      yield* Effect.promise(() => new Promise((done) => setImmediate(done)))
      assert.deepStrictEqual(unhandled, [])
    }),
  )

  it.effect("is stopped after its time, with its signal, and tried again as often as it may be", () =>
    Effect.gen(function* () {
      const signals: Array<AbortSignal> = []
      const slow = FunctionAgent.make("slow", (_, { signal }) => {
        signals.push(signal)
        return new Promise<string>(() => {})
      })
      const fiber = yield* Effect.forkChild(Effect.flip(asks(slow, { timeout_s: 5, max_retries: 1 })))
      for (let at = 0; at < 40; at++) {
        yield* TestClock.adjust("500 millis")
      }
      const error = yield* Fiber.join(fiber)
      assert.match(error.message, /slow: it gave no answer within 5 s \(timeout_s\)/)
      assert.deepStrictEqual(
        signals.map(({ aborted }) => aborted),
        [true, true],
      )
    }),
  )

  it.effect("is interrupted with its run while its Effect waits", () =>
    Effect.gen(function* () {
      const begun = yield* Deferred.make<void>()
      const waits = FunctionAgent.make("waits", () => Effect.andThen(Deferred.succeed(begun, undefined), Effect.never))
      const fiber = yield* Effect.forkChild(asks(waits))
      yield* Deferred.await(begun)
      yield* Fiber.interrupt(fiber)
      const exit = yield* Fiber.await(fiber)
      assert.isTrue(Exit.hasInterrupts(exit))
    }),
  )

  it.effect("passes a model's error on, so that a spent budget stops the run", () =>
    Effect.gen(function* () {
      const spent = new LmError({ model: "m", reason: "budget", attempts: 0, message: "m: the budget is spent" })
      const asking = FunctionAgent.make("asking", ({ text }, { lm }) => lm.ask(text))
      const error = yield* Effect.flip(asks(asking, withModel, () => Effect.fail(spent)))
      assert.deepStrictEqual([error._tag, error.message], ["LmError", "m: the budget is spent"])
      const without = yield* Effect.flip(asks(asking))
      assert.match(without.message, /asking: the agent has no model; name one in lm_config/)
    }),
  )

  it.effect("resumes without a repeated call", () =>
    Effect.gen(function* () {
      const asked: Array<string> = []
      let isBroken = true
      const paid = FunctionAgent.make("paid", async ({ text }) => {
        if (isBroken && text.includes("Peru")) {
          throw new LmError({ model: "m", reason: "budget", attempts: 0, message: "m: the budget is spent" })
        }
        asked.push(text)
        return "Lima"
      })
      const kept = new Map<string, Uint8Array>()
      const stopped = yield* evaluated({ agent: paid, workers: 1 }, kept)
      assert.strictEqual(stopped.result._tag, "Failure")
      isBroken = false
      // How long a turn may take, and how often it is tried, decides no answer.
      const patient = { type: paid, timeout_s: 1200, max_retries: 1, concurrency: 2 }
      const resumed = yield* evaluated({ agent: patient, workers: 1 }, kept)
      assert.strictEqual(resumed.result._tag, "Success", JSON.stringify(resumed.result))
      assert.strictEqual(asked.filter((text) => text.includes("Japan")).length, 1)
      assert.strictEqual(table(resumed).length, 2)
    }),
  )

  it.effect("has a name of its own", () =>
    Effect.gen(function* () {
      const one = FunctionAgent.make("same", () => "1")
      const two = FunctionAgent.make("same", () => "2")
      const { result } = yield* evaluated({ agents: { one, two } })
      assert.match(JSON.stringify(result), /found two kinds of agents with the name \\"same\\"/)
    }),
  )
})
