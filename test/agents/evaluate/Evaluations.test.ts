import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Schema } from "effect"
import { TestClock } from "effect/testing"
import { budgeted, SpendingCounter } from "../../../src/agents/lm/middleware/budgeted.ts"
import { execute } from "../../../src/agents/evaluate/execute.ts"
import type { Contestant, PreparedEvaluation } from "../../../src/agents/evaluate/PreparedEvaluation.ts"
import { EvaluationResult } from "../../../src/agents/evaluate/result.ts"
import { CallContext } from "../../../src/agents/lm/Lm.ts"
import { LmError } from "../../../src/agents/lm/LmError.ts"
import { retrying } from "../../../src/agents/lm/middleware/retrying.ts"
import * as Scorer from "../../../src/agents/evaluate/Scorer.ts"
import { EpisodeRow, StepRow } from "../../../src/agents/evaluate/rows.ts"
import { type RunFiles, RunStore } from "../../../src/run/store/RunStore.ts"
import type { RunIdentity } from "../../../src/run/identifier.ts"
import { Recorder } from "../../../src/run/record/Recorder.ts"
import type { RunEvent } from "../../../src/run/record/RunEvent.ts"
import { toCamelCase } from "../../../src/base/config/Config.ts"
import { below, contestant, evaluated, linesOf, model, type Place, prepared, settings, words } from "./support.ts"

const ended = <A, E>(effect: Effect.Effect<A, E>) =>
  Effect.gen(function* () {
    const fiber = yield* Effect.forkChild(effect)
    yield* TestClock.adjust("1 minute")
    return yield* Fiber.join(fiber)
  })

/** Begins an evaluation that is interrupted at the moment when `file` is about to be written or removed. */
const evaluatedUntil = (who: ReadonlyArray<Contestant>, files: Map<string, Uint8Array>, file: string) =>
  Effect.gen(function* () {
    const store = RunStore.memory({ files }).layer
    const opening = Effect.map(RunStore, (whole) => ({
      ...whole,
      open: (identity: RunIdentity) =>
        Effect.map(whole.open(identity), (opened): RunFiles => {
          const at = (path: string) => {
            if (path === file) self?.interruptUnsafe()
          }
          return {
            ...opened,
            write: (path, contents, how) =>
              Effect.andThen(
                Effect.sync(() => at(path)),
                opened.write(path, contents, how),
              ),
            remove: (path) =>
              Effect.andThen(
                Effect.sync(() => path === "played.jsonl" && at(path)),
                opened.remove(path),
              ),
          }
        }),
    }))
    let self: Fiber.Fiber<unknown, unknown> | undefined
    const layers = Layer.merge(Layer.effect(RunStore, opening).pipe(Layer.provide(store)), Recorder.layer())
    const fiber = yield* Effect.forkChild(Effect.scoped(execute(prepared(who))).pipe(Effect.provide(layers)))
    self = fiber
    return yield* Fiber.await(fiber)
  })

const run = (who: ReadonlyArray<Contestant>, more: Partial<PreparedEvaluation> = {}, place: Place = {}) =>
  ended(evaluated(prepared(who, more), place))

/** Returns the parts of an evaluation's files that must be equal however often it was stopped. */
const lasting = (files: ReadonlyMap<string, string>) => {
  const timeless = (text: string | undefined) =>
    linesOf(text).map(({ duration_ms: _1, timestamp: _2, step_start: _3, step_end: _4, ...rest }) => rest)
  return {
    names: [...files.keys()].filter((name) => name !== "run.log").sort(),
    episodes: timeless(files.get("episodes.jsonl")),
    steps: timeless(files.get("steps.jsonl")),
    scores: [0, 1].map((place) => timeless(files.get(`scores/val/${place}_seen_episodes_scores.jsonl`))),
    rollouts: [0, 1].map((place) => files.get(`rollouts/val/${place}_seen_episodes_rollouts.jsonl`)),
    returns: files.get("return.json"),
  }
}

