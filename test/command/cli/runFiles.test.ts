import { join } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, Stream } from "effect"
import { assert, describe, it } from "vitest"
import * as Rollouts from "../../../src/agents/episode/rollouts/Rollouts.ts"
import * as Samples from "../../../src/agents/episode/samples/samples.ts"
import { validator } from "../../house/validators.ts"
import { effect, resultOf, withFolder, write } from "./effect.ts"
import { schemasOf, type SchemaFor, validated } from "./filesOfRun.ts"

/** A run with everything that a run can leave. */
const experiment = (dataset: string) => `
train_dataset: ${dataset}
validation_dataset: ${dataset}
agent:
  type: reflexion_agent
  lm_config: { model: "scripted:reader", log_calls: true, api_key: secret-0815 }
  trace_tokens: true
runtime:
  max_steps_per_episode: 3
  validation_freq: 2
  run_validation_at_start: true
  checkpoint_every_episodes: 2
  checkpoint_on_start: true
  scores_path: null
output: { save_memory_every: 2, save_rollouts: true }
`

const schemaFor: SchemaFor = [
  [/^scores\/(train\/scores|val\/\d+_seen_episodes_scores)\.jsonl$/, "files/score.schema.json"],
  [/^(memories|checkpoints\/[^/]+)\/memory_\d+\.jsonl$/, "files/memory.schema.json"],
  [/^checkpoints\/[^/]+\/runtime\.json$/, "files/runtime.schema.json"],
  [/^checkpoints\/[^/]+\/agent\.json$/, "files/agent.schema.json"],
  [/^checkpoints\/[^/]+\/manifest\.json$/, "files/manifest.schema.json"],
  [/^checkpoints\/latest\.json$/, "files/latest.schema.json"],
  [/^llm_calls\/.*\.json$/, "files/llm-call.schema.json"],
  [/^rollouts\/.*_?rollouts\.jsonl$/, "files/rollout.schema.json"],
  [/^metrics\.json$/, "files/metrics.schema.json"],
  [/^return\.json$/, "files/return.schema.json"],
  [/^git\.json$/, "files/git.schema.json"],
  [/^run\.lease$/, "files/lease.schema.json"],
  [/^system\.jsonl$/, "files/system.schema.json"],
  [/^config\.(json|yaml)$/, "experiment.schema.json"],
  // Text, and TensorBoard's own format.
  [/^(run\.log|description\.txt|git\.diff|logs\.tfevents)$/, null],
]

describe("the files of a run of an agent that talks", () => {
  for (const [what, dataset] of [
    ["questions", "{ type: codebook, num_tasks: 4, words: 3 }"],
    ["a game of several steps", "{ type: key_door, num_tasks: 4 }"],
  ] as const) {
    it(`are each as schemas/ says: ${what}`, { tags: "slow" }, () =>
      withFolder(async (folder) => {
        write(folder, "experiment.yaml", experiment(dataset))
        const outcome = await effect(["run", "experiment.yaml", "--json", "--quiet"], folder)
        assert.strictEqual(outcome.code, 0, outcome.stderr)
        const run = join(folder, resultOf(outcome).runDir)
        assert.sameMembers([...validated(run, schemaFor)], [...schemasOf(schemaFor)], "each of them was needed")

        const making = Effect.gen(function* () {
          const rollouts = yield* Stream.runCollect(Rollouts.read(join(run, "rollouts/train/rollouts.jsonl")))
          return yield* Samples.of([...rollouts])
        })
        const samples = await Effect.runPromise(Effect.provide(making, NodeServices.layer))
        assert.isNotEmpty(samples)
        const problem = validator("files/sample.schema.json")
        for (const sample of samples) assert.isUndefined(problem(JSON.parse(Samples.line(sample))))
      }),
    )
  }

  it("are seen to be wrong where a key is missing, too much, or of another type", () => {
    const line = {
      timestamp: "2026-01-31T12:00:00.000000Z",
      mode: "train",
      episode_index: 1,
      step_index: 1,
      score: 1,
      episode_cum_score: 1,
      env_id: "a",
      env_type: "qa",
    }
    const problem = validator("files/score.schema.json")
    assert.isUndefined(problem(line))
    for (const wrong of [
      { ...line, extra: 1 },
      { ...line, score: "1" },
      { ...line, step_index: 0.5 },
      { ...line, mode: "test" },
      { ...line, env_id: undefined },
    ]) {
      assert.isDefined(problem(wrong), JSON.stringify(wrong))
    }
    const { mode: _, ...less } = line
    assert.isDefined(problem(less))
  })
})
