import { appendFileSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Deferred, Effect, Fiber, Schema } from "effect"
import { assert, describe, it } from "vitest"
import { parse } from "yaml"
import { csv } from "../../src/run/record/csv.ts"
import type { RunEvent } from "../../src/run/record/RunEvent.ts"
import { scores } from "../../src/run/record/scores.ts"
import * as Layout from "../../src/trainer/Layout.ts"
import { StepScoreRecord } from "../../src/run/record/stepScores.ts"
import { takeFence } from "../../src/run/store/fence.ts"
import { configOf, type Place, resultsFolder, runConfig, trained, validated } from "./smallTraining.ts"

const transcripts = { every: 2, groups: 1 }
const runs = {
  a: runConfig(1, { ...validated, max_steps: 4, transcripts, checkpoint: { every: 1 } }),
  b: runConfig(2, { max_steps: 3, checkpoint: { every: 2 } }),
}
/** Runs that are as short as a test of their folders allows. */
const one = { max_steps: 1, supervised: { steps: 1, lr: 0.02 } }
const short = { a: runConfig(1, one), b: runConfig(2, one) }
const sinks = [scores, csv]

const textIn = (folder: string, path: string): string => readFileSync(join(folder, path), "utf8")
const jsonIn = (folder: string, path: string) => JSON.parse(textIn(folder, path))

const linesIn = (folder: string, path: string) =>
  textIn(folder, path)
    .trimEnd()
    .split("\n")
    .map((line) => Schema.decodeUnknownSync(Schema.fromJsonString(StepScoreRecord))(line))

/** Trains until an event of the trainer or of one of its runs, and interrupts the training then. */
const interruptedAt = Effect.fnUntraced(function* (
  config: unknown,
  resultsDir: string,
  isMoment: (event: RunEvent) => boolean,
  more: Partial<Place> = {},
) {
  const reached = yield* Deferred.make<void>()
  let runDir = ""
  const training = trained(config, {
    ...more,
    resultsDir,
    sinks,
    onOpen: (directory) => void (runDir = directory),
    onEvent: (event) => void (isMoment(event) && Deferred.doneUnsafe(reached, Effect.void)),
  })
  const fiber = yield* Effect.forkChild(training)
  yield* Deferred.await(reached)
  yield* Fiber.interrupt(fiber)
  return runDir
})

const times = new Set(["timestamp", "step_start", "step_end"])
const untimed = (line: StepScoreRecord): Partial<StepScoreRecord> =>
  Object.fromEntries(Object.entries(line).filter(([key]) => !times.has(key)))

const recordingOf = (folder: string) => ({
  curve: textIn(folder, "progress.csv"),
  episodes: linesIn(folder, "scores/train/scores.jsonl").map(untimed),
  validation: linesIn(folder, "scores/val/2_seen_episodes_scores.jsonl").map(({ score, action }) => ({
    score,
    action,
  })),
  returns: jsonIn(folder, "return.json"),
})

describe("a run of a trainer", () => {
  it("leaves what it leaves if its own config is trained alone", { tags: "slow" }, () =>
    Effect.runPromise(
      Effect.gen(function* () {
        const resultsDir = yield* resultsFolder
        const { runDir } = yield* trained(configOf(runs), { resultsDir, sinks })
        const folder = join(runDir, "run_a")
        const config = parse(textIn(folder, "config.yaml"))
        assert.deepStrictEqual(Object.keys(config.runs), ["a"])
        const alone = yield* trained(config, { resultsDir, sinks })
        const metrics = jsonIn(folder, "metrics.json")
        assert.strictEqual(metrics.digest, alone.digest)
        assert.include(metrics, { steps: 4, episodes: 32, run_dir: folder })
        assert.deepStrictEqual(metrics.validation, jsonIn(alone.runDir, "metrics.json").validation)
        assert.deepStrictEqual(recordingOf(folder), recordingOf(join(alone.runDir, "run_a")))
      }).pipe(Effect.scoped),
    ),
  )

  it("has a curve of its own, and transcripts with advantages", () =>
    Effect.runPromise(
      Effect.gen(function* () {
        const { runDir } = yield* trained(configOf(runs), { resultsDir: yield* resultsFolder, sinks })
        const { curve, episodes, returns } = recordingOf(join(runDir, "run_a"))
        const rows = curve
          .trimEnd()
          .split("\n")
          .map((line) => line.split(","))
        const stepsOf = (name: string) => rows.filter((row) => row[1] === name).map(([step]) => Number(step))
        assert.deepStrictEqual(stepsOf("losses/loss"), [1, 2, 3, 4])
        assert.deepStrictEqual(stepsOf("validation/score"), [0, 2, 4])
        // The first step imitates, so it samples nothing.
        assert.deepStrictEqual(stepsOf("sampling/reward"), [2, 3, 4])
        assert.deepStrictEqual(
          returns.map(({ step }: { step: number }) => step),
          [0, 2, 4],
        )
        // The first group of step 2; a step has 8 episodes.
        assert.deepStrictEqual(
          episodes.map(({ episode_index }) => episode_index),
          [17, 18, 19, 20],
        )
        for (const { info } of episodes) {
          assert.include(info, { step: 2, group: 0 })
          assert.isNumber(info?.["advantage"])
        }
        const sum = episodes.reduce((total, { info }) => total + Number(info?.["advantage"]), 0)
        assert.closeTo(sum, 0, 1e-5)
        // The trainer's own curve has no metrics of runs.
        assert.notInclude(textIn(runDir, "progress.csv"), "losses/")
      }).pipe(Effect.scoped),
    ))

  const moments: Readonly<Record<string, (event: RunEvent) => boolean>> = {
    "in a validation": (event) => event._tag === "ValidationEnded" && event.step === 2,
    "after an update": (event) => event._tag === "UpdateApplied" && event.step === 3 && "losses/loss" in event.metrics,
    "at its end": (event) => event._tag === "RunEnded",
  }
  let whole: Promise<ReturnType<typeof recordingOf>> | undefined
  /** The records of a training that is not interrupted, which all these tests compare with. */
  const uninterrupted = () =>
    (whole ??= Effect.runPromise(
      Effect.gen(function* () {
        const { runDir } = yield* trained(configOf(runs), { resultsDir: yield* resultsFolder, sinks })
        return recordingOf(join(runDir, "run_a"))
      }).pipe(Effect.scoped),
    ))
  for (const [when, isMoment] of Object.entries(moments)) {
    it(
      `records each update, episode and validation once, if the trainer was interrupted ${when}`,
      { tags: "slow" },
      () =>
        Effect.runPromise(
          Effect.gen(function* () {
            const resultsDir = yield* resultsFolder
            const resume = yield* interruptedAt(configOf(runs), resultsDir, isMoment)
            yield* trained(configOf(runs), { resultsDir, sinks, resume })
            assert.deepStrictEqual(recordingOf(join(resume, "run_a")), yield* Effect.promise(uninterrupted))
          }).pipe(Effect.scoped),
        ),
    )
  }
})