const twoAgents = (first = model(), second = model({ knows: ["one", "two"] })) =>
  Effect.all([contestant("knows", first), contestant("some", second)])

describe("an evaluation as a run", () => {
  it.effect("leaves tables, scores, transcripts and a report, which fit their Schemas", () =>
    Effect.gen(function* () {
      const who = yield* twoAgents(model({ breaks: ["six"] }))
      const { result, files } = yield* run(who)
      assert.deepStrictEqual([...files.keys()].sort(), [
        "config.json",
        "config.yaml",
        "description.txt",
        "episodes.jsonl",
        "metrics.json",
        "return.json",
        "rollouts/val/0_seen_episodes_rollouts.jsonl",
        "rollouts/val/1_seen_episodes_rollouts.jsonl",
        "scores/val/0_seen_episodes_scores.jsonl",
        "scores/val/1_seen_episodes_scores.jsonl",
        "steps.jsonl",
        "table.csv",
      ])
      const episodes = linesOf(files.get("episodes.jsonl")).map((line) => Schema.decodeUnknownSync(EpisodeRow)(line))
      assert.deepStrictEqual(
        episodes.map(({ agent, env_id, scores, error }) => [agent, env_id, scores["exact"], error?.message]),
        [
          ...words.map((word, at) => [
            "knows",
            `word-${at}`,
            word === "six" ? undefined : 1,
            word === "six" ? "six breaks it" : undefined,
          ]),
          ...words.map((_, at) => ["some", `word-${at}`, at < 2 ? 1 : 0, undefined]),
        ],
      )
      // Two tries of the four words that the second one doesn't know.
      const steps = linesOf(files.get("steps.jsonl")).map((line) => Schema.decodeUnknownSync(StepRow)(line))
      assert.deepStrictEqual([steps.length, result.steps, result.episodes, result.failed], [15, 15, 12, 1])
      const metrics = Schema.decodeUnknownSync(EvaluationResult)(
        toCamelCase(JSON.parse(files.get("metrics.json") ?? "")),
      )
      assert.deepStrictEqual(metrics, result)
      assert.deepInclude(result.validation, { step: 0, episodes: 5, meanReturn: 1 })
      const [exact] = result.report.comparisons
      assert.deepInclude(exact, { left: "knows", right: "some", scorer: "exact", tasks: 5, worse: 3, better: 0 })
      assert.strictEqual((files.get("table.csv") ?? "").trim().split("\n").length, 13)
      // Each word is a token; a million cost 1 in prompts and 10 in answers.
      const [first] = episodes
      assert.closeTo(first.cost ?? 0, (first.input_tokens + 10 * first.output_tokens) / 1e6, 1e-12)
    }),
  )

  it.effect("is the same at any concurrency", () =>
    Effect.gen(function* () {
      const who = yield* twoAgents()
      const alone = yield* run(who, { settings: { ...settings, workers: 1, repeats: 2 } })
      const many = yield* run(who, { settings: { ...settings, workers: 12, repeats: 2 } })
      assert.strictEqual(many.result.digest, alone.result.digest)
      assert.deepStrictEqual(lasting(many.files), lasting(alone.files))
    }),
  )

  it.effect("is the same, apart from the retries in its tables, with a faulty server", () =>
    Effect.gen(function* () {
      const said = model()
      const complete: typeof said.lm.complete = (request) =>
        Effect.map(said.lm.complete(request), (completion) => ({ ...completion, attempts: 3 }))
      const one = yield* run([yield* contestant("knows", said)])
      const other = yield* run([yield* contestant("knows", { lm: { complete } })])
      assert.strictEqual(linesOf(other.files.get("episodes.jsonl"))[0]["retries"], 2)
      assert.strictEqual(other.result.digest, one.result.digest)
    }),
  )

  it.effect(
    "goes on wherever it was interrupted: nobody is asked again what was answered, and all is as uninterrupted",
    () =>
      Effect.gen(function* () {
        const whole = yield* run(yield* twoAgents())
        for (const millis of [1, 6, 8, 12, 17, 30]) {
          const [first, second] = [model(), model({ knows: ["one", "two"] })]
          const who = yield* twoAgents(first, second)
          const files = new Map<string, Uint8Array>()
          const fiber = yield* Effect.forkChild(evaluated(prepared(who), { files }))
          yield* TestClock.adjust(millis)
          yield* Fiber.interrupt(fiber)
          const resume = whole.result.runDir
          const journal = linesOf(new TextDecoder().decode(files.get(`${resume}/played.jsonl`)))
          assert.isAbove(journal.length, 0)
          const answered = journal.slice(1).length
          const before = first.asked.length + second.asked.length
          const again = yield* run(who, {}, { files, resume })
          assert.deepStrictEqual(lasting(again.files), lasting(whole.files), `after ${millis} ms`)
          assert.strictEqual(again.result.digest, whole.result.digest)
          // Each episode that was not over is played from its beginning: 6 calls by the first, 10 by the second in all.
          const cost = (line: Record<string, unknown>): number => Number(Object(line["row"]).calls)
          const kept = journal.slice(1).reduce((sum, line) => sum + cost(line), 0)
          assert.strictEqual(first.asked.length + second.asked.length - before, 16 - kept, `${answered} were kept`)
        }
      }),
  )

  it.effect("reports its progress when it is interrupted, even within an agent's episodes", () =>
    Effect.gen(function* () {
      const one = { ...settings, workers: 1 }
      // A word takes 10 ms, the next ones 9, 8 and so on: 45 for all, and the second agent's first one 10 more.
      for (const [millis, told] of [
        [25, 2],
        [60, 7],
      ] as const) {
        const events: Array<RunEvent> = []
        const emit = (some: ReadonlyArray<RunEvent>) => Effect.sync(() => void events.push(...some))
        const listening = Recorder.layer(() => Effect.succeed({ emit, flush: Effect.void }))
        const what = prepared(yield* twoAgents(), { settings: one })
        const fiber = yield* Effect.forkChild(
          Effect.scoped(execute(what)).pipe(Effect.provide(Layer.merge(RunStore.memory().layer, listening))),
        )
        yield* TestClock.adjust(millis)
        yield* Fiber.interrupt(fiber)
        assert.deepInclude(events.at(-1), { _tag: "RunEnded", reason: "interrupted", step: told, episodes: told })
      }
    }),
  )

  it.effect("keeps finished episodes behind a slow one, which were not emitted yet", () =>
    Effect.gen(function* () {
      const said = model()
      const who = [yield* contestant("knows", said)]
      const files = new Map<string, Uint8Array>()
      const fiber = yield* Effect.forkChild(
        evaluated(prepared(who, { settings: { ...settings, workers: 6 } }), { files }),
      )
      // The first word takes the longest: 10 ms.
      yield* TestClock.adjust(9)
      yield* Fiber.interrupt(fiber)
      const directory = [...files.keys()][0].replace(/\/[^/]+$/, "")
      assert.isFalse(files.has(`${directory}/episodes.jsonl`))
      const before = said.asked.length
      yield* run(who, { settings: { ...settings, workers: 6 } }, { files, resume: directory })
      assert.deepStrictEqual(said.asked.slice(before), ["Q: word-0: say one"])
    }),
  )

  it.effect("cuts off an incomplete line after a kill, and plays that episode again", () =>
    Effect.gen(function* () {
      const said = model()
      const who = [yield* contestant("knows", said)]
      const files = new Map<string, Uint8Array>()
      const fiber = yield* Effect.forkChild(
        evaluated(prepared(who, { settings: { ...settings, workers: 1 } }), { files }),
      )
      yield* TestClock.adjust(28)
      yield* Fiber.interrupt(fiber)
      const directory = [...files.keys()][0].replace(/\/[^/]+$/, "")
      const journal = files.get(`${directory}/played.jsonl`) ?? new Uint8Array(0)
      files.set(`${directory}/played.jsonl`, journal.slice(0, -20))
      const before = said.asked.length
      // Evaluate once more, so that something is written behind the cut.
      const one = { ...settings, workers: 1 }
      const second = yield* Effect.forkChild(evaluated(prepared(who, { settings: one }), { files, resume: directory }))
      yield* TestClock.adjust(9)
      yield* Fiber.interrupt(second)
      const { result } = yield* run(who, { settings: one }, { files, resume: directory })
      assert.deepInclude(result, { episodes: 6, failed: 0 })
      // Three were over after 10, 9 and 8 ms; of these the last is lost, and the fourth was not over.
      assert.deepStrictEqual(
        said.asked.slice(before).map((text) => text.slice(3, 9)),
        ["word-2", "word-3", "word-3", "word-4", "word-5"],
      )
    }),
  )

  it.effect("refuses to resume with other settings", () =>
    Effect.gen(function* () {
      const who = [yield* contestant("knows", model())]
      const files = new Map<string, Uint8Array>()
      const fiber = yield* Effect.forkChild(evaluated(prepared(who), { files }))
      yield* TestClock.adjust(7)
      yield* Fiber.interrupt(fiber)
      const directory = [...files.keys()][0].replace(/\/[^/]+$/, "")
      const kept = files.get(`${directory}/played.jsonl`)
      const error = yield* Effect.flip(run(who, { identity: { seed: 4 } }, { files, resume: directory }))
      assert.strictEqual(
        error.message,
        "test.yaml: seed: the evaluation was started with 3, found 4; start a new evaluation without --resume",
      )
      assert.deepStrictEqual(files.get(`${directory}/played.jsonl`), kept)
    }),
  )

  it.effect("distinguishes a judge's calls from the agents', and those of different episodes", () =>
    Effect.gen(function* () {
      const asked: Array<string> = []
      const judge = Scorer.make("judge", () =>
        Effect.map(CallContext, ({ phase, purpose, episode }) => {
          asked.push(`${phase._tag === "validation" ? phase.seenEpisodes : phase._tag} ${purpose} ${episode}`)
          return 1
        }),
      )
      yield* run(yield* twoAgents(), { scorers: [judge] })
      const expected = [0, 1].flatMap((place) => words.map((_, at) => `${place} judgement ${at + 1}`))
      assert.sameMembers(asked, expected)
    }),
  )

  it.effect("gives its result when a finished one is resumed, and refuses other settings and other folders", () =>
    Effect.gen(function* () {
      const lm = model()
      const who = [yield* contestant("knows", lm)]
      const files = new Map<string, Uint8Array>()
      const { result } = yield* run(who, {}, { files })
      files.set("training/config.yaml", new Uint8Array())
      files.set("training/scores/train/scores.jsonl", new Uint8Array(5))
      const [before, asked] = [new Map(files), lm.asked.length]
      const finished = { files, resume: result.runDir }
      assert.deepStrictEqual((yield* run(who, {}, finished)).result, result)
      const fewerWorkers = { effective: { ...settings, workers: 1 } }
      assert.deepStrictEqual((yield* run(who, fewerWorkers, finished)).result, result)
      const otherSeed = yield* Effect.flip(run(who, { effective: { ...settings, seed: 4 } }, finished))
      assert.strictEqual(
        otherSeed.message,
        `test.yaml: seed: ${result.runDir} was finished with 3, found 4; start a new evaluation without --resume`,
      )
      const training = yield* Effect.flip(run(who, {}, { files, resume: "training" }))
      assert.strictEqual(
        training.message,
        "training: expected an evaluation that was stopped, found nothing to resume; start a new evaluation without --resume",
      )
      assert.deepStrictEqual(files, before)
      assert.strictEqual(lm.asked.length, asked)
    }),
  )

  it.effect("is finished when it is interrupted after its last episode, and resumes as if it had not been", () =>
    Effect.gen(function* () {
      const whole = yield* run([yield* contestant("knows", model())])
      const { runDir } = whole.result
      const after: Array<string> = []
      for (const file of ["table.csv", "metrics.json", "return.json", "played.jsonl"]) {
        const files = new Map<string, Uint8Array>()
        const who = [yield* contestant("knows", model())]
        const fiber = yield* Effect.forkChild(Effect.exit(evaluatedUntil(who, files, file)))
        yield* TestClock.adjust("1 minute")
        yield* Fiber.join(fiber)
        after.push(
          [...below(files, runDir).keys()].filter((one) => one === "return.json" || one === "played.jsonl").join(),
        )
        const again = yield* run(who, {}, { files, resume: runDir })
        assert.strictEqual(again.result.digest, whole.result.digest, file)
      }
      assert.deepStrictEqual(
        after,
        Array.from(after, () => "return.json"),
      )
    }),
  )

  it.effect("stops when the budget is spent, keeps the episodes, and continues the counts", () =>
    Effect.gen(function* () {
      const said = model()
      const files = new Map<string, Uint8Array>()
      const within = (calls: number, place: Place) =>
        Effect.gen(function* () {
          const spent = new SpendingCounter()
          const lm = budgeted({ calls, tokens: null, money: null }, [], spent)(said.lm)
          const who = [yield* contestant("knows", { lm })]
          return yield* run(who, { settings: { ...settings, workers: 1 }, spent }, place)
        })
      const error = yield* Effect.flip(within(3, { files }))
      assert.include(error.message, "the budget of 3 calls is spent")
      const resume = [...files.keys()][0].replace(/\/[^/]+$/, "")
      assert.include(
        (yield* Effect.flip(within(5, { files, resume }))).message,
        "the budget of 5 calls is spent (5 calls",
      )
      assert.strictEqual(said.asked.length, 5)
      const { result } = yield* within(6, { files, resume })
      assert.deepStrictEqual([said.asked.length, result.episodes, result.failed], [6, 6, 0])
    }),
  )

  it.effect("reports that all episodes fail", () =>
    Effect.gen(function* () {
      const { result } = yield* run([yield* contestant("none", model({ breaks: words }))])
      assert.deepStrictEqual([result.validation, result.failed, result.report.agents[0].scores], [null, 6, []])
    }),
  )

  it.effect("reports the first retry of a call, and no other", () =>
    Effect.gen(function* () {
      const patient = retrying({ maxRetries: 2, startingDelay: 1, backoffFactor: 2, maxDelay: 9, jitter: 0 })
      const unavailable = new LmError({ model: "m", reason: "unavailable", attempts: 1, message: "m: ECONNREFUSED" })
      const who = yield* contestant("waits", { lm: patient({ complete: () => Effect.fail(unavailable) }) })
      const events: Array<RunEvent> = []
      const emit = (some: ReadonlyArray<RunEvent>) => Effect.sync(() => void events.push(...some))
      const listening = Recorder.layer(() => Effect.succeed({ emit, flush: Effect.void }))
      const layers = Layer.merge(RunStore.memory().layer, listening)
      const fiber = yield* Effect.forkChild(Effect.scoped(execute(prepared([who]))).pipe(Effect.provide(layers)))
      // Digests take a moment of their own, so waits may begin only after it.
      while (fiber.pollUnsafe() === undefined) yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(
        events.flatMap((event) => (event._tag === "Warning" ? [event.message] : [])),
        [
          "m: ECONNREFUSED; retrying in 1.0 s, up to 2 times; later retries are not reported",
          "waits: all 6 episodes failed",
        ],
      )
    }),
  )

  it.effect("is compared with another's rows", () =>
    Effect.gen(function* () {
      const before = yield* run([yield* contestant("one", model({ knows: ["one"] }))])
      const other = linesOf(before.files.get("episodes.jsonl")).map((line) =>
        Schema.decodeUnknownSync(EpisodeRow)(line),
      )
      const { result } = yield* run([yield* contestant("one", model())], { other })
      assert.deepInclude(result.report.comparisons[0], { left: "one (before)", right: "one", better: 5, worse: 0 })
    }),
  )
})
