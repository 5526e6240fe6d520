import { assert, describe, it } from "@effect/vitest"
import { Cause, Effect, Fiber, Redacted, Schema } from "effect"
import { TestClock } from "effect/testing"
import { type RunFiles, RunStoreError } from "../../../src/run/store/RunStore.ts"
import { CallContext, type LmService } from "../../../src/agents/lm/Lm.ts"
import * as LmConfig from "../../../src/agents/lm/LmConfig.ts"
import { LmError } from "../../../src/agents/lm/LmError.ts"
import { CallSink, logged } from "../../../src/agents/lm/middleware/logged.ts"
import * as Scripted from "../../../src/agents/lm/providers/scripted.ts"
import { CallFile, callFiles } from "../../../src/agents/lm/callFiles.ts"
import { memoryRun } from "../../run/store/disk.ts"

const request = LmConfig.request(
  LmConfig.make({ model: "m", apiKey: Redacted.value(Redacted.make("sk-secret-of-mine")) }),
  [{ role: "user", content: "?" }],
)

const at = (
  phase: CallContext["phase"],
  episode: number,
  step: number,
  purpose: CallContext["purpose"] = "action",
): CallContext => ({ phase, purpose, episode, step })

const ask = (lm: LmService, sink: CallSink, context: CallContext) =>
  logged(lm).complete(request).pipe(Effect.provideService(CallSink, sink), Effect.provideService(CallContext, context))

const filesOf = (run: RunFiles) =>
  Effect.gen(function* () {
    const found: Array<string> = []
    const walk = (path: string): Effect.Effect<void, RunStoreError> =>
      Effect.gen(function* () {
        if (path.endsWith(".json")) found.push(path)
        else for (const name of yield* run.list(path)) yield* walk(`${path}/${name}`)
      })
    yield* walk("llm_calls")
    return found.sort()
  })

const read = (run: RunFiles, path: string) =>
  Effect.flatMap(run.readText(path), Schema.decodeEffect(Schema.fromJsonString(CallFile)))

const train = { _tag: "train" } as const
const yes = Scripted.make(() => ({ content: "yes", attempts: 3 }))

