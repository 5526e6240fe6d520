import { fileURLToPath } from "node:url"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import * as Wasm from "../../../src/tensor/backend/wasm.ts"
import { openBaseModel } from "../../../src/trainer/baseModel.ts"
import { makeMicroBatch } from "../../../src/trainer/batches/MicroBatch.ts"
import { MultiRunConfig } from "../../../src/trainer/config/MultiRunConfig.ts"
import { compileReference } from "../../../src/trainer/reference/compileReference.ts"
import { ReferenceThreads } from "../../../src/trainer/reference/ReferenceThreads.ts"
import * as Node from "../../../src/node.ts"

const folder = fileURLToPath(new URL("../../fixtures/hugging-face/llama", import.meta.url))

const { model, trainer, seed } = Schema.decodeUnknownSync(MultiRunConfig)({
  kind: "multirun",
  model: { type: "folder", path: folder },
  trainer: { rows: 2, width: 16, block: 16, max_runs: 2, lora: { rank: 4, alpha: 8 } },
  runs: {},
})

/** A micro-batch with one sample in each window. */
const microBatchOf = (first: number) => {
  const microBatch = makeMicroBatch(trainer)
  for (let at = 0; at < trainer.rows * trainer.width; at++) {
    microBatch.tokens[at] = (first + at * 31) % 384
    microBatch.positions[at] = at % trainer.width
    microBatch.contexts[at] = at % trainer.width === 0 ? -1 : at - 1
  }
  microBatch.ends.fill(trainer.width)
  return microBatch
}

const start = (task: { readonly model: typeof model }) =>
  Effect.flatMap(ReferenceThreads, (threads) => threads.start({ ...task, trainer, seed, baseDir: ".", device: "wasm" }))

describe("a reference in a thread", () => {
  it.effect("computes the same bits as in this thread, for several micro-batches at once", () =>
    Effect.gen(function* () {
      const base = yield* Effect.provide(openBaseModel(model, { baseDir: ".", seed }), Node.platform)
      const logProbabilitiesOf = yield* compileReference(trainer, base)
      const thread = yield* start({ model })
      const microBatches = [1, 2, 3].map(microBatchOf)
      const there = yield* Effect.flatMap(Effect.forEach(microBatches, thread.compute), Effect.all)
      assert.deepStrictEqual(there, yield* Effect.forEach(microBatches, logProbabilitiesOf))
      assert.isBelow(there[0][5], -0.1)
      assert.notDeepEqual(there[0], there[1])
      // The arrays of the caller are copied, not taken away.
      assert.strictEqual(microBatches[0].tokens.length, 32)
    }).pipe(Effect.provide([Wasm.layer, Node.trainerThreads({ backend: "wasm" })])),
  )

  it.effect("is lost if its model cannot be opened", () =>
    Effect.gen(function* () {
      const thread = yield* start({ model: { type: "folder", path: "/nowhere/model", quantization: null } })
      const answer = yield* thread.compute(microBatchOf(1))
      assert.include((yield* Effect.flip(answer)).message, "the reference's thread was lost")
    }).pipe(Effect.provide(Node.trainerThreads({ backend: "wasm" }))),
  )
})
