import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Effect } from "effect"
import { assert, describe, it } from "vitest"
import { parseAlert } from "../../../src/command/cli/alerts/alert.ts"
import { alerting, alertSink } from "../../../src/command/cli/alerts/alerts.ts"
import { MetricAlerts } from "../../../src/command/cli/alerts/MetricAlerts.ts"
import { neverRecorded } from "../../../src/command/cli/alerts/neverRecorded.ts"
import { Output } from "../../../src/command/cli/output/output.ts"
import type { RunEnded, RunEvent, RunStarted } from "../../../src/run/record/RunEvent.ts"
import { recorded, started, update, validation } from "../../run/record/events.ts"
import { evaluation, told } from "./capitals.ts"
import { effect, program, resultOf, withFolder, write } from "./effect.ts"

const ended = (reason: RunEnded["reason"]): RunEnded => ({
  _tag: "RunEnded",
  step: 9,
  episodes: 1,
  reason,
  message: null,
})

/** Records runs one inside the other, as a multi-run trainer does, and returns what their alerts write to stderr. */
const warned = (flag: string, runs: ReadonlyArray<{ about?: RunStarted; events: ReadonlyArray<RunEvent> }>): string => {
  const parsed = parseAlert(flag)
  assert.isTrue("alert" in parsed)
  const sink = alertSink("alert" in parsed ? [parsed.alert] : [], (directory) => directory)
  let stderr = ""
  const record = (at: number): Effect.Effect<void> =>
    at === runs.length
      ? Effect.void
      : Effect.orDie(
          Effect.scoped(
            Effect.gen(function* () {
              const { emit } = yield* recorded(sink, runs[at].about)
              yield* record(at + 1)
              yield* emit(runs[at].events)
            }),
          ),
        )
  Effect.runSync(
    Effect.provideService(record(0), Output, {
      stdout: () => Effect.void,
      stderr: (text) => void (stderr += text),
    }),
  )
  return stderr
}

describe("a threshold on a metric that is never recorded", () => {
  const events = [update(1, { "losses/entropy": 2, "losses/approx_kl": 0.1 }), ended("finished")]

  it("is a warning when the run has finished, with the metric that may be meant", () => {
    assert.include(
      warned("losses/aprox_kl>1: true", [{ events }]),
      '--alert losses/aprox_kl>1: the metric losses/aprox_kl was never recorded; did you mean "losses/approx_kl"?',
    )
    assert.include(warned("validation>1: true", [{ events: [ended("stopped")] }]), "no metric was recorded")
  })

  it("is none if the metric was recorded, or if the run was cut off before it could be", () => {
    assert.strictEqual(warned("losses/entropy>5: true", [{ events }]), "")
    for (const reason of ["interrupted", "failed"] as const)
      assert.strictEqual(warned("losses/x>5: true", [{ events: [events[0], ended(reason)] }]), "")
  })

  it("is one warning for a trainer and its runs, and none if one of them recorded it", () => {
    const own = [{ events: [ended("finished")] }, { events }, { events: [ended("finished")] }]
    assert.strictEqual(warned("losses/entropy>5: true", own), "")
    assert.lengthOf(warned("trainer/none>5: true", own).trim().split("\n"), 1)
  })

  it("is none of a sweep that has nothing left to do, but of one whose runs have no validations", () => {
    const warnedBy = (body: Effect.Effect<void>): string => {
      let stderr = ""
      const about = { run: "results", name: "walk" }
      Effect.runSync(
        Effect.provideService(alerting({ flags: ["validation>5: true"], about, what: "a sweep" }, body), Output, {
          stdout: () => Effect.void,
          stderr: (text) => void (stderr += text),
        }),
      )
      return stderr
    }
    assert.strictEqual(warnedBy(Effect.void), "")
    const ended = Effect.gen(function* () {
      yield* (yield* MetricAlerts)([])
    })
    assert.include(warnedBy(ended), "the metric validation/score was never recorded; no metric was recorded")
  })

  it("is a warning at once, and only then, if the config shows it", () => {
    const about = { ...started, config: { kind: "evaluation" } }
    const before = [{ about, events: [] }]
    assert.include(warned("losses/entropy>5: true", before), "an evaluation records only validation/score")
    const text = warned("losses/entropy>5: true", [{ about, events: [validation, ended("finished")] }])
    assert.lengthOf(text.trim().split("\n"), 1)
    assert.strictEqual(warned("validation>5: true", [{ about, events: [validation, ended("finished")] }]), "")
    for (const [config, metric, reason] of [
      [{ kind: "gateway" }, "validation/score", "a gateway records no metrics"],
      [{ kind: "prompts" }, "losses/entropy", "a run that learns prompts records only"],
      [{ kind: "training", validation: { everySteps: 0 } }, "validation/score", "validation.every_steps is 0"],
    ] as const)
      assert.include(neverRecorded(config, metric), reason)
    assert.isUndefined(neverRecorded({ kind: "training", validation: { everySteps: 8 } }, "validation/score"))
    assert.isUndefined(neverRecorded({ kind: "training", validation: { everySteps: 0 } }, "losses/entropy"))
  })
})

