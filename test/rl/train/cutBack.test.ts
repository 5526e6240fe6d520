import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer } from "effect"
import * as A2c from "../../../src/rl/algorithms/rollouts/A2c.ts"
import * as Wasm from "../../../src/tensor/backend/wasm.ts"
import * as CartPole from "../../../src/rl/env/classic/CartPole.ts"
import { RunStore } from "../../../src/run/store/RunStore.ts"
import { csv } from "../../../src/run/record/csv.ts"
import { Recorder, type Sink } from "../../../src/run/record/Recorder.ts"
import { runLog } from "../../../src/run/record/runLog.ts"
import { scores } from "../../../src/run/record/scores.ts"
import { tensorBoard } from "../../../src/run/record/tensorBoard.ts"
import { decode } from "../../../src/base/formats/tfevents.ts"
import * as Train from "../../../src/rl/train/Train.ts"

const input: Parameters<typeof Train.run>[0] = {
  env: CartPole.env,
  algorithm: A2c.make({ hidden: [8] }),
  totalSteps: 960,
  validation: { everySteps: 320, episodes: 2 },
  checkpoint: { everySteps: 320, strategy: { _tag: "LastN", keep: 0 } },
}

type Files = Map<string, Uint8Array>

const folder = (files: Files): string =>
  [...files.keys()].find((path) => path.endsWith("/config.yaml"))?.slice(0, -"/config.yaml".length) ?? ""

const run = (store: ReturnType<typeof RunStore.memory>, changes: Partial<typeof input> = {}, sinks: Array<Sink> = []) =>
  Train.run({ ...input, ...changes }).pipe(
    Effect.provide(Layer.mergeAll(Wasm.layer, store.layer, Recorder.layer(scores, tensorBoard, csv, runLog, ...sinks))),
  )

const resume = (files: Files, changes: Partial<typeof input> = {}) =>
  run(RunStore.memory({ files, resume: folder(files) }), changes)

/** A run that was killed after the checkpoint at step 640, of the three that it was to have; and what it would have come to. */
const killed = Effect.gen(function* () {
  const store = RunStore.memory()
  const whole = yield* run(store)
  const files = new Map(
    [...store.files].filter(
      ([path]) => !/\/(step_0*960\/.*|return\.json|metrics\.json|latest|latest\.json)$/.test(path),
    ),
  )
  return { files, whole, finished: store.files }
})

const textOf = (files: Files, path: string): string => new TextDecoder().decode(files.get(`${folder(files)}/${path}`))
const put = (files: Files, path: string, text: string | Uint8Array): void =>
  void files.set(`${folder(files)}/${path}`, typeof text === "string" ? new TextEncoder().encode(text) : text)

const trainScores = "scores/train/scores.jsonl"

describe("scores that are not those of the checkpoint", () => {
  it.effect("are refused where a line was changed, with the older checkpoint that fits and the way to it", () =>
    Effect.gen(function* () {
      const { files, whole } = yield* killed
      const stepOf = (line: string): number => JSON.parse(line).step_index
      const lines = textOf(files, trainScores).split("\n").slice(0, -1)
      const between = lines.findIndex((line) => stepOf(line) > 340 && stepOf(line) <= 600)
      const changed = lines.with(between, lines[between].replace(/"score":\d+/, '"score":7'))
      put(files, trainScores, `${changed.join("\n")}\n`)
      const before = new Map(files)
      const { message } = yield* Effect.flip(resume(files))
      const at = folder(files)
      assert.match(
        message,
        new RegExp(
          `^${at}/${trainScores}: its first \\d+ bytes were changed since the checkpoint step_000000000000640; ` +
            `to resume from the checkpoint step_000000000000320, which still matches, ` +
            `remove ${at}/checkpoints/step_000000000000640 and resume again$`,
        ),
      )
      assert.deepEqual(files, before)
      for (const path of files.keys()) if (path.includes("/checkpoints/step_000000000000640/")) files.delete(path)
      assert.strictEqual((yield* resume(files)).digest, whole.digest)
      assert.strictEqual(textOf(files, trainScores).split("\n").length, lines.length + 1)
    }),
  )

  it.effect("are refused where the first line was changed, which no checkpoint fits", () =>
    Effect.gen(function* () {
      const { files } = yield* killed
      put(
        files,
        trainScores,
        textOf(files, trainScores).replace(/"score":\d+/, (found) => found.replace(/\d/, "0")),
      )
      const { message } = yield* Effect.flip(resume(files))
      assert.include(message, "step_000000000000640; restore the file, or start a new run: no other checkpoint matches")
    }),
  )

  it.effect("are refused where they are of a validation, too short, or gone", () =>
    Effect.gen(function* () {
      const { files } = yield* killed
      const validation = [...files.keys()]
        .find((path) => path.includes("/scores/val/"))
        ?.slice(folder(files).length + 1)
      const text = textOf(files, validation ?? "")
      put(files, validation ?? "", text.replace(/"score":\d/, '"score":0'))
      assert.include((yield* Effect.flip(resume(files))).message, `${validation}: its first ${text.length} bytes were`)
      put(files, validation ?? "", text)
      put(files, trainScores, textOf(files, trainScores).slice(0, 100))
      assert.include((yield* Effect.flip(resume(files))).message, "bytes, found 100 since the checkpoint")
      files.delete(`${folder(files)}/${trainScores}`)
      assert.include((yield* Effect.flip(resume(files))).message, "bytes, found 0 since the checkpoint")
    }),
  )

  it.effect("are refused of a run that is finished, too, whether or not it is to go further", () =>
    Effect.gen(function* () {
      const { finished } = yield* killed
      put(finished, trainScores, textOf(finished, trainScores).replace(/"score":\d+/, '"score":700'))
      for (const totalSteps of [960, 1280]) {
        const { message } = yield* Effect.flip(resume(finished, { totalSteps }))
        assert.include(message, "bytes were changed since the checkpoint step_000000000000960")
      }
    }),
  )
})

