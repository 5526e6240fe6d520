import { execFile } from "node:child_process"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import type { TestOptions } from "vitest"
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, FileSystem, Logger, type Path } from "effect"
import { canonical } from "../../../../src/base/text/canonical.ts"
import { cached } from "../../../../src/agents/lm/middleware/cached.ts"
import { CallContext } from "../../../../src/agents/lm/Lm.ts"
import { LmError } from "../../../../src/agents/lm/LmError.ts"
import { disk, temporaryDirectory } from "../../../run/store/disk.ts"
import { answering, completion, failure, request } from "../support.ts"

const at = (episode: number, step = 1): CallContext => ({
  phase: { _tag: "train" },
  purpose: "action",
  episode,
  step,
})
const within = (context: CallContext) => Effect.provideService(CallContext, context)

const test = (
  title: string,
  body: (directory: string) => Effect.Effect<void, unknown, FileSystem.FileSystem | Path.Path>,
  options: TestOptions = {},
) => it.effect(title, () => Effect.flatMap(temporaryDirectory, body).pipe(Effect.scoped, Effect.provide(disk)), options)

const filesIn = (directory: string) =>
  Effect.gen(function* () {
    const fs = yield* FileSystem.FileSystem
    const names = yield* fs.readDirectory(directory, { recursive: true })
    return names.filter((name) => name.includes(".")).map((name) => `${directory}/${name}`)
  })

/** A model that never gives the same answer twice. */
const chatty = () => answering((nth) => Effect.succeed({ ...completion(`answer ${nth}`, 7), attempts: 3 }))
/** A model that must not be called. */
const nobody = answering(() => Effect.die(new Error("asked"))).lm

const seeded = request("?", { seed: 1, temperature: 1 })
const greedy = request("?", { temperature: 0 })
const sampled = request("?", { temperature: 1 })

