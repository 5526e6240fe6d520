import { assert, describe, it } from "@effect/vitest"
import { Effect, Ref } from "effect"
import * as MemorylessAgent from "../../../src/agents/agent/MemorylessAgent.ts"
import { Lm, type LmService } from "../../../src/agents/lm/Lm.ts"
import { lmError } from "../../../src/agents/lm/LmError.ts"
import { orchestrate } from "../../../src/trainer/orchestrator/Orchestrator.ts"
import { parse } from "../../../src/trainer/config/OrchestratorConfig.ts"
import { stableSteps } from "../../../src/trainer/runs/stepFolders.ts"
import * as Datasets from "../../../src/agents/task/Datasets.ts"
import { completion } from "../../agents/lm/support.ts"
import { disk } from "../../run/store/disk.ts"
import { temporaryRunFolder } from "../folders.ts"

/** A model whose answers are all cut off, until feedback has made the conversation too long. */
const cutOff: LmService = {
  complete: ({ messages }) =>
    messages.length > 3
      ? Effect.fail(lmError("m", "rejected", "the prompt has 273 tokens", { attempts: 1, promptTooLong: true }))
      : Effect.succeed({
          ...completion("much too"),
          finishReason: "length" as const,
          tokens: { promptIds: Array.from(messages, () => 1), completionIds: [3], logprobs: [-1] },
        }),
}

/** Makes the samples of a run whose conversations grow too long for the model, and returns the files of its first step. */
const madeInLong = (protocol: string) =>
  Effect.gen(function* () {
    const folder = yield* temporaryRunFolder
    const settings = `protocol: ${protocol}\nmax_steps: 1\nmax_failures: 0\nvalidation: { every: 1 }`
    const config = yield* parse(`batch: { size: 2, group_size: 2 }\n${settings}`, "orch.yaml")
    const { tasks } = yield* Datasets.open({ type: "tic_tac_toe", num_tasks: 2 }, { baseDir: "." })
    yield* orchestrate(
      {
        run: { id: folder.id, directory: folder.directory, config },
        tasks,
        validation: tasks,
        width: 64,
        agentOf: (lm) => Effect.provideService(MemorylessAgent.make({ model: "policy" }), Lm, lm),
        policy: cutOff,
        encode: () => Effect.die("no step is supervised"),
        awaitWeights: () => Effect.void,
      },
      0,
    )
    return {
      made: yield* stableSteps(folder.tree, "rollouts"),
      validations: yield* folder.tree.list("validations"),
    }
  }).pipe(Effect.provide(disk))

/** A model whose answers have two tokens. */
const answering: LmService = {
  complete: () =>
    Effect.succeed({ ...completion("ab"), tokens: { promptIds: [1], completionIds: [2, 3], logprobs: [-1, -1] } }),
}

/** Makes the samples of a run while the trainer has the weights of step `reached` at most. */
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
          agentOf: (lm) => Effect.provideService(MemorylessAgent.make({ model: "policy", traceTokens: true }), Lm, lm),
          policy: answering,
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

  it.effect("never plays with weights that are more than max_async_level steps older than those of its step", () =>
    Effect.gen(function* () {
      for (const level of [0, 1, 3]) {
        const { made, wanted } = yield* madeUntil(2, `max_steps: 20\nmax_async_level: ${level}`)
        const steps = Array.from({ length: 3 + level }, (_, step) => step)
        assert.deepStrictEqual(made, steps)
        assert.deepStrictEqual(
          wanted,
          [...steps, 3 + level].map((step) => Math.max(0, step - level)),
        )
      }
    }),
  )

  for (const protocol of ["single_agent", "self_play"])
    it.effect(`keeps episodes that grow too long for the model, as truncated: ${protocol}`, () =>
      Effect.gen(function* () {
        const { made, validations } = yield* madeInLong(protocol)
        assert.deepStrictEqual(made, [0])
        assert.lengthOf(validations, 2)
      }),
    )

  it.effect("makes all steps of a run that is trained to its end", () =>
    Effect.gen(function* () {
      const { made } = yield* madeUntil(20, "max_steps: 6\nsupervised: { steps: 6 }")
      assert.deepStrictEqual(made, [0, 1, 2, 3, 4, 5])
    }),
  )
})