describe("callFiles", () => {
  it.effect("has the keys of the original runtime, if it is asked to", () =>
    Effect.gen(function* () {
      const run = yield* memoryRun
      const sink = callFiles(run, "original")
      const usage = { inputTokens: 7, outputTokens: 3, reasoningTokens: 1 }
      yield* TestClock.setTime(Date.UTC(2026, 0, 31, 12, 0, 0, 250))
      yield* ask(
        Scripted.make(() => ({ content: "yes", usage })),
        sink,
        at(train, 1, 1),
      )
      const [file] = yield* filesOf(run)
      assert.deepStrictEqual(JSON.parse(yield* run.readText(file)), {
        timestamp: "20260131T120000250000Z",
        model: "m",
        system_prompt: "",
        user_prompt: "?",
        context: { mode: "train", episode_index: 1, step_index: 1 },
        output: "yes",
        timestamp_end: "20260131T120000250000Z",
        extra: {
          metrics: { duration: 0, input_tokens: 7, thinking_tokens: 1, output_tokens: 3, total_tokens: 10 },
        },
      })
      const error = new LmError({ model: "m", reason: "exhausted", attempts: 6, message: "m: gave up" })
      const failing = { complete: () => Effect.fail(error) }
      const place = at({ _tag: "validation", seenEpisodes: 50 }, 3, 2, "reflection")
      yield* Effect.ignore(ask(failing, sink, place))
      const other = (yield* filesOf(run)).find((path) => path.includes("val_50")) ?? ""
      assert.deepInclude(JSON.parse(yield* run.readText(other)), {
        context: { mode: "val", num_seen_episodes: 50, call_type: "reflection", episode_index: 3, step_index: 2 },
        output: "",
        extra: { error: "m: gave up" },
      })
    }).pipe(Effect.scoped),
  )

  it.effect("puts every call where it belongs, under a name that a second run of the step has, too", () =>
    Effect.gen(function* () {
      const run = yield* memoryRun
      const play = Effect.gen(function* () {
        const sink = callFiles(run)
        for (const context of [
          at(train, 1, 1),
          at(train, 1, 1),
          at(train, 1, 2),
          at(train, 12, 3, "reflection"),
          at({ _tag: "validation", seenEpisodes: 50 }, 3, 1),
          at({ _tag: "default" }, 0, 0),
        ]) {
          yield* ask(yes, sink, context)
        }
        return yield* filesOf(run)
      })
      const files = yield* play
      assert.deepStrictEqual(files, [
        "llm_calls/default/actions/action_episode_000000_step_0000_call_00.json",
        "llm_calls/train/actions/action_episode_000001_step_0001_call_00.json",
        "llm_calls/train/actions/action_episode_000001_step_0001_call_01.json",
        "llm_calls/train/actions/action_episode_000001_step_0002_call_00.json",
        "llm_calls/train/reflections/reflection_episode_000012_step_0003_call_00.json",
        "llm_calls/validation/val_50/actions/action_episode_000003_step_0001_call_00.json",
      ])
      assert.deepStrictEqual(yield* play, files)
    }).pipe(Effect.scoped),
  )

  it.effect("says what was asked, when and with what outcome, and no secret", () =>
    Effect.gen(function* () {
      const run = yield* memoryRun
      const slow = Scripted.make(() => Effect.delay(Effect.succeed({ content: "yes", attempts: 3 }), "1500 millis"))
      const fiber = yield* Effect.forkChild(ask(slow, callFiles(run), at(train, 1, 1)))
      yield* TestClock.adjust("2 seconds")
      const response = yield* Fiber.join(fiber)
      const [path] = yield* filesOf(run)
      assert.deepStrictEqual(yield* read(run, path), {
        timestamp: "1970-01-01T00:00:00.000000Z",
        timestamp_end: "1970-01-01T00:00:01.500000Z",
        model: "m",
        phase: "train",
        seen_episodes: null,
        purpose: "action",
        episode_index: 1,
        step_index: 1,
        call_index: 0,
        request,
        response,
        error: null,
        usage: { inputTokens: 1, outputTokens: 1, reasoningTokens: 0 },
        latency_ms: 1500,
        retries: 2,
      })
      assert.notInclude(yield* run.readText(path), "secret")
    }).pipe(Effect.scoped),
  )

  it.effect("is valid from the beginning of a call on, and when it failed", () =>
    Effect.gen(function* () {
      const run = yield* memoryRun
      const sink = callFiles(run)
      const hung = Scripted.make(() => Effect.never)
      const fiber = yield* Effect.forkChild(ask(hung, sink, at(train, 1, 1)), { startImmediately: true })
      while ((yield* filesOf(run)).length === 0) yield* Effect.yieldNow
      const [path] = yield* filesOf(run)
      const begun = yield* read(run, path)
      assert.deepStrictEqual(
        [begun.request, begun.response, begun.error, begun.timestamp_end, begun.latency_ms, begun.retries],
        [request, null, null, null, null, null],
      )
      yield* Fiber.interrupt(fiber)
      assert.strictEqual((yield* read(run, path)).error?.reason, "interrupted")

      const error = new LmError({ model: "m", reason: "exhausted", attempts: 6, message: "m: no answer after 6 tries" })
      yield* Effect.flip(
        ask(
          Scripted.make(() => Effect.fail(error)),
          sink,
          at(train, 2, 1),
        ),
      )
      const [, failed] = yield* filesOf(run)
      const file = yield* read(run, failed)
      assert.deepStrictEqual(
        [file.error, file.retries, file.response, file.usage],
        [{ reason: "exhausted", message: "m: no answer after 6 tries", attempts: 6 }, 5, null, null],
      )
    }).pipe(Effect.scoped),
  )

  it.effect("doesn't go on where a file can't be written", () =>
    Effect.gen(function* () {
      const run = yield* memoryRun
      const full = new RunStoreError({ path: "p", operation: "write", message: "p: no space left" })
      const sink = callFiles({ ...run, write: () => Effect.fail(full) })
      const cause = yield* Effect.sandbox(ask(yes, sink, at(train, 1, 1))).pipe(Effect.flip)
      assert.strictEqual(Cause.squash(cause), full)
    }).pipe(Effect.scoped),
  )
})
