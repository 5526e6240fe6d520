import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "vitest"
import { begin, effect, type Outcome, resultOf, until, withFolder, write } from "./effect.ts"
import {
  at,
  comparable,
  experiment,
  filesIn,
  jsonOf,
  linesOf,
  runsBelow,
  someFaults,
  type Wanted,
  withServer,
} from "./experiment.ts"

const runsOf = (folder: string): ReadonlyArray<string> => runsBelow(join(folder, "outputs/my_experiment"))

const run = (folder: string, wanted: Wanted, ...more: ReadonlyArray<string>): Promise<Outcome> => {
  write(folder, "experiment.yaml", experiment(wanted))
  return effect(["run", "experiment.yaml", "--json", "--quiet", ...more], folder)
}

const isOneLine = (text: string): boolean => /^effect: [^\n]+\n$/.test(text)

/** It ended as it should have the first time: everything is there once. */
const isWhole = (folder: string, runDir: string, episodes: number): void => {
  const lines = linesOf(join(folder, runDir, "scores/train/scores.jsonl"))
  assert.deepStrictEqual(
    lines.map(({ episode_index }) => episode_index),
    lines.map((_, index) => index + 1),
  )
  assert.strictEqual(lines.length, episodes)
}

describe("an experiment ends", () => {
  it("at once, in one line, when the key is wrong", () =>
    withFolder((folder) =>
      withServer({ key: "right" }, async (server) => {
        const outcome = await run(folder, { lm: { ...at(server), api_key: "wrong-4711" } })
        assert.strictEqual(outcome.code, 1)
        assert.isTrue(isOneLine(outcome.stderr), outcome.stderr)
        assert.include(outcome.stderr, "api_key")
        assert.notInclude(outcome.stderr, "wrong-4711")
        assert.strictEqual(outcome.stdout, "")
        // The server got the calls of the first validation that had begun: none was repeated, and no call came later.
        assert.isAtMost(server.asked.length, 8)
        const [at0] = runsOf(folder)
        assert.isFalse(existsSync(join(at0, "return.json")))
        assert.isFalse(existsSync(join(at0, "metrics.json")))
        for (const path of filesIn(at0).filter((one) => !one.endsWith("latest")))
          assert.notInclude(readFileSync(join(at0, path), "utf8"), "wrong-4711", path)
      }),
    ))

  it("when a server hangs in every attempt that max_retries allows", () =>
    withFolder((folder) =>
      withServer({ fault: () => ({ kind: "hung" }) }, async (server) => {
        const lm = { ...at(server), timeout_s: 0.1, max_retries: 2 }
        const outcome = await run(folder, { lm, runtime: { run_validation_at_start: false } })
        assert.strictEqual(outcome.code, 1)
        assert.isTrue(isOneLine(outcome.stderr), outcome.stderr)
        assert.match(outcome.stderr, /0\.1 s/)
        assert.match(outcome.stderr, /3/)
        assert.strictEqual(server.asked.length, 3)
        const [one] = runsOf(folder)
        const [path] = filesIn(one).filter((file) => file.startsWith("llm_calls/"))
        assert.deepInclude(jsonOf(join(one, path)), { response: null, retries: 2 })
      }),
    ))

  for (const [when, calls] of [
    ["in training", 40],
    ["in a validation", 50],
  ] as const) {
    it(
      `when the budget is spent, ${when}: saved, and one line says what to do, which does go on`,
      { tags: "slow" },
      () =>
        withFolder((folder) =>
          withServer({}, async (server) => {
            const wanted = { lm: { ...at(server), budget: { calls } } }
            const outcome = await run(folder, wanted)
            assert.strictEqual(outcome.code, 1)
            assert.isTrue(isOneLine(outcome.stderr), outcome.stderr)
            assert.include(outcome.stderr, "budget")
            assert.strictEqual(server.asked.length, calls)
            const [one] = runsOf(folder)
            assert.isTrue(existsSync(join(one, "checkpoints/latest/runtime.json")))
            const words = /resume with: npx effect run (.+)\n$/.exec(outcome.stderr)?.[1].split(" ") ?? []
            assert.strictEqual(words[0], "experiment.yaml")
            assert.include(words, "--resume")
            // The calls of the first attempt still count against the budget.
            assert.strictEqual(words.at(-1), `agent.lm_config.budget.calls=${2 * calls}`)
            const again = await effect(["run", ...words.slice(0, -2), "--quiet"], folder)
            assert.strictEqual(again.code, 1, again.stderr)
            assert.include(again.stderr, "budget")
            assert.strictEqual(server.asked.length, calls)
            const more = ["--set", "agent.lm_config.budget.calls=1000", "--quiet", "--json"]
            const resumed = await effect(["run", ...words, ...more], folder)
            assert.strictEqual(resumed.code, 0, resumed.stderr)
            const { runDir, digest } = resultOf(resumed)
            isWhole(folder, runDir, 40)
            assert.strictEqual(linesOf(join(folder, runDir, "scores/val/20_seen_episodes_scores.jsonl")).length, 8)
            assert.strictEqual(digest, resultOf(await run(folder, { lm: at(server) })).digest)
          }),
        ),
    )
  }

  it("by Ctrl-C, which saves, and says how to go on: so that it comes to the same", { tags: "slow" }, () =>
    withFolder((folder) =>
      withServer({ fault: someFaults(5, 0.05) }, async (server) => {
        const lm = { ...at(server), cache: "record" }
        write(folder, "experiment.yaml", experiment({ lm, output: { save_rollouts: true, save_memory_every: 5 } }))
        const { interrupt, ended } = begin(["run", "experiment.yaml", "--json", "--quiet"], folder)
        await until(() => server.asked.length >= 60)
        interrupt()
        const stopped = await ended
        assert.strictEqual(stopped.code, 130, stopped.stderr)
        assert.strictEqual(stopped.stdout, "")
        const words = /resume with: npx effect run (.+)\n/.exec(stopped.stderr)?.[1].split(" ") ?? []
        const resumed = await effect(["run", ...words, "--json", "--quiet"], folder)
        assert.strictEqual(resumed.code, 0, resumed.stderr)
        const asked = server.asked.length
        const lmAgain = { ...lm, cache: "replay" }
        const whole = await run(folder, { lm: lmAgain, output: { save_rollouts: true, save_memory_every: 5 } })
        assert.strictEqual(whole.code, 0, whole.stderr)
        assert.strictEqual(server.asked.length, asked)
        const [one, two] = [resumed, whole].map((outcome) => resultOf(outcome))
        assert.strictEqual(one.digest, two.digest)
        assert.deepStrictEqual(comparable(join(folder, one.runDir)), comparable(join(folder, two.runDir)))
      }),
    ),
  )

  it("before it begins, in one line, where the file is wrong", () =>
    withFolder(async (folder) => {
      for (const [wanted, said] of [
        [{ lm: { temprature: 1 } }, /experiment\.yaml.*agent\.lm_config\.temprature.*temperature/],
        [
          { runtime: { checkpoint_strategy: "top_k_val", validation_freq: 0, run_validation_at_start: false } },
          /top_k/,
        ],
        [{ more: { train_dataset: { dataset_path: "nowhere.jsonl" } } }, /nowhere\.jsonl/],
        [{ lm: { model: "scripted:raeder" } }, /scripted:reader/],
        [{ agent: { type: "reflexion_agnt" } }, /reflexion_agent/],
        [{ runtime: { resume_from: "outputs/nothing" } }, /resume_from: .*outputs\/nothing/],
      ] as const) {
        const outcome = await run(folder, wanted)
        assert.include([1, 2], outcome.code)
        assert.isTrue(isOneLine(outcome.stderr), outcome.stderr)
        assert.match(outcome.stderr, said)
        assert.deepStrictEqual(runsOf(folder), [])
      }
    }))
})
