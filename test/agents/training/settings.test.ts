import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit } from "effect"
import { history, keep, type Kept, tasks, withoutTimes } from "./support.ts"

const input = { agent: history, train: tasks(12), validation: tasks(3) }

const below = ({ files }: Kept, folder: string): ReadonlyArray<string> =>
  [...files.keys()].filter((path) => path.startsWith(folder)).sort()

const checkpoints = (kept: Kept): ReadonlyArray<string> => [
  ...new Set(below(kept, "checkpoints/ep_").map((path) => path.split("/")[1])),
]

describe("runtime settings", () => {
  it.effect.each([
    [undefined, "scores"],
    ["scores.jsonl", "scores"],
    ["logs/scores.jsonl", "logs/scores"],
    ["logs", "logs/scores"],
    ["logs/of.mine/", "logs/scores"],
    ["./logs/deep/", "logs/deep/scores"],
  ] as const)("scores_path %s: scores lie in %s", ([scoresPath, folder]) =>
    Effect.gen(function* () {
      const runtime = { validationFreq: 6, ...(scoresPath === undefined ? {} : { scoresPath }) }
      const kept = yield* keep({ ...input, runtime })
      const found = [...kept.files.keys()].filter((path) => path.includes("scores/")).sort()
      assert.deepEqual(found, [
        `${folder}/train/scores.jsonl`,
        `${folder}/val/12_seen_episodes_scores.jsonl`,
        `${folder}/val/6_seen_episodes_scores.jsonl`,
      ])
    }),
  )

  it.effect.each([[{}], [{ validationFreq: null }], [{ validationFreq: 0 }]])("%o validates nothing", ([runtime]) =>
    Effect.gen(function* () {
      const kept = yield* keep({ ...input, runtime })
      assert.strictEqual(kept.result.trainEpisodes, 12)
      assert.isNull(kept.result.validation)
      assert.deepEqual(below(kept, "scores/val"), [])
    }),
  )

  it.effect("start_episode_index passes the first ones over, and max_envs_to_visit counts them", () =>
    Effect.gen(function* () {
      const kept = yield* keep({
        ...input,
        runtime: { startEpisodeIndex: 4, maxEnvsToVisit: 10, checkpointOnStart: true, runValidationAtStart: true },
      })
      const lines = withoutTimes(kept.files.get("scores/train/scores.jsonl"))
      const episodes = new Set(lines.map((line) => Reflect.get(Object(line), "episode_index")))
      assert.deepEqual([...episodes], [5, 6, 7, 8, 9, 10])
      assert.deepEqual(below(kept, "scores/val"), ["scores/val/4_seen_episodes_scores.jsonl"])
      assert.include(checkpoints(kept), "ep_000004")
      assert.include(checkpoints(kept), "ep_000010")
    }),
  )

  it.effect("a capped episode is cut off, which is not its end, and what was seen last is kept", () =>
    Effect.gen(function* () {
      const kept = yield* keep({ ...input, train: tasks(1), validation: null, runtime: { maxStepsPerEpisode: 1 } })
      const [line, ...others] = withoutTimes(kept.files.get("scores/train/scores.jsonl"))
      assert.deepEqual(others, [])
      assert.deepInclude(line, {
        terminated: false,
        truncated: true,
        truncation_reason: "max_steps",
        next_observation: "What is [0] called?",
      })
    }),
  )

  it.effect("checkpoints are the newest so many, or all, or only the last", () =>
    Effect.gen(function* () {
      const runs = yield* Effect.forEach(
        [
          { checkpointEveryEpisodes: 3, checkpointKeepLast: 2 },
          { checkpointEveryEpisodes: 3, checkpointKeepLast: 0 },
          { checkpointEveryEpisodes: 0 },
        ],
        (runtime) => keep({ ...input, runtime }),
      )
      assert.deepEqual(runs.map(checkpoints), [
        ["ep_000009", "ep_000012"],
        ["ep_000003", "ep_000006", "ep_000009", "ep_000012"],
        ["ep_000012"],
      ])
    }),
  )

  it.effect("top_k_val keeps those with the best validations, of equal ones the later, and latest is never gone", () =>
    Effect.gen(function* () {
      const kept = yield* keep({
        ...input,
        runtime: {
          validationFreq: 2,
          runValidationAtStart: true,
          checkpointEveryEpisodes: 0,
          checkpointStrategy: "top_k_val",
          checkpointKeepLast: 2,
        },
      })
      // From the sixth episode on it knows the names of all that it is asked.
      const scores = new Map(
        kept.events.flatMap((event) => (event._tag === "ValidationEnded" ? [[event.step, event.meanReturn]] : [])),
      )
      assert.deepEqual([...scores.keys()], [0, 2, 4, 6, 8, 10, 12])
      assert.strictEqual(scores.get(12), scores.get(10))
      assert.isAbove(scores.get(12) ?? 0, scores.get(0) ?? Infinity)
      assert.deepEqual(checkpoints(kept), ["ep_000010", "ep_000012"])
      const runtime: unknown = JSON.parse(kept.files.get("checkpoints/ep_000010/runtime.json") ?? "")
      assert.deepInclude(runtime, { episode_index: 10, val_score: scores.get(10) })
      const latest: unknown = JSON.parse(kept.files.get("checkpoints/latest.json") ?? "")
      assert.deepEqual(latest, { path: "ep_000012" })
    }),
  )

  it.effect("what doesn't go together is told by its key before anything is played", () =>
    Effect.gen(function* () {
      for (const [more, said] of [
        [{ runtime: { checkpointStrategy: "top_k_val" } }, "runtime.checkpoint_strategy"],
        [{ runtime: { scoresPath: "../outside" } }, "runtime.scores_path"],
        [{ runtime: { checkpointDir: "a/../../b" } }, "runtime.checkpoint_dir"],
        [{ runtime: { startEpisodeIndex: 13 } }, "runtime.start_episode_index"],
        [{ train: null }, "train_dataset"],
      ] as const) {
        const exit = yield* Effect.exit(keep({ ...input, ...more }))
        assert(Exit.isFailure(exit))
        assert.include(String(exit.cause), said)
      }
    }),
  )
})
