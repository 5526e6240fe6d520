import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, Exit } from "effect"
import { assert, describe, it } from "vitest"
import { scores } from "../../src/run/record/scores.ts"
import { runLog } from "../../src/run/record/runLog.ts"
import type { RunEvent } from "../../src/run/record/RunEvent.ts"
import { Scorers } from "../../src/agents/task/Qa.ts"
import { configOf, resultsFolder, runConfig, runFiles, trained } from "./smallTraining.ts"

/** A file of questions, of which `bad` is put in the place of the fourth; it is gone after the test. */
const questions = (bad: string, count = 16) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const folder = mkdtempSync(join(tmpdir(), "questions-"))
      const lines = Array.from({ length: count }, (_, at) => ({
        question: at === 3 ? bad : `say ${"abcdefghijklmnop"[at]}`,
        answer: "abcdefghijklmnop"[at],
      }))
      writeFileSync(join(folder, "train.jsonl"), lines.map((line) => `${JSON.stringify(line)}\n`).join(""))
      return folder
    }),
    (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true })),
  )

const asking = (folder: string, more = {}) =>
  runConfig(1, {
    train_dataset: { type: "qa", dataset_path: join(folder, "train.jsonl"), ...more },
    supervised: { steps: 0 },
    max_steps: 8,
    checkpoint: { every: 1 },
  })

const warningsIn = (events: ReadonlyArray<RunEvent>): ReadonlyArray<string> =>
  events.flatMap((event) => (event._tag === "Warning" ? [event.message] : []))

describe("a run of a trainer with a task that cannot be played", () => {
  it("loses only its samples, and says so in its scores and logs", () =>
    Effect.gen(function* () {
      const folder = yield* questions("too long ".repeat(20))
      const resultsDir = yield* resultsFolder
      const events: Array<RunEvent> = []
      const config = configOf({ a: asking(folder) })
      const { runDir, steps } = yield* trained(config, {
        resultsDir,
        sinks: [scores, runLog],
        onEvent: (event) => void events.push(event),
      })
      assert.strictEqual(steps, 8)
      const files = runFiles(runDir, "a")
      assert.isUndefined(files.evicted())
      const failed = (files.textOf("scores/train/scores.jsonl") ?? "")
        .split("\n")
        .filter((line) => line.includes('"error"'))
      assert.lengthOf(failed, 4)
      assert.match(failed[0], /the prompt has \d+ tokens; expected at most 23/)
      const line = /run_a: step \d: 4 of 8 episodes failed, of qa "qa-4": .*the prompt has \d+ tokens/
      assert.match(readFileSync(join(runDir, "run.log"), "utf8"), line)
      assert.match(warningsIn(events).join("\n"), line)
      assert.match(files.textOf("run.log") ?? "", /warning: step \d: 4 of 8 episodes failed/)
    }).pipe(Effect.scoped, Effect.runPromise))

  it("plays other tasks in place of a step of which nothing is left", { tags: "slow" }, () =>
    Effect.gen(function* () {
      const folder = yield* questions("too long ".repeat(20))
      const resultsDir = yield* resultsFolder
      const events: Array<RunEvent> = []
      const run = { ...asking(folder), batch: { size: 4, group_size: 4 }, max_steps: 16 }
      const { steps } = yield* trained(configOf({ a: run }), {
        resultsDir,
        onEvent: (event) => void events.push(event),
      })
      assert.strictEqual(steps, 16)
      assert.match(warningsIn(events).join("\n"), /run_a: step \d+: 4 of 8 episodes failed/)
    }).pipe(Effect.scoped, Effect.runPromise),
  )

  it("is evicted if more fail than max_failures allows, with a message that says so", { tags: "slow" }, () =>
    Effect.gen(function* () {
      const folder = yield* questions("too long ".repeat(20))
      const resultsDir = yield* resultsFolder
      let runDir = ""
      const run = { ...asking(folder), max_failures: 3 }
      const exit = yield* Effect.exit(
        trained(configOf({ a: run }), { resultsDir, onOpen: (directory) => void (runDir = directory) }),
      )
      assert.isTrue(Exit.isFailure(exit))
      assert.match(
        runFiles(runDir, "a").evicted() ?? "",
        /^its orchestrator failed: step \d: 4 of 8 episodes failed, of qa ".*; max_failures \(3\) allows 3 in a step$/m,
      )
    }).pipe(Effect.scoped, Effect.runPromise),
  )

  it("loses the samples whose rewards cannot be computed with, by a message about the reward", { tags: "slow" }, () =>
    Effect.gen(function* () {
      const folder = yield* questions("the bad one")
      const resultsDir = yield* resultsFolder
      const events: Array<RunEvent> = []
      const run = {
        ...asking(folder, { task_type: "custom", env_class: "Huge" }),
        agent: { type: "memoryless_agent", reject_incomplete_completions: false },
      }
      const { steps } = yield* trained(configOf({ a: run }), {
        resultsDir,
        onEvent: (event) => void events.push(event),
      }).pipe(
        Effect.provideService(Scorers, {
          Huge: (_, { targets }) => ({ score: targets[0] === "d" ? 1e308 : 1, target: null, message: "" }),
        }),
      )
      assert.strictEqual(steps, 8)
      assert.match(
        warningsIn(events).join("\n"),
        /4 of 8 episodes failed, of qa "[^"]*": .*gave the score 1e\+308 at step 1; expected a number from -3\.4e38 to 3\.4e38/,
      )
    }).pipe(Effect.scoped, Effect.runPromise),
  )
})
