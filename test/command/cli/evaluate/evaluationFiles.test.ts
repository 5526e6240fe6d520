import { existsSync, globSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "vitest"
import { validator } from "../../../house/validators.ts"
import { effect, resultOf, withFolder, write } from "../effect.ts"
import { schemasOf, validated, type SchemaFor } from "../filesOfRun.ts"

/** All that can be said, two tries of a game of several steps, and one agent whose prices aren't known. */
const evaluation = `
name: doors
description: what an evaluation leaves
dataset: { type: key_door, num_tasks: 2 }
agents:
  first:
    type: memoryless_agent
    lm_config: { model: "scripted:reader", log_calls: true, api_key: secret-0815, prices: [{ model: reader, input: 1, output: 2 }] }
    trace_tokens: true
  second:
    type: tool_agent
    lm_config: { model: "scripted:reader" }
scorers: [score, { type: solved, threshold: 0.5 }, { type: judge, rubric: Is it polite?, lm_config: { model: "scripted:reader" } }]
repeats: 2
pass_at: [1, 2]
by: [level]
max_steps_per_episode: 3
workers: 1
`

const schemaFor: SchemaFor = [
  [/^episodes\.jsonl$/, "files/evaluation-episode.schema.json"],
  [/^steps\.jsonl$/, "files/evaluation-step.schema.json"],
  [/^scores\/val\/\d+_seen_episodes_scores\.jsonl$/, "files/score.schema.json"],
  [/^rollouts\/val\/\d+_seen_episodes_rollouts\.jsonl$/, "files/rollout.schema.json"],
  [/^llm_calls\/.*\.json$/, "files/llm-call.schema.json"],
  [/^git\.json$/, "files/git.schema.json"],
  [/^run\.lease$/, "files/lease.schema.json"],
  [/^system\.jsonl$/, "files/system.schema.json"],
  [/^config\.(json|yaml)$/, "evaluation.schema.json"],
  // Text, a table for spreadsheets, and TensorBoard's own format.
  [/^(run\.log|description\.txt|table\.csv|git\.diff|logs\.tfevents)$/, null],
]
const unfinished: SchemaFor = [...schemaFor, [/^played\.jsonl$/, "files/played.schema.json"]]
const finished: SchemaFor = [
  ...schemaFor,
  [/^metrics\.json$/, "files/metrics.schema.json"],
  [/^return\.json$/, "files/return.schema.json"],
]

describe("the files of an evaluation", () => {
  it("are each as schemas/ says, when it was stopped and when it is finished", { tags: "slow" }, () =>
    withFolder(async (folder) => {
      const file = write(folder, "tasks.yaml", evaluation)
      const args = ["eval", file, "--results-dir", join(folder, "results"), "--quiet", "--json"]
      const stopped = await effect([...args, "--set", "agents.second.lm_config.budget.calls=20"], folder)
      assert.strictEqual(stopped.code, 1, stopped.stderr)
      assert.include(stopped.stderr, "the budget of 20 calls is spent")
      const [run] = globSync(join(folder, "results/*/*/*/*"))
      assert.isTrue(existsSync(join(run, "played.jsonl")))
      assert.sameMembers([...validated(run, unfinished)], [...schemasOf(unfinished)])

      const outcome = await effect([...args, "--resume", run], folder)
      assert.strictEqual(outcome.code, 0, outcome.stderr)
      assert.deepInclude(resultOf(outcome), { episodes: 8, failed: 0 })
      assert.sameMembers([...validated(run, finished)], [...schemasOf(finished)])
    }),
  )

  it("are seen to be wrong where a key is missing, too much, or of another type", () => {
    const problem = validator("files/played.schema.json")
    assert.isUndefined(problem({ evaluation: { seed: 1 } }))
    for (const wrong of [{ evaluation: 1 }, { evaluation: {}, more: 1 }, {}, { seconds: 1 }]) {
      assert.isDefined(problem(wrong), JSON.stringify(wrong))
    }
  })
})
