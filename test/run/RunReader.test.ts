import { Effect } from "effect"
import { assert, describe, it } from "vitest"
import { unplacedEntry } from "../../src/run/find/RunEntry.ts"
import { over } from "../../src/run/RunReader.ts"
import { memorySource } from "./read/memorySource.ts"

const failure = "2026-01-31T12:00:00.000Z failed at step 3 after 0 episodes: no\n"
const interrupted = "2026-01-31T12:00:00.000Z interrupted at step 3 after 0 episodes\n"

const readRun = (files: Readonly<Record<string, string>>, alive: ReadonlyArray<string> = []) => {
  const inRun = Object.fromEntries(Object.entries(files).map(([name, text]) => [`run/${name}`, text]))
  const source = memorySource(inRun, alive)
  return { source, run: over(source)(unplacedEntry("run")) }
}

describe("the state of a run", () => {
  it.for([
    ["finished", { "return.json": "[]", "run.lock": "me", "run.log": failure }],
    ["running", { "run.lock": "me", "run.log": failure }],
    ["failed", { "run.lock": "somebody dead", "run.log": `${interrupted}${failure}` }],
    ["stopped", { "run.lock": "", "run.log": `${failure}${interrupted}` }],
    ["stopped", {}],
    // The log lies where the config places it.
    ["failed", { "config.yaml": "log_dir: logs\n", "logs/run.log": failure }],
  ] as const)("is %s with %j", ([state, files]) =>
    assert.strictEqual(Effect.runSync(readRun(files, ["me"]).run.state), state),
  )

  it("is decided by return.json first, then by its lock, then by its log", () => {
    const states = [{ "return.json": "[]" }, {}].flatMap((finished) =>
      ["me", "somebody dead"].flatMap((owner) =>
        [failure, interrupted].map((log) => {
          const { run } = readRun({ ...finished, "run.lock": owner, "run.log": log }, ["me"])
          return Effect.runSync(run.state)
        }),
      ),
    )
    assert.deepStrictEqual(states, [
      ...Array.from({ length: 4 }, () => "finished"),
      "running",
      "running",
      "failed",
      "stopped",
    ])
  })
})

describe("a reader", () => {
  const scores = '{"episode_index":6,"step_index":70,"score":1}\n{"episode_index":7,"step_index":80,"score":2}\n{"epis'

  it("finds scores where the config places them", () => {
    const { run } = readRun({
      "config.yaml": "runtime:\n  scores_path: logs/scores.jsonl\n",
      "logs/scores/train/scores.jsonl": scores,
    })
    assert.strictEqual(Effect.runSync(run.locate("scores/train/scores.jsonl")), "run/logs/scores/train/scores.jsonl")
    assert.deepStrictEqual([Effect.runSync(run.steps), Effect.runSync(run.episodes)], [80, 8])
  })

  it("reads each file once", () => {
    const { source, run } = readRun({ "config.yaml": "name: tune\n", "metrics.json": '{"steps":5,"episodes":2}' })
    const facts = Effect.all([run.steps, run.episodes, run.metrics, run.configAt(["name"]), run.kind])
    assert.deepStrictEqual(Effect.runSync(facts)[3], "tune")
    Effect.runSync(facts)
    assert.sameMembers([...source.reads], ["run/config.yaml", "run/metrics.json"])
  })

  it("takes the names in a folder from a caller that has listed it", () => {
    const { source } = readRun({ "return.json": "[]" })
    const run = over(source)(unplacedEntry("run"), { names: [] })
    assert.isFalse(Effect.runSync(run.isFinished))
  })
})

describe("the score of a run that learns prompts", () => {
  const candidates = JSON.stringify({
    best: 1,
    candidates: [{ scores: [0, 1] }, { scores: [1, 1], foundAfter: 9 }, { scores: [0, 0], foundAfter: 12 }],
  })
  const scored = (score: number) => `{"episode_index":1,"step_index":1,"score":${score}}\n`
  const unfinished = {
    "config.yaml": "kind: prompts\n",
    "candidates.json": candidates,
    "scores/val/0_seen_episodes_scores.jsonl": scored(0.5),
    "scores/val/12_seen_episodes_scores.jsonl": scored(0),
  }

  it("is the best candidate's, not the last one's, before and after its end", () => {
    const { run } = readRun(unfinished)
    assert.strictEqual(Effect.runSync(run.validation), 1)
    assert.deepInclude(Effect.runSync(run.bestCandidate), { step: 9, mean: 1, std: 0, episodes: 2 })
    const returns = [0.5, 1, 0].map((mean, at) => ({ step: at, returns: [mean], returns_mean: mean, returns_std: 0.1 }))
    const finished = readRun({
      ...unfinished,
      "metrics.json": '{"best":1,"validation":{"mean_return":1}}',
      "return.json": JSON.stringify(returns),
    })
    assert.strictEqual(Effect.runSync(finished.run.validation), 1)
    assert.deepInclude(Effect.runSync(finished.run.bestCandidate), { mean: 1, std: 0.1 })
    assert.notInclude(finished.source.reads, "run/candidates.json")
  })

  it("is that of the last validation if the file of the candidates is damaged", () => {
    for (const text of ["{", "{}", '{"best":3,"candidates":[]}', '{"best":0,"candidates":[{"scores":["x"]}]}']) {
      const { run, source } = readRun({ ...unfinished, "candidates.json": text })
      assert.strictEqual(Effect.runSync(run.validation), 0, text)
      assert.deepStrictEqual(source.warnings, ["run/candidates.json: expected candidates with scores"])
    }
  })
})
