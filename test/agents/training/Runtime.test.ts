import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { Effect } from "effect"
import { StepScoreRecord } from "../../../src/run/record/stepScores.ts"
import { keep, history, tasks, withoutTimes } from "./support.ts"

const decodeRecord = Schema.decodeSync(Schema.fromJsonString(StepScoreRecord), { onExcessProperty: "error" })

describe("Runtime.run", () => {
  it.effect("has names of agents and data sets with dashes in its path, and as they are in its scores", () =>
    Effect.gen(function* () {
      const train = { ...tasks(2), name: "my_names" }
      const { result, events } = yield* keep({ agent: history, train, seed: 3, name: "my_run" })
      // The run's name is escaped, so that it can be read back from the path.
      assert.match(result.runDir, /_my=5Frun_environment_algorithm\/my-names_history-agent\/0003$/)
      const started = events.find(({ _tag }) => _tag === "RunStarted")
      assert.include(started, { env: "my_names", name: "my_run" })
    }),
  )

  it.effect("plays the tasks in turn, learns, validates, saves, and tells of it all", () =>
    Effect.gen(function* () {
      const { result, files, events } = yield* keep({
        agent: history,
        train: tasks(20),
        validation: tasks(6),
        seed: 3,
        runtime: { validationFreq: 10, runValidationAtStart: true, checkpointEveryEpisodes: 5, checkpointKeepLast: 3 },
        output: { saveMemoryEvery: 8 },
      })
      // Five names: each is got wrong once (and then read from the episode itself), never again.
      assert.strictEqual(result.trainEpisodes, 20)
      assert.strictEqual(result.trainSteps, 25)
      assert.closeTo(result.meanScore ?? NaN, 20 / 25, 1e-12)
      assert.deepEqual(result.validation, { step: 20, episodes: 6, meanReturn: 1, stdReturn: 0 })
      assert.deepEqual([...files.keys()].filter((path) => !path.startsWith("checkpoints/")).sort(), [
        "config.json",
        "config.yaml",
        "description.txt",
        "memories/memory_16.jsonl",
        "memories/memory_20.jsonl",
        "memories/memory_8.jsonl",
        "metrics.json",
        "return.json",
        "run.log",
        "scores/train/scores.jsonl",
        "scores/val/0_seen_episodes_scores.jsonl",
        "scores/val/10_seen_episodes_scores.jsonl",
        "scores/val/20_seen_episodes_scores.jsonl",
      ])
      assert.deepEqual(
        [...files.keys()].filter((path) => path.startsWith("checkpoints/")).sort(),
        [
          ...["ep_000010", "ep_000015", "ep_000020"].flatMap((name) => [
            `checkpoints/${name}/agent.json`,
            `checkpoints/${name}/manifest.json`,
            `checkpoints/${name}/memory_${Number(name.slice(3))}.jsonl`,
            `checkpoints/${name}/runtime.json`,
          ]),
          "checkpoints/latest",
          "checkpoints/latest.json",
        ].sort(),
      )
      const lines = (files.get("scores/train/scores.jsonl") ?? "").trim().split("\n")
      assert.strictEqual(lines.length, 25)
      const records = lines.map((line) => decodeRecord(line))
      assert.deepEqual(
        records
          .slice(0, 3)
          .map((record) => [record.episode_index, record.step_index, record.score, record.episode_cum_score]),
        [
          [1, 1, 0, 0],
          [1, 2, 1, 1],
          [2, 1, 0, 0],
        ],
      )
      assert.deepEqual(records[1].feedback, { score: 1, target: "name-0", message: "Correct." })
      assert.match(records[0].timestamp, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/)
      const metrics = JSON.parse(files.get("metrics.json") ?? "")
      assert.strictEqual(metrics.mean_score, result.meanScore)
      assert.strictEqual(metrics.episodes.length, 20)
      assert.deepEqual(metrics.episodes[0][1], {
        obs: null,
        action: "name-0",
        feedback: { score: 1, target: "name-0", message: "Correct." },
        done: true,
      })
      assert.deepEqual(
        JSON.parse(files.get("return.json") ?? "").map(({ step, returns_mean }: Record<string, number>) => [
          step,
          returns_mean,
        ]),
        [
          [0, 0],
          [10, 1],
          [20, 1],
        ],
      )
      assert.deepEqual(events.at(-1), {
        _tag: "RunEnded",
        step: 20,
        episodes: 20,
        reason: "finished",
        message: null,
      })
      assert.deepEqual(JSON.parse(files.get("checkpoints/latest.json") ?? ""), { path: "ep_000020" })
    }),
  )

  it.effect("is the same to the last bit again", () =>
    Effect.gen(function* () {
      const input = { agent: history, train: tasks(12), validation: tasks(3), runtime: { validationFreq: 4 } }
      const one = yield* keep(input)
      const two = yield* keep(input)
      assert.strictEqual(one.result.digest, two.result.digest)
      for (const path of ["scores/train/scores.jsonl", "scores/val/8_seen_episodes_scores.jsonl"]) {
        assert.deepEqual(withoutTimes(one.files.get(path)), withoutTimes(two.files.get(path)))
      }
      const other = yield* keep({ ...input, train: tasks(12, 4) })
      assert.notStrictEqual(other.result.digest, one.result.digest)
    }),
  )
})
