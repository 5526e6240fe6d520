import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as HistoryAgent from "../../../src/agents/agent/HistoryAgent.ts"
import * as Parser from "../../../src/agents/agent/Parser.ts"
import * as Scripted from "../../../src/agents/lm/providers/scripted.ts"
import { keep, tasks, withoutTimes } from "./support.ts"

/** Mumbles at first, then answers in the form that is asked for, which is worth something by itself. */
const hesitating = Scripted.layer(({ messages }) => {
  const last = messages.at(-1)?.content ?? ""
  return last.includes("Answer with <name>") ? "<name>nobody</name>" : "nobody"
})

const agent = HistoryAgent.make({
  model: "scripted:hesitating",
  parser: Parser.tagged("name", { reward: 0.5 }),
})

describe("scores of agents that talk", () => {
  it.effect("are the task's alone; what the parser gives or takes is the reward", () =>
    Effect.gen(function* () {
      const { result, files } = yield* keep(
        {
          agent,
          train: tasks(1),
          validation: tasks(1),
          seed: 1,
          runtime: { validationFreq: 1, maxStepsPerEpisode: 2 },
          output: { saveRollouts: true },
        },
        { model: hesitating },
      )
      for (const [mode, path] of [
        ["train", "scores/train/scores.jsonl"],
        ["val", "scores/val/1_seen_episodes_scores.jsonl"],
      ]) {
        const lines = withoutTimes(files.get(path))
        assert.containSubset(lines, [
          { mode, score: 0, reward: -0.1, episode_cum_score: 0, action: null, feedback: { score: 0 } },
          { mode, score: 0, reward: 0.5, episode_cum_score: 0, action: "nobody", feedback: { score: 0 } },
        ])
      }
      assert.strictEqual(result.meanScore, 0)
      assert.strictEqual(result.meanReturn, 0)
      assert.strictEqual(result.validation?.meanReturn, 0)
      const rollout: { readonly totalReward: number } = JSON.parse(files.get("rollouts/train/rollouts.jsonl") ?? "{}")
      assert.closeTo(rollout.totalReward, 0.4, 1e-12)
    }),
  )

  it.effect("have no reward of their own where the parser gives nothing", () =>
    Effect.gen(function* () {
      const { files } = yield* keep({
        agent: HistoryAgent.make({ model: "scripted:reader" }),
        train: tasks(1),
        seed: 1,
      })
      const lines = withoutTimes(files.get("scores/train/scores.jsonl"))
      assert.isAbove(lines.length, 0)
      for (const line of lines) assert.notProperty(line, "reward")
    }),
  )
})

describe("the score of a checkpoint", () => {
  it.effect.each(["last_n", "top_k_val"] as const)("is that of the validation at its episode, with %s", (strategy) =>
    Effect.gen(function* () {
      const { files, result } = yield* keep({
        agent: HistoryAgent.make({ model: "scripted:reader" }),
        train: tasks(12),
        validation: tasks(4),
        seed: 1,
        runtime: {
          validationFreq: 6,
          checkpointEveryEpisodes: 3,
          checkpointStrategy: strategy,
          checkpointKeepLast: strategy === "last_n" ? 0 : 9,
        },
      })
      const scoreOf = (file: string, key: string): unknown => JSON.parse(files.get(file) ?? "{}")[key]
      const scores = [3, 6, 9, 12].map((episode) => {
        const folder = `checkpoints/ep_${String(episode).padStart(6, "0")}`
        const score = scoreOf(`${folder}/runtime.json`, "val_score")
        assert.strictEqual(scoreOf(`${folder}/manifest.json`, "score"), score)
        return score
      })
      assert.deepStrictEqual(scores, [null, 1, null, 1])
      assert.strictEqual(result.validation?.meanReturn, 1)
    }),
  )
})
