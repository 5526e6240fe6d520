/** The names of a run's files, both ways, and where a config places them. */
import { assert, describe, it } from "vitest"
import * as Layout from "../../src/run/Layout.ts"

it.for([
  [undefined, "checkpoints"],
  [{ checkpoint: { dir: null } }, "checkpoints"],
  [{ checkpoint: { dir: "./models/" } }, "models"],
  [{ runtime: { checkpoint_dir: "a//b" } }, "a/b"],
  [{ runtime: { checkpoint_dir: "/data/a/" } }, "/data/a"],
  [{ checkpoint: { dir: "./" } }, "."],
] as const)("a config %j keeps checkpoints in %j", ([config, folder]) =>
  assert.strictEqual(Layout.locate(Layout.placesIn(config), Layout.checkpoints), folder),
)

it.for([
  ["models/latest.json", "models", "latest.json"],
  ["models2/latest.json", "models", undefined],
  ["step_010/weights", ".", "step_010/weights"],
  ["ep_000001/agent.json", ".", "ep_000001/agent.json"],
  ["latest.json", ".", "latest.json"],
  ["steps/1/trajectories.json", ".", undefined],
  ["config.yaml", ".", undefined],
] as const)("%s lies below the checkpoints of %j as %j", ([path, folder, below]) =>
  assert.strictEqual(Layout.belowCheckpoints(path, folder), below),
)

describe("places", () => {
  it("of scores follow the path of their file", () => {
    const places = Layout.placesIn({ runtime: { scores_path: "./logs/scores.jsonl" } })
    assert.strictEqual(Layout.locate(places, Layout.trainScores), "logs/scores/train/scores.jsonl")
    assert.strictEqual(
      Layout.locate(places, Layout.validationScores(50)),
      "logs/scores/val/50_seen_episodes_scores.jsonl",
    )
  })

  it("of logs follow log_dir, and other files stay", () => {
    const places = Layout.placesIn({ log_dir: "logs/" })
    assert.strictEqual(Layout.locate(places, Layout.log), "logs/run.log")
    assert.strictEqual(Layout.locate(places, Layout.metrics), "metrics.json")
  })

  it("in the run's own folder have no folder before them", () =>
    assert.strictEqual(Layout.locate(Layout.places({ checkpoints: "./" }), "checkpoints/latest.json"), "latest.json"))

  it("that are the usual ones are left out", () =>
    assert.deepStrictEqual(Layout.places({ checkpoints: "checkpoints", logs: ".", scores: null }), {}))
})

describe("names", () => {
  it("of validations tell how many episodes were seen", () => {
    assert.strictEqual(Layout.seenEpisodesOf(Layout.fileName(Layout.validationScores(50))), 50)
    assert.strictEqual(Layout.seenEpisodesOf(Layout.fileName(Layout.rollouts(50))), 50)
    assert.isUndefined(Layout.seenEpisodesOf("50_seen_episodes_samples.jsonl"))
  })

  it("of checkpoints and step folders tell their count, and others nothing", () => {
    assert.deepStrictEqual(Layout.checkpointOf(Layout.checkpointName("step", 640)), { unit: "step", count: 640 })
    assert.deepStrictEqual(Layout.checkpointOf(Layout.checkpointName("ep", 10)), { unit: "ep", count: 10 })
    assert.isUndefined(Layout.checkpointOf("latest"))
    assert.strictEqual(Layout.stepFolder(2000), "steps/000000000002000")
    assert.strictEqual(Layout.stepOf("000000000002000"), 2000)
    assert.strictEqual(Layout.stepOfPolicy("steps/000000000002000/checkpoint.h5"), "steps/000000000002000")
    assert.isUndefined(Layout.stepOfPolicy("steps/000000000002000/evaluation_results.json"))
  })

  it("of calls tell the phase, the episode, the step and the call", () => {
    const place = { purpose: "action", episode: 1, step: 2 }
    assert.strictEqual(
      Layout.callFile({ ...place, phase: "train" }, 3),
      "llm_calls/train/actions/action_episode_000001_step_0002_call_03.json",
    )
    assert.strictEqual(
      Layout.callFolder({ ...place, phase: { seenEpisodes: 50 } }),
      "llm_calls/validation/val_50/actions",
    )
  })

  it("of validations' score files are put in the order in which they were written", () =>
    assert.deepStrictEqual(
      Layout.validationFilesIn([
        "10_seen_episodes_scores.jsonl",
        "notes.txt",
        "9_seen_episodes_scores.jsonl",
        ".9.tmp",
      ]),
      ["9_seen_episodes_scores.jsonl", "10_seen_episodes_scores.jsonl"],
    ))
})