describe("cached", () => {
  test("records that a model declined, or that a prompt is too long, but no failure that may pass", (directory) =>
    Effect.gen(function* () {
      const usage = { inputTokens: 5, outputTokens: 2, reasoningTokens: 0 }
      const kinds = [
        { reason: "refused", usage },
        { reason: "rejected", promptTooLong: true },
        { reason: "exhausted" },
      ] as const
      for (const [at, more] of kinds.entries()) {
        const error = new LmError({ model: "m", attempts: 1, message: "m: no", ...more })
        const { lm, asked } = answering(() => Effect.fail(error))
        const record = yield* cached({ mode: "record", directory })
        const question = request(`question ${at}`, { seed: 1 })
        assert.deepStrictEqual(yield* Effect.flip(record(lm).complete(question)), error)
        const replay = yield* cached({ mode: "replay", directory })
        const repeated = yield* Effect.flip(replay(nobody).complete(question))
        const expected = more.reason === "exhausted" ? "cache" : more.reason
        assert.strictEqual(repeated.reason, expected)
        if (expected !== "cache") assert.deepStrictEqual({ ...repeated }, { ...error })
        yield* Effect.flip(record(lm).complete(question))
        assert.strictEqual(asked(), expected === "cache" ? 2 : 1)
      }
    }))

  test("calls the model once and answers from the files afterwards, with usage and attempts, in any process", (directory) =>
    Effect.gen(function* () {
      const { lm, asked } = chatty()
      const record = yield* cached({ mode: "record", directory })
      for (const each of [seeded, greedy]) {
        const first = yield* record(lm).complete(each)
        assert.deepStrictEqual(yield* Effect.provideService(record(lm).complete(each), CallContext, at(9)), first)
        const replay = yield* cached({ mode: "replay", directory })
        assert.deepStrictEqual(yield* replay(nobody).complete(each), first)
        assert.deepStrictEqual([first.attempts, first.usage.inputTokens], [3, 7])
      }
      assert.strictEqual(asked(), 2)
      assert.deepStrictEqual(
        (yield* filesIn(directory)).filter((file) => !file.endsWith(".json")),
        [],
      )
    }))

  test("has no answer for another seed, even at temperature 0", (directory) =>
    Effect.gen(function* () {
      yield* (yield* cached({ mode: "record", directory }))(chatty().lm).complete({ ...greedy, seed: 1 })
      const replay = (yield* cached({ mode: "replay", directory }))(nobody)
      assert.strictEqual((yield* replay.complete({ ...greedy, seed: 1 })).content, "answer 0")
      assert.strictEqual((yield* Effect.flip(replay.complete({ ...greedy, seed: 2 }))).reason, "cache")
    }))

  test("distinguishes calls whose answers are sampled, and replays each", (directory) =>
    Effect.gen(function* () {
      const record = (yield* cached({ mode: "record", directory }))(chatty().lm)
      const replay = (yield* cached({ mode: "replay", directory }))(nobody)
      const run = (lm: typeof replay) =>
        Effect.gen(function* () {
          const said: Array<string> = []
          for (const context of [at(1), at(1, 2), at(2)]) {
            // A turn's context is one object.
            said.push((yield* lm.complete(sampled).pipe(within(context))).content)
            said.push((yield* lm.complete(sampled).pipe(within(context))).content)
          }
          return said
        })
      const said = yield* run(record)
      assert.deepStrictEqual(
        said,
        [0, 1, 2, 3, 4, 5].map((nth) => `answer ${nth}`),
      )
      assert.deepStrictEqual(yield* run(replay), said)
      assert.deepStrictEqual(yield* run(record), said)
    }))

  test("says in a replay how to get a missing answer", (directory) =>
    Effect.gen(function* () {
      const replay = yield* cached({ mode: "replay", directory })
      const error = yield* Effect.flip(
        replay(nobody)
          .complete(greedy)
          .pipe(within(at(4, 2))),
      )
      assert.strictEqual(error.reason, "cache")
      assert.match(
        error.message,
        /^m: cache: no answer to the request of episode 4, step 2 \(expected the file .*\/[0-9a-f]{64}\.json\); set cache: record to/,
      )
    }))

  test("calls the model once for equal requests at the same time", (directory) =>
    Effect.gen(function* () {
      const gate = yield* Deferred.make<void>()
      const { lm, asked } = answering((nth) => Effect.as(Deferred.await(gate), completion(`answer ${nth}`)))
      const both = (yield* cached({ mode: "record", directory }))(lm)
      const fibers = yield* Effect.forEach(Array.from({ length: 5 }), () => Effect.forkChild(both.complete(seeded)))
      while (asked() === 0) yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
      yield* Deferred.succeed(gate, undefined)
      for (const fiber of fibers) assert.strictEqual((yield* Fiber.join(fiber)).content, "answer 0")
      assert.strictEqual(asked(), 1)
    }))

  test("calls the model for the next caller if the first is interrupted, and caches no failure", (directory) =>
    Effect.gen(function* () {
      const { lm, asked } = answering((nth) =>
        nth === 0 ? Effect.never : nth === 1 ? Effect.fail(failure("exhausted")) : "yes",
      )
      const record = (yield* cached({ mode: "record", directory }))(lm)
      const turn = () => new Promise((resolve) => setImmediate(resolve))
      const first = yield* Effect.forkChild(record.complete(seeded))
      while (asked() === 0) yield* Effect.promise(turn)
      const second = yield* Effect.forkChild(Effect.flip(record.complete(seeded)))
      for (let turns = 0; turns < 20; turns++) yield* Effect.promise(turn)
      assert.strictEqual(asked(), 1)
      yield* Fiber.interrupt(first)
      assert.strictEqual((yield* Fiber.join(second)).reason, "exhausted")
      assert.strictEqual((yield* record.complete(seeded)).content, "yes")
    }))

  test("treats the retry of a failed call as the same call", (directory) =>
    Effect.gen(function* () {
      const { lm } = answering((nth) => (nth === 0 ? Effect.fail(failure("exhausted")) : `answer ${nth}`))
      const record = (yield* cached({ mode: "record", directory }))(lm)
      const context = at(1)
      yield* Effect.flip(record.complete(sampled).pipe(within(context)))
      yield* record.complete(sampled).pipe(within(context))
      const replay = (yield* cached({ mode: "replay", directory }))(nobody)
      assert.strictEqual((yield* replay.complete(sampled).pipe(within(at(1)))).content, "answer 1")
    }))

  for (const [how, damage] of [
    ["cut off", (text: string) => text.slice(0, text.length / 2)],
    ["emptied", () => ""],
    ["changed", (text: string) => text.replace("answer 0", "answer 9")],
    ["that of another request", (text: string) => text.replace('"seed": 1', '"seed": 2')],
  ] as const) {
    test(`names a file that is ${how} in a replay, and asks anew otherwise`, (directory) =>
      Effect.gen(function* () {
        const fs = yield* FileSystem.FileSystem
        const record = yield* cached({ mode: "record", directory })
        yield* record(chatty().lm).complete(seeded)
        const [file] = yield* filesIn(directory)
        const text = yield* fs.readFileString(file)
        assert.notStrictEqual(damage(text), text)
        yield* fs.writeFileString(file, damage(text))

        const replay = yield* cached({ mode: "replay", directory })
        const error = yield* Effect.flip(replay(nobody).complete(seeded))
        assert.strictEqual(error.reason, "cache")
        assert.include(error.message, `${file} is damaged`)

        const warnings: Array<unknown> = []
        const logger = Logger.make(({ logLevel, message }) => warnings.push([logLevel, String(message)]))
        const { lm, asked } = chatty()
        yield* record(lm)
          .complete(seeded)
          .pipe(Effect.provide(Logger.layer([logger])))
        assert.strictEqual(asked(), 1)
        assert.strictEqual(warnings.length, 1)
        assert.include(JSON.stringify(warnings), `${file} is damaged`)
        assert.strictEqual(yield* fs.readFileString(file), text)
        assert.strictEqual((yield* replay(nobody).complete(seeded)).content, "answer 0")
      }))
  }

  test("gives the answer of another process that was faster", (directory) =>
    Effect.gen(function* () {
      const others = yield* cached({ mode: "record", directory })
      // While this one waits for its answer, another writes its own.
      const { lm } = answering(() =>
        Effect.as(Effect.orDie(others(answering(() => "theirs").lm).complete(seeded)), completion("ours")),
      )
      const ours = yield* cached({ mode: "record", directory })
      assert.strictEqual((yield* ours(lm).complete(seeded)).content, "theirs")
    }))

  test(
    "gives the same answers to processes that call at the same time",
    (directory) =>
      Effect.gen(function* () {
        const script = fileURLToPath(new URL("cacheProcess.ts", import.meta.url))
        const processes = yield* Effect.promise(() =>
          Promise.all(
            ["a", "b", "c"].map((name, index) =>
              promisify(execFile)(process.execPath, [script, directory, name, index === 1 ? "backwards" : "forwards"]),
            ),
          ),
        )
        const [first, ...others] = processes.map(({ stdout }) => JSON.parse(stdout))
        for (const other of others) assert.deepStrictEqual(other, first)
        const replay = (yield* cached({ mode: "replay", directory }))(nobody)
        for (const [number, answer] of first.entries()) {
          const { content } = yield* replay.complete(request(`question ${number}`, { seed: number }))
          assert.strictEqual(content, answer)
        }
        assert.strictEqual((yield* filesIn(directory)).length, 100)
      }),
    { tags: "slow" },
  )

  test("names the file that cannot be written", (directory) =>
    Effect.gen(function* () {
      const fs = yield* FileSystem.FileSystem
      yield* fs.writeFileString(`${directory}/file`, "")
      const record = yield* cached({ mode: "record", directory: `${directory}/file` })
      const error = yield* Effect.flip(record(chatty().lm).complete(seeded))
      assert.strictEqual(error.reason, "cache")
      assert.include(error.message, `${directory}/file/`)
    }))

  test("distinguishes answers that depend on more than the request", (directory) =>
    Effect.gen(function* () {
      const { lm, asked } = chatty()
      yield* (yield* cached({ mode: "record", directory }))(lm).complete(seeded)
      yield* (yield* cached({ mode: "record", directory, also: { thinkingBudget: 9 } }))(lm).complete(seeded)
      assert.strictEqual(asked(), 2)
    }))
})

describe("canonical", () => {
  it("is equal for equal values only", () => {
    assert.strictEqual(canonical({ b: [{ d: 1, c: null }], a: undefined, "1": 2 }), '{"1":2,"b":[{"c":null,"d":1}]}')
    assert.notStrictEqual(canonical({ a: [1, 2] }), canonical({ a: [2, 1] }))
    assert.notStrictEqual(canonical({ a: "1" }), canonical({ a: 1 }))
  })
})