describe.skipIf(process.platform === "win32")("alerts of other commands than effect run", () => {
  const alertsTo = (log: string) =>
    [`ended: cat >> ${log}`, `validation>=0.1: cat >> ${log}`].flatMap((flag) => ["--alert", flag])
  const linesOf = (log: string) =>
    readFileSync(log, "utf8")
      .trim()
      .split("\n")
      .map((line): Record<string, unknown> => JSON.parse(line))

  it("tell about an evaluation of a file", () =>
    withFolder(async (folder) => {
      const log = join(folder, "log")
      const file = write(folder, "tasks.yaml", evaluation())
      const args = ["eval", file, "--results-dir", join(folder, "results"), "--quiet", "--json"]
      const outcome = told(await effect([...args, ...alertsTo(log), "--alert", "losses/kl>1: true"]))
      const { runDir } = resultOf(outcome)
      assert.include(outcome.stderr, "an evaluation records only validation/score")
      const [passed, over, ...more] = linesOf(log)
      assert.deepInclude(passed, { event: "threshold", run: runDir, name: "capitals", condition: "validation>=0.1" })
      assert.deepInclude(over, { event: "finished", run: runDir, name: "capitals", seed: 1 })
      assert.lengthOf(more, 0)
      // A finished evaluation that is shown again plays nothing.
      const shown = await effect(["eval", runDir, "--alert", "ended: true"])
      assert.strictEqual(shown.code, 2)
      assert.include(shown.stderr, "--alert only works with")
    }))

  it("tell about the evaluation of a checkpoint", () =>
    withFolder(async (folder) => {
      const log = join(folder, "log")
      const file = write(folder, "train.ts", program(""))
      const results = join(folder, "results")
      const { runDir } = resultOf(told(await effect(["run", file, "--results-dir", results, "--json", "--quiet"])))
      const args = ["eval", runDir, "--file", file, "--episodes", "2"]
      told(await effect([...args, ...alertsTo(log)]))
      const [passed, over] = linesOf(log)
      assert.deepInclude(passed, { event: "threshold", run: runDir, name: "train", step: 2048 })
      assert.deepEqual(over, { event: "finished", run: runDir, name: "train" })
      const refused = await effect([...args, "--alert", "losses/kl>1: true"])
      assert.strictEqual(refused.code, 2)
      assert.include(refused.stderr, "the evaluation of a checkpoint only compares the scores of validations")
    }))

  it("tell about a study, and the first of its trials that passes a threshold", { tags: "slow" }, () =>
    withFolder(async (folder) => {
      const log = join(folder, "log")
      const file = write(folder, "train.ts", program("validation: { everySteps: 1024, episodes: 2 }"))
      const space = write(folder, "space.yaml", "trials: 2\nparameters:\n  algorithm.epochs: { int: [1, 3] }\n")
      const args = ["tune", file, "--space", space, "--workers", "1", "--quiet"]
      const outcome = await effect([...args, ...alertsTo(log)], folder)
      assert.strictEqual(outcome.code, 0, outcome.stderr)
      const [passed, over, ...more] = linesOf(log)
      assert.deepInclude(passed, { event: "threshold", name: "train", step: 1024, condition: "validation>=0.1" })
      assert.deepInclude(over, { event: "finished", name: "train" })
      assert.isTrue(String(passed.run).startsWith(String(over.run)))
      assert.lengthOf(more, 0)
    }),
  )

  it("are refused before anything starts, if they are written wrongly", () =>
    withFolder(async (folder) => {
      const file = write(folder, "tasks.yaml", evaluation())
      writeFileSync(join(folder, "space.yaml"), "parameters:\n  algorithm.epochs: { int: [1, 3] }\n")
      const training = write(folder, "train.ts", program(""))
      for (const args of [
        ["eval", file],
        ["tune", training, "--space", "space.yaml"],
        ["gateway", "--upstream", "http://127.0.0.1:9/v1", "--port", "0"],
      ]) {
        const { code, stderr } = await effect([...args, "--alert", "someday: true"], folder)
        assert.strictEqual(code, 2, stderr)
        assert.include(stderr, "--alert: expected ended, finished, failed, stopped or a threshold")
      }
    }))
})
