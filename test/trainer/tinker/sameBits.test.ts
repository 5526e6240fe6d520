import { readFileSync } from "node:fs"
import { join } from "node:path"
import { Effect, Schema } from "effect"
import { afterAll, assert, describe, it } from "vitest"
import * as Safetensors from "../../../src/base/formats/safetensors.ts"
import { stream } from "../../../src/base/rng/Rng.ts"
import * as Decoder from "../../../src/decoder/networks/Decoder.ts"
import * as Losses from "../../../src/rl/losses/Losses.ts"
import * as Wasm from "../../../src/tensor/backend/wasm.ts"
import { makePacker } from "../../../src/trainer/batches/Packer.ts"
import type { TrainingSample } from "../../../src/trainer/batches/TrainingSample.ts"
import * as MultiLoRAOptimizer from "../../../src/trainer/optimisers/MultiLoRAOptimizer.ts"
import { alpha } from "../../../src/trainer/tinker/models/AdapterInTraining.ts"
import { compileGradient } from "../../../src/trainer/trainer/gradientProgram.ts"
import { fakeRuns, slotOf } from "../optimisers/fakeRuns.ts"
import {
  baseOfServers,
  closeShared,
  datum,
  lossBody,
  newModel,
  rank,
  startTinker,
  stepBody,
  temporaryFolder,
} from "./tinkerServer.ts"

afterAll(closeShared)

const settings = {
  adam_params: { learning_rate: 0.03, beta1: 0.8, beta2: 0.97, eps: 1e-7, weight_decay: 0.1, grad_clip_norm: 0.2 },
}
const optimiser = `[optimiser]\ntype = "adamw"\nlr = 0.03\nbetas = [0.8, 0.97]\nepsilon = 1e-7\nweight_decay = 0.1\nmax_norm = 0.2`
const seed = 5
const steps = 4

/** The sequences of a step, the longest first, in which order the trainer packs them, too. */
const sequencesOf = (step: number): ReadonlyArray<ReadonlyArray<number>> => {
  const random = stream(3, "sequences", step)
  return [24, 21, 20, 18].map((length) => Array.from({ length }, () => random.integer(4)))
}

/** Returns the weight of each target: those after the first token are learned, each as much as the others. */
const weightsOf = (sequences: ReadonlyArray<ReadonlyArray<number>>) => {
  const learned = sequences.reduce((sum, { length }) => sum + length - 2, 0)
  return (length: number) => [0, ...Array.from({ length: length - 2 }, () => Math.fround(1 / learned))]
}

/** Trains a run as the multi-run trainer does, and returns its weights after each step, and the norms of its gradients. */
const inProcess = async () => {
  const { decoder: config, weights } = await baseOfServers()
  const sizes = { rows: 32, width: 32, block: 32, maxRuns: 1 }
  const shape = { rank, targets: Decoder.projections }
  return Effect.gen(function* () {
    const objective = Schema.decodeSync(Losses.TokenObjective)({ type: "sft" })
    const program = yield* compileGradient(
      { config, ...sizes, mixing: "one-run", adapters: { shape, maxRuns: 1 } },
      objective,
    )
    const adapters = new Decoder.MultiLoRA(config, shape, 1)
    adapters.reset(0, { rank, alpha }, stream(seed, "adapter"))
    yield* program.writeBase(weights)
    yield* program.writeAdapters(adapters.table, adapters.scalings)
    const runs = fakeRuns()
    const optimizer = yield* MultiLoRAOptimizer.make({ runs, parametersOf: () => adapters.namedParametersOf(0) })
    const slot = slotOf(0, optimiser)
    yield* runs.create(slot)
    const packer = makePacker({ ...sizes, ranks: 1, mixing: "one-run" })
    packer.open(0, { id: "run", step: 0, rulesAt: () => ({ normalisation: { type: "token_mean" } }) })
    const norms: Array<number> = []
    for (let step = 0; step < steps; step++) {
      packer.offer(0, { step, samples: sequencesOf(step).map(sampleOf) })
      for (let pack = packer.pack(); pack !== undefined; pack = packer.pack()) {
        yield* program.run(pack.microBatches[0])
        optimizer.accumulate(slot, program.gradientOf(0))
      }
      for (const outcome of yield* optimizer.step([slot]))
        if (outcome._tag === "Stepped") norms.push(outcome.gradientNorm)
    }
    return { weights: adapters.stateDictOf(0), norms }
  }).pipe(Effect.scoped, Effect.provide(Wasm.layer), Effect.runPromise)
}

const sampleOf = (tokens: ReadonlyArray<number>, at: number): TrainingSample => ({
  id: String(at),
  tokens: Int32Array.from(tokens),
  mask: Uint8Array.from(tokens, (_, token) => (token < 2 ? 0 : 1)),
  logprobs: new Float32Array(tokens.length),
  advantages: new Float32Array(tokens.length),
  temperature: 1,
})

describe("the updates of a Tinker server", () => {
  it("have the bits of the multi-run trainer's, for the same batches and settings", { tags: "slow" }, async () => {
    const expected = await inProcess()
    const folder = temporaryFolder()
    const client = await startTinker(folder)
    const { model } = await newModel(client, { seed })
    const norms: Array<number> = []
    for (let step = 0; step < steps; step++) {
      const sequences = sequencesOf(step)
      const weightsFor = weightsOf(sequences)
      const data = sequences.map((tokens) => datum(tokens, { weights: weightsFor(tokens.length) }))
      await client.done("/forward_backward", lossBody(model, 2 * step + 1, data))
      const stepped = await client.done("/optim_step", { ...stepBody(model, 2 * step + 2), ...settings })
      norms.push(stepped.metrics["grad_norm:mean"])
    }
    await client.stop()
    assert.deepStrictEqual(norms, expected.norms)
    const saved = Safetensors.decode(readFileSync(join(folder, "models", model, "state", "state.safetensors")))
    for (const [name, { data }] of Object.entries(expected.weights))
      assert.deepStrictEqual(saved[`numbers.${name}`].data, data, name)
  })
})