describe("logs that are not those of the checkpoint", () => {
  const logs = ["logs.tfevents", "progress.csv", "run.log"]

  const goesOn = Effect.fnUntraced(function* (damage: (bytes: Uint8Array) => Uint8Array | undefined) {
    const { files, whole } = yield* killed
    for (const log of logs) {
      const damaged = damage(files.get(`${folder(files)}/${log}`) ?? new Uint8Array(0))
      if (damaged === undefined) files.delete(`${folder(files)}/${log}`)
      else put(files, log, damaged)
    }
    assert.strictEqual((yield* resume(files)).digest, whole.digest)
    const bytes = files.get(`${folder(files)}/logs.tfevents`) ?? new Uint8Array(0)
    const { events, intactBytes } = decode(bytes)
    assert.strictEqual(intactBytes, bytes.length)
    assert.isDefined(events[0].fileVersion)
    assert.strictEqual(events.findLast(({ scalars }) => "validation/score" in scalars)?.step, 960)
    const [heading, ...lines] = textOf(files, "progress.csv").trimEnd().split("\n")
    assert.strictEqual(heading, "step,name,value")
    for (const line of lines) assert.match(line, /^\d+,[^,]+,[^,]+$/)
    return textOf(files, "run.log")
  })

  it.effect("are begun anew where they are gone, and a warning says so", () =>
    Effect.gen(function* () {
      const log = yield* goesOn(() => undefined)
      assert.match(
        log,
        /warning: .*\/logs\.tfevents: expected at least \d+ bytes, found 0 since the checkpoint step_0+640/,
      )
      assert.match(log, /warning: .*\/progress\.csv: expected at least \d+ bytes, found 0 since/)
    }),
  )

  it.effect("go on after what can be read where they are too short", () =>
    Effect.gen(function* () {
      const log = yield* goesOn((bytes) => bytes.slice(0, 200))
      const [, kept] = /logs\.tfevents: .* found 200 .*; the log continues after its first (\d+) bytes/.exec(log) ?? []
      assert.isBelow(Number(kept), 200)
      assert.isAbove(Number(kept), 0)
    }),
  )

  it.effect("go on after what can be read where they were changed", () =>
    Effect.gen(function* () {
      const log = yield* goesOn((bytes) => bytes.with(100, 255))
      assert.match(
        log,
        /logs\.tfevents: its first \d+ bytes were changed since .*; the log continues after its first \d+ bytes/,
      )
    }),
  )
})

describe("a finished run", () => {
  it.effect("is left as it is, to the byte, and gives its result again", () =>
    Effect.gen(function* () {
      const { finished, whole } = yield* killed
      const before = structuredClone(finished)
      const again = yield* resume(finished, { checkpoint: { everySteps: 64, strategy: { _tag: "LastN", keep: 1 } } })
      assert.deepEqual(again, whole)
      assert.deepEqual(finished, before)
    }),
  )

  it.effect("goes on with more steps, as one that was to have them from the start", () =>
    Effect.gen(function* () {
      const algorithm = A2c.make({ hidden: [8], schedule: "constant" })
      const short = RunStore.memory()
      yield* run(short, { algorithm })
      const longer = yield* resume(short.files, { algorithm, totalSteps: 1280 })
      const straight = yield* run(RunStore.memory(), { algorithm, totalSteps: 1280 })
      assert.strictEqual(longer.digest, straight.digest)
    }),
  )

  it.effect("that is interrupted when its work is done is finished all the same", () =>
    Effect.gen(function* () {
      const store = RunStore.memory()
      const reached = yield* Deferred.make<void>()
      const goOn = yield* Deferred.make<void>()
      const held: Sink = () =>
        Effect.succeed({
          emit: (events) =>
            events.some(({ _tag }) => _tag === "RunEnded")
              ? Effect.andThen(Deferred.succeed(reached, undefined), Deferred.await(goOn))
              : Effect.void,
          flush: Effect.void,
        })
      const fiber = yield* Effect.forkChild(run(store, {}, [held]))
      yield* Deferred.await(reached)
      const stopping = yield* Effect.forkChild(Fiber.interrupt(fiber))
      yield* Effect.yieldNow
      yield* Deferred.succeed(goOn, undefined)
      yield* Fiber.await(stopping)
      assert.isTrue(store.files.has(`${folder(store.files)}/return.json`))
    }),
  )
})