describe("a trainer that is resumed", () => {
  it("trains a finished run further if its config has more steps, and only that one", { tags: "slow" }, () =>
    Effect.runPromise(
      Effect.gen(function* () {
        const resultsDir = yield* resultsFolder
        const { runDir } = yield* trained(configOf(runs), { resultsDir })
        const longer = configOf({ ...runs, a: { ...runs.a, max_steps: 6 } })
        const begun: Array<string> = []
        const onEvent = (event: RunEvent) => void (event._tag === "RunStarted" && begun.push(event.env))
        const resumed = yield* trained(longer, { resultsDir, resume: runDir, onEvent })
        assert.strictEqual(resumed.steps, 9)
        assert.deepStrictEqual(begun, ["a+b", "a"])
        const whole = yield* trained(longer, { resultsDir })
        assert.strictEqual(resumed.digest, whole.digest)
      }).pipe(Effect.scoped),
    ),
  )

  it("leaves out a run whose folder was deleted, and says so", { tags: "slow" }, () =>
    Effect.runPromise(
      Effect.gen(function* () {
        const resultsDir = yield* resultsFolder
        const isMoment = (event: RunEvent) => event._tag === "UpdateApplied" && event.update >= 2
        const resume = yield* interruptedAt(configOf(runs), resultsDir, isMoment)
        rmSync(join(resume, "run_b"), { recursive: true })
        const warnings: Array<string> = []
        const onEvent = (event: RunEvent) => void (event._tag === "Warning" && warnings.push(event.message))
        const resumed = yield* trained(configOf(runs), { resultsDir, resume, onEvent })
        assert.strictEqual(resumed.steps, 4)
        assert.isFalse(existsSync(join(resume, "run_b")))
        assert.include(warnings.join("\n"), "run_b was deleted")
      }).pipe(Effect.scoped),
    ),
  )

  it("leaves a run alone that another living process writes, and trains the others", () =>
    Effect.runPromise(
      Effect.gen(function* () {
        const resultsDir = yield* resultsFolder
        const owner = { name: "this process", isAlive: (name: string) => Effect.succeed(name === "another process") }
        let folder = ""
        const onOpen = (directory: string) => {
          folder = directory
          mkdirSync(join(directory, "run_a"))
          writeFileSync(join(directory, "run_a", "run.lock"), "another process")
        }
        const { message } = yield* Effect.flip(trained(configOf(short), { resultsDir, owner, onOpen }))
        assert.match(message, /run_a\/run\.lock: another process is writing this run; wait until it ends/)
        assert.isTrue(existsSync(join(folder, "run_b", "return.json")))
        assert.isFalse(existsSync(join(folder, "run_b", "run.lock")))
        assert.isFalse(existsSync(join(folder, "run_a", "control", "token")))
        assert.isFalse(existsSync(join(folder, "run_a", Layout.configProblem)))
        assert.strictEqual(textIn(folder, "run_a/run.lock"), "another process")
      }).pipe(Effect.scoped),
    ))

  it("changes nothing in the folder of a run that another process locks while it waits for an index", () =>
    Effect.runPromise(
      Effect.gen(function* () {
        const owner = { name: "this process", isAlive: (name: string) => Effect.succeed(name === "another process") }
        let folder = ""
        const place: Place = {
          resultsDir: yield* resultsFolder,
          owner,
          onOpen: (directory) => void (folder = directory),
          onEvent: ({ _tag }) => {
            if (_tag !== "UpdateApplied") return
            mkdirSync(join(folder, "run_b", "checkpoints", ".step_1.tmp"), { recursive: true })
            writeFileSync(join(folder, "run_b", "run.lock"), "another process")
          },
        }
        const config = configOf(short, { trainer: { max_runs: 1 } })
        assert.match(
          (yield* Effect.flip(trained(config, place))).message,
          /run_b\/run\.lock: another process is writing/,
        )
        assert.isTrue(existsSync(join(folder, "run_b", "checkpoints", ".step_1.tmp")))
      }).pipe(Effect.scoped),
    ))

  it("takes over the locks of the trainer's processes before, which died on other machines", { tags: "slow" }, () =>
    Effect.runPromise(
      Effect.gen(function* () {
        const resultsDir = yield* resultsFolder
        const owned = (name: string) => ({ owner: { name, isAlive: () => Effect.succeed(true) } })
        const isMoment = (event: RunEvent) => event._tag === "UpdateApplied" && event.update >= 2
        const resume = yield* interruptedAt(configOf(runs), resultsDir, isMoment, owned("first machine"))
        writeFileSync(join(resume, "run_a", "run.lock"), "first machine")
        writeFileSync(join(resume, "run_b", "run.lock"), "second machine")
        // The second machine dies before it reaches the lock of the first one.
        yield* takeFence(resume, "second machine").pipe(Effect.provide(NodeServices.layer))
        yield* trained(configOf(runs), { resultsDir, resume, ...owned("third machine") })
        for (const run of ["run_a", "run_b"]) {
          assert.isTrue(existsSync(join(resume, run, "return.json")))
          assert.isFalse(existsSync(join(resume, run, "run.lock")))
        }
      }).pipe(Effect.scoped),
    ),
  )

  it("leaves no lock if it is interrupted while it evicts a run", { tags: "slow" }, () =>
    Effect.runPromise(
      Effect.gen(function* () {
        const resultsDir = yield* resultsFolder
        const reached = yield* Deferred.make<void>()
        let folder = ""
        const training = trained(configOf(runs), {
          resultsDir,
          sinks,
          owner: { name: "this process", isAlive: () => Effect.succeed(true) },
          onOpen: (directory) => void (folder = directory),
          onEvent: (event) => {
            if (event._tag === "UpdateApplied") writeFileSync(join(folder, "run_a/control/evicted.txt"), "enough\n")
            if (event._tag === "RunEnded") Deferred.doneUnsafe(reached, Effect.void)
          },
        })
        const fiber = yield* Effect.forkChild(training)
        yield* Deferred.await(reached)
        yield* Fiber.interrupt(fiber)
        for (const run of ["run_a", "run_b"]) assert.isFalse(existsSync(join(folder, run, "run.lock")), run)
      }).pipe(Effect.scoped),
    ),
  )

  it("refuses another model, another seed and other adapters", () =>
    Effect.runPromise(
      Effect.gen(function* () {
        const resultsDir = yield* resultsFolder
        const { runDir: resume } = yield* trained(configOf(short), { resultsDir })
        const lora = { lora: { rank: 4, alpha: 4, targets: ["q_proj", "v_proj"] } }
        for (const [config, key] of [
          [configOf(short, { seed: 2 }), "seed"],
          [configOf(short, { trainer: lora }), "trainer.lora.rank"],
        ] as const) {
          const { message } = yield* Effect.flip(trained(config, { resultsDir, resume }))
          assert.include(message, `${key} = `)
        }
      }).pipe(Effect.scoped),
    ))

  it("has each step of the trainer once, also if a killed process recorded more than it saved", { tags: "slow" }, () =>
    Effect.runPromise(
      Effect.gen(function* () {
        const resultsDir = yield* resultsFolder
        const config = configOf(runs)
        const isThird = (event: RunEvent) =>
          event._tag === "UpdateApplied" && "trainer/runs" in event.metrics && event.update === 3
        const resume = yield* interruptedAt(config, resultsDir, isThird)
        const saved = textIn(resume, "progress.csv")
        const step = Number(saved.trimEnd().split("\n").at(-1)?.split(",")[0])
        assert.isAtLeast(step, 3)
        appendFileSync(
          join(resume, "progress.csv"),
          `${step + 1},trainer/runs,2\n${step + 2},trainer/runs,2\n${step + 3},tra`,
        )
        yield* trained(config, { resultsDir, sinks, resume })
        const curve = textIn(resume, "progress.csv")
        assert.isTrue(curve.startsWith(saved))
        assert.deepStrictEqual(
          [...curve.matchAll(/^(\d+),trainer\/runs,/gm)].map(([, at]) => Number(at)),
          [1, 2, 3, 4, 5, 6, 7],
        )
      }).pipe(Effect.scoped),
    ),
  )
})
