import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as MemorylessAgent from "../../../src/agents/agent/MemorylessAgent.ts"
import { Lm, type LmService } from "../../../src/agents/lm/Lm.ts"
import * as Datasets from "../../../src/agents/task/Datasets.ts"
import { readRollouts } from "../../../src/trainer/batches/rolloutFiles.ts"
import { parse } from "../../../src/trainer/config/OrchestratorConfig.ts"
import { orchestrate } from "../../../src/trainer/orchestrator/Orchestrator.ts"
import { readStepReport } from "../../../src/trainer/records/reports.ts"
import { completion } from "../../agents/lm/support.ts"
import { disk } from "../../run/store/disk.ts"
import { temporaryRunFolder } from "../folders.ts"

/** A model whose answers to a question with "mixed" are right every second time, and cut off where they contain "long". */
const model = (): LmService => {
  let asked = 0
  return {
    complete: ({ messages }) =>
      Effect.sync(() => {
        const question = JSON.stringify(messages)
        const isRight = question.includes("right") || (question.includes("mixed") && asked++ % 2 === 0)
        return {
          ...completion(isRight ? "yes" : "no"),
          finishReason: question.includes("long") ? ("length" as const) : ("stop" as const),
          tokens: { promptIds: [1], completionIds: [2, isRight ? 3 : 4], logprobs: [-1, -1] },
        }
      }),
  }
}

/** Makes the first step of a run with these questions, and returns its samples and its metrics. */
const made = (questions: ReadonlyArray<string>, batch: string) =>
  Effect.gen(function* () {
    const folder = yield* temporaryRunFolder
    const config = yield* parse(`batch: { size: 4, group_size: 2, ${batch} }\nmax_steps: 1`, "orch.yaml")
    const items = questions.map((question) => ({ question, answer: "yes" }))
    const { tasks } = yield* Datasets.open({ type: "qa", items }, { baseDir: "." })
    const run = { id: folder.id, directory: folder.directory, config }
    const play = Effect.suspend(() =>
      orchestrate(
        {
          run,
          tasks,
          validation: null,
          width: 64,
          agentOf: (lm) => Effect.provideService(MemorylessAgent.make({ model: "policy" }), Lm, lm),
          policy: model(),
          encode: () => Effect.die("no step is supervised"),
          awaitWeights: () => Effect.void,
        },
        0,
      ),
    )
    yield* play
    const { samples } = yield* readRollouts(folder, 0)
    const metrics = (yield* readStepReport(folder, 0))?.metrics ?? {}
    if (batch.includes("replaced_groups: 40")) {
      yield* folder.tree.remove("rollouts/step_0")
      yield* play
      assert.deepStrictEqual((yield* readRollouts(folder, 0)).samples, samples, "another start makes the same samples")
    }
    return { samples, metrics }
  }).pipe(Effect.provide(disk))

describe("groups that are played in the place of others", () => {
  it.effect("are those of other tasks, then of other seeds, until enough groups have rewards that differ", () =>
    Effect.gen(function* () {
      const { samples, metrics } = yield* made(["right", "wrong", "mixed", "right too"], "replaced_groups: 40")
      assert.lengthOf(samples, 4)
      for (const { advantages } of samples) assert.notStrictEqual(advantages[1], 0)
      assert.deepStrictEqual(new Set(samples.map(({ group }) => group)), new Set([0, 1]))
      assert.isAtLeast(metrics["sampling/replaced_groups"], 3)
      assert.strictEqual(metrics["sampling/even_groups"], 0)
      // The reward is that of all episodes, also of those that are not trained on.
      assert.notStrictEqual(metrics["sampling/reward"], 0.5)
    }),
  )

  it.effect("are at most as many as the config allows", () =>
    Effect.gen(function* () {
      const { samples, metrics } = yield* made(["right", "wrong"], "replaced_groups: 3")
      assert.strictEqual(metrics["sampling/replaced_groups"], 3)
      assert.lengthOf(samples, 4)
      assert.strictEqual(metrics["sampling/even_groups"], 1)
    }),
  )
})

describe("filters of samples", () => {
  it.effect("leave out single samples, whose rewards still count", () =>
    Effect.gen(function* () {
      const { samples, metrics } = yield* made(["mixed", "right long"], "filters: [complete, parsed]")
      assert.lengthOf(samples, 2)
      assert.strictEqual(metrics["sampling/filtered_complete"], 2)
      assert.strictEqual(metrics["sampling/filtered_parsed"], 0)
      // One of two answers is right, and two that are cut off have a penalty of 0.1 each.
      assert.closeTo(metrics["sampling/reward"], (1 - 0.1 - 0.1) / 4, 1e-9)
      assert.notProperty(metrics, "sampling/replaced_groups")
    }),
  )

  it.effect("that leave out everything leave a sample from which nothing is learned", () =>
    Effect.gen(function* () {
      const { samples, metrics } = yield* made(["mixed long"], "filters: [complete]")
      assert.lengthOf(samples, 1)
      assert.deepStrictEqual(samples[0].mask, new Uint8Array(3))
      assert.deepStrictEqual(samples[0].advantages, new Float32Array(3))
      assert.strictEqual(metrics["sampling/filtered_complete"], 4)
    }),
  )
})
