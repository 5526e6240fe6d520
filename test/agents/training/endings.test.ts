import { assert, describe, it } from "@effect/vitest"
import { Clock, Deferred, Effect, Exit, Fiber, Layer } from "effect"
import { TestClock } from "effect/testing"
import * as MemorylessAgent from "../../../src/agents/agent/MemorylessAgent.ts"
import * as TaskSet from "../../../src/agents/task/TaskSet.ts"
import * as TextEnv from "../../../src/agents/task/TextEnv.ts"
import { Lm } from "../../../src/agents/lm/Lm.ts"
import { LmError } from "../../../src/agents/lm/LmError.ts"
import { reader } from "../../../src/agents/lm/providers/reader.ts"
import { retrying } from "../../../src/agents/lm/middleware/retrying.ts"
import * as Scripted from "../../../src/agents/lm/providers/scripted.ts"
import { below, folderOf, history, type Input, keep, lasting, naming, runIn, tasks, withoutTimes } from "./support.ts"

const input: Input = {
  agent: history,
  train: tasks(20),
  validation: tasks(4),
  seed: 3,
  runtime: { validationFreq: 5, runValidationAtStart: true, checkpointEveryEpisodes: 3 },
  output: { saveMemoryEvery: 7, saveRollouts: true },
}

/** Answers so many times, then never again. */
const answering = (times: number, reached: Deferred.Deferred<void>) => {
  let asked = 0
  return Scripted.layer((request) =>
    asked++ < times ? reader(request) : Effect.andThen(Deferred.succeed(reached, undefined), Effect.never),
  )
}

const down = new LmError({ model: "scripted", reason: "exhausted", attempts: 6, message: "no answer in 6 tries" })

/** Over after one answer. */
const oneTry = (id: string) =>
  TextEnv.make({
    id,
    type: "one try",
    begin: () => ({ state: 0, observation: "What?" }),
    step: () => ({ state: 0, observation: null, feedback: { score: 1, target: null, message: "" }, terminated: true }),
  })

const failing = (times: number) => {
  let asked = 0
  return Scripted.layer((request) => (asked++ < times ? reader(request) : Effect.fail(down)))
}

describe("a run that was stopped", () => {
  // In the validation at the start, in an episode, in a validation in between, right at the end: each once quick, too.
  const quickMoments = new Set([2, 9, 37])
  for (const times of [2, 5, 6, 9, 14, 22, 30, 37])
    it.effect(
      `after ${times} answers goes on as if it had not been`,
      () =>
        Effect.gen(function* () {
          const whole = yield* keep(input)
          const reached = yield* Deferred.make<void>()
          const first = runIn({ model: answering(times, reached) }, input)
          const fiber = yield* Effect.forkChild(first.effect)
          yield* Deferred.await(reached)
          yield* Fiber.interrupt(fiber)
          assert.strictEqual(first.events.at(-1)?._tag, "RunEnded")
          const folder = folderOf(first.files)
          const between = below(first.files, `${folder}/`)
          // Nothing of what was under way is there, so whoever looks sees whole episodes.
          const train = withoutTimes(between.get("scores/train/scores.jsonl"))
          const wholeTrain = withoutTimes(whole.files.get("scores/train/scores.jsonl"))
          assert.deepEqual(train, wholeTrain.slice(0, train.length))
          assert.isUndefined(between.get("return.json"))
          const second = yield* keep(input, { files: first.files, resume: folder })
          assert.deepEqual(lasting(second.files), lasting(whole.files))
          assert.strictEqual(second.result.digest, whole.result.digest)
        }),
      { tags: quickMoments.has(times) ? [] : "slow" },
    )

  for (const times of [8, 14, 24, 33])
    it.effect(
      `by a model that failed in training after ${times} answers, too`,
      () =>
        Effect.gen(function* () {
          const whole = yield* keep(input)
          const first = runIn({ model: failing(times) }, input)
          const error = yield* Effect.flip(first.effect)
          assert.strictEqual(error, down)
          const end = first.events.at(-1)
          assert.strictEqual(end?._tag === "RunEnded" ? end.reason : undefined, "failed")
          const folder = folderOf(first.files)
          const second = yield* keep(input, { files: first.files, resume: folder })
          assert.deepEqual(lasting(second.files), lasting(whole.files))
        }).pipe(Effect.scoped),
      { tags: times === 14 ? [] : "slow" },
    )

  it.effect("by a budget is told as stopped, with what it spent", () =>
    Effect.gen(function* () {
      const spent = new LmError({
        model: "m",
        reason: "budget",
        attempts: 0,
        message: "m: the budget of 5 calls is spent",
      })
      let asked = 0
      const model = Scripted.layer((request) => (asked++ < 5 ? reader(request) : Effect.fail(spent)))
      const { effect, events } = runIn({ model }, input)
      assert.strictEqual(yield* Effect.flip(effect), spent)
      const end = events.at(-1)
      assert(end?._tag === "RunEnded")
      assert.deepStrictEqual([end.reason, end.message], ["stopped", spent.message])
    }),
  )

  it.effect("goes on with more tasks, and plays only these", () =>
    Effect.gen(function* () {
      const few = runIn({}, { ...input, runtime: { ...input.runtime, maxEnvsToVisit: 10 } })
      const first = yield* few.effect
      assert.strictEqual(first.trainEpisodes, 10)
      const more = yield* keep(input, { files: few.files, resume: folderOf(few.files) })
      const played = more.events.flatMap((event) => (event._tag === "EpisodeEnded" ? [event.step] : []))
      assert.deepEqual(
        played,
        Array.from({ length: 10 }, (_, index) => index + 11),
      )
      const whole = yield* keep(input)
      assert.strictEqual(more.result.meanScore, whole.result.meanScore)
    }),
  )

  it.effect.each([
    ["another seed", { seed: 4 }, "seed"],
    ["other tasks", { train: tasks(19) }, "train_dataset"],
    ["another limit", { runtime: { ...input.runtime, maxStepsPerEpisode: 9 } }, "max_steps_per_episode"],
  ] as const)("does not go on with %s", ([, other, key]) =>
    Effect.gen(function* () {
      const reached = yield* Deferred.make<void>()
      const first = runIn({ model: answering(14, reached) }, input)
      const fiber = yield* Effect.forkChild(first.effect)
      yield* Deferred.await(reached)
      yield* Fiber.interrupt(fiber)
      const folder = folderOf(first.files)
      const before = new Map(first.files)
      const error = yield* Effect.flip(runIn({ files: first.files, resume: folder }, { ...input, ...other }).effect)
      assert.strictEqual(error._tag, "CheckpointError")
      assert.include(error.message, `saved with ${key}`)
      assert.deepEqual(first.files, before)
    }),
  )

  it.effect("does not go on when its memory is damaged or gone", () =>
    Effect.gen(function* () {
      const done = runIn({}, { ...input, runtime: { ...input.runtime, maxEnvsToVisit: 10, checkpointKeepLast: 1 } })
      yield* done.effect
      const folder = folderOf(done.files)
      const path = `${folder}/checkpoints/ep_000010/memory_10.jsonl`
      const memory = done.files.get(path) ?? new Uint8Array(0)
      for (const damaged of [undefined, memory.subarray(0, memory.length - 3)]) {
        if (damaged === undefined) done.files.delete(path)
        else done.files.set(path, damaged)
        const error = yield* Effect.flip(runIn({ files: done.files, resume: folder }, input).effect)
        assert.strictEqual(error._tag, "CheckpointError")
        assert.include(error.message, "memory_10.jsonl")
      }
    }),
  )
})

