import { assert, describe, it } from "@effect/vitest"
import { Effect, Ref } from "effect"
import * as MemorylessAgent from "../../../src/agents/agent/MemorylessAgent.ts"
import { Lm } from "../../../src/agents/lm/Lm.ts"
import { orchestrate } from "../../../src/trainer/orchestrator/Orchestrator.ts"
import { parse } from "../../../src/trainer/config/OrchestratorConfig.ts"
import { stableSteps } from "../../../src/trainer/runs/stepFolders.ts"
import * as Datasets from "../../../src/agents/task/Datasets.ts"
import { disk } from "../../run/store/disk.ts"
import { temporaryRunFolder } from "../folders.ts"

/** Makes the samples of a run that only imitates, while the trainer has the weights of step `reached` at most. */
const madeUntil = (reached: number, settings: string) =>
  Effect.gen(function* () {
    const folder = yield* temporaryRunFolder
    const config = yield* parse(`batch: { size: 2, group_size: 1 }\n${settings}`, "orch.yaml")
    const { tasks } = yield* Datasets.open({ type: "reverse_text", num_tasks: 4 }, { baseDir: "." })
    const wanted = yield* Ref.make<ReadonlyArray<number>>([])
    yield* Effect.exit(
      orchestrate(
        {
          run: { id: folder.id, directory: folder.directory, config },
          tasks,
          validation: null,
          width: 64,
          agentOf: (lm) => Effect.provideService(MemorylessAgent.make({ model: "policy" }), Lm, lm),
          policy: { complete: () => Effect.die("a supervised step asks no model") },
          encode: (_, move) =>
            Effect.succeed({
              content: String(move),
              toolCalls: [],
              finishReason: "stop",
              usage: { inputTokens: 2, outputTokens: 1, reasoningTokens: 0 },
              tokens: { promptIds: [1, 2], completionIds: [3], logprobs: null },
              model: "target",
              attempts: 1,
            }),
          awaitWeights: (step) =>
            Effect.andThen(
              Ref.update(wanted, (steps) => [...steps, step]),
              step <= reached ? Effect.void : Effect.fail({ message: "the weights do not come" }),
            ),
        },
        0,
      ),
    )
    return { made: yield* stableSteps(folder.tree, "rollouts"), wanted: yield* Ref.get(wanted) }
  }).pipe(Effect.provide(disk))

describe("an orchestrator", () => {
  it.effect("makes supervised steps ahead of the trainer, but only a few", () =>
    Effect.gen(function* () {
      const supervised = "max_steps: 20\nsupervised: { steps: 20 }"
      const { made, wanted } = yield* madeUntil(2, `${supervised}\nmax_async_level: 0`)
      assert.deepStrictEqual(made, [0, 1, 2, 3, 4, 5, 6])
      assert.strictEqual(wanted.at(-1), 3)
      assert.lengthOf((yield* madeUntil(2, `${supervised}\nmax_async_level: 6`)).made, 9)
    }),
  )

  it.effect("makes all steps of a run that is trained to its end", () =>
    Effect.gen(function* () {
      const { made } = yield* madeUntil(20, "max_steps: 6\nsupervised: { steps: 6 }")
      assert.deepStrictEqual(made, [0, 1, 2, 3, 4, 5])
    }),
  )
})