describe("validation", () => {
  it.effect("keeps the others when an episode fails, and says which did", () =>
    Effect.gen(function* () {
      const wrong = { ...naming("broken", 1), begin: () => Effect.die(new Error("must not be seen")) }
      const broken = TaskSet.of("mixed", [naming("a", 0), wrong, naming("c", 2)])
      const set = { ...broken, at: (index: number) => (index === 1 ? tasks(0).at(0) : broken.at(index)) }
      const { result, files } = yield* keep({
        agent: MemorylessAgent.make({ model: "scripted:reader" }),
        validation: set,
        runtime: { maxEnvsToVisit: 0, runValidationAtStart: true },
      })
      assert.strictEqual(result.failedValidationEpisodes, 1)
      assert.strictEqual(result.validation?.episodes, 2)
      const lines = withoutTimes(files.get("scores/val/0_seen_episodes_scores.jsonl")).map((line) => {
        assert(typeof line === "object" && line !== null)
        return { ...line }
      })
      assert.deepEqual(
        lines.map((line) => Reflect.get(line, "episode_index")),
        [1, 1, 2, 3, 3],
      )
      assert.include(Reflect.get(lines[2], "error"), "there is no task 0")
      assert.isNull(Reflect.get(lines[2], "score"))
      assert.isFalse([...files.keys()].some((path) => path.startsWith("scores/train") || path.startsWith("memories")))
    }),
  )

  it.effect("with a hundred workers takes a hundredth of the time, and leaves the same bytes", () =>
    Effect.gen(function* () {
      const run = (workers: number) =>
        Effect.gen(function* () {
          let open = 0
          let most = 0
          const asked: Array<number> = []
          const model = Scripted.layer((request) =>
            Effect.gen(function* () {
              most = Math.max(most, ++open)
              asked.push(yield* Clock.currentTimeMillis)
              // Later ones are quicker, so they come back the other way round.
              yield* Effect.sleep(`${200 - (request.messages.at(-1)?.content.length ?? 0)} millis`)
              open--
              asked.push(yield* Clock.currentTimeMillis)
              return reader(request)
            }),
          )
          const { effect, files } = runIn(
            { model },
            {
              agent: history,
              validation: tasks(100, 100),
              runtime: { runValidationAtStart: true, validationNumWorkers: workers },
            },
          )
          const fiber = yield* Effect.forkChild(effect)
          while (fiber.pollUnsafe() === undefined) yield* TestClock.adjust("20 millis")
          yield* Fiber.join(fiber)
          return {
            millis: Math.max(...asked) - Math.min(...asked),
            most,
            lines: withoutTimes(below(files, `${folderOf(files)}/`).get("scores/val/0_seen_episodes_scores.jsonl")),
          }
        })
      const one = yield* run(1)
      const hundred = yield* run(100)
      assert.strictEqual(one.most, 1)
      assert.strictEqual(hundred.most, 100)
      assert.isAbove(one.millis / hundred.millis, 80)
      assert.deepEqual(hundred.lines, one.lines)
    }),
  )

  it.effect("ends the run where no other episode could do better", () =>
    Effect.gen(function* () {
      const wrongKey = new LmError({ model: "m", reason: "unauthorised", attempts: 1, message: "m: the key is wrong" })
      let asked = 0
      const model = Scripted.layer(() => {
        asked++
        return Effect.fail(wrongKey)
      })
      const exit = yield* Effect.exit(
        runIn(
          { model },
          { agent: history, validation: tasks(50), runtime: { runValidationAtStart: true, validationNumWorkers: 1 } },
        ).effect,
      )
      assert.isTrue(Exit.isFailure(exit))
      assert.strictEqual(asked, 1)
    }),
  )

  it.effect("ends the run where the model answers none of the first episodes, and goes on when it does", () =>
    Effect.gen(function* () {
      const playing: Input = { ...input, runtime: { ...input.runtime, validationNumWorkers: 2 }, validation: tasks(50) }
      let asked = 0
      const model = Scripted.layer(() => {
        asked++
        return Effect.fail(down)
      })
      const first = runIn({ model }, playing)
      assert.strictEqual(yield* Effect.flip(first.effect), down)
      // Two more may have begun.
      assert.isAtMost(asked, 5)
      assert.isTrue(first.events.some(({ _tag }) => _tag === "CheckpointSaved"))
      const second = yield* keep(playing, { files: first.files, resume: folderOf(first.files) })
      assert.deepEqual(lasting(second.files), lasting((yield* keep(playing)).files))
    }),
  )

  it.effect("goes on where the model answers one of the first", () =>
    Effect.gen(function* () {
      let asked = 0
      const model = Scripted.layer((request) => (asked++ === 1 ? reader(request) : Effect.fail(down)))
      const { result } = yield* keep(
        {
          agent: MemorylessAgent.make({ model: "scripted:reader" }),
          validation: TaskSet.of(
            "one try",
            Array.from({ length: 9 }, (_, index) => oneTry(`${index}`)),
          ),
          runtime: { runValidationAtStart: true, validationNumWorkers: 1 },
        },
        { model },
      )
      assert.deepStrictEqual([asked, result.failedValidationEpisodes, result.validation?.episodes], [9, 8, 1])
    }),
  )

  it.effect("says at the first wait why nothing happens, once", () =>
    Effect.gen(function* () {
      const patient = retrying({ maxRetries: 2, startingDelay: 1, backoffFactor: 2, maxDelay: 9, jitter: 0 })
      const unavailable = new LmError({
        model: "m",
        reason: "unavailable",
        attempts: 1,
        message: "scripted:reader: ECONNREFUSED",
      })
      const model = Layer.effect(Lm, Effect.succeed(patient({ complete: () => Effect.fail(unavailable) })))
      const { effect, events } = runIn({ model }, { ...input, runtime: {} })
      const fiber = yield* Effect.forkChild(Effect.flip(effect))
      // Digests take a moment of their own, so waits may begin only after it.
      while (fiber.pollUnsafe() === undefined) yield* TestClock.adjust("1 second")
      assert.strictEqual(
        (yield* Fiber.join(fiber)).message,
        "scripted:reader: no answer after 3 attempts; last failure: ECONNREFUSED",
      )
      assert.deepStrictEqual(
        events.flatMap((event) => (event._tag === "Warning" ? [event.message] : [])),
        ["scripted:reader: ECONNREFUSED; retrying in 1.0 s, up to 2 times; later retries are not reported"],
      )
    }),
  )

  it.effect("leaves the memory as it was, byte for byte", () =>
    Effect.gen(function* () {
      const { events, files } = yield* keep({
        ...input,
        runtime: { ...input.runtime, validationFreq: 1, checkpointEveryEpisodes: 1 },
      })
      const without = yield* keep({ ...input, validation: null, runtime: { checkpointEveryEpisodes: 1 } })
      assert.strictEqual(events.filter(({ _tag }) => _tag === "ValidationEnded").length, 21)
      const memory = `checkpoints/ep_000020/memory_20.jsonl`
      assert.strictEqual(files.get(memory), without.files.get(memory))
    }),
  )
})
