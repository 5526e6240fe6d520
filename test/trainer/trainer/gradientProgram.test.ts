import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { Backend } from "../../../src/tensor/backend/Backend.ts"
import * as Wasm from "../../../src/tensor/backend/wasm.ts"
import * as Losses from "../../../src/rl/losses/Losses.ts"
import * as Decoder from "../../../src/decoder/networks/Decoder.ts"
import { makeMicroBatch } from "../../../src/trainer/batches/MicroBatch.ts"
import { makePacker } from "../../../src/trainer/batches/Packer.ts"
import type { Mixing } from "../../../src/trainer/batches/packUnits.ts"
import type { TrainingSample } from "../../../src/trainer/batches/TrainingSample.ts"
import { compileGradient, compileGradients } from "../../../src/trainer/trainer/gradientProgram.ts"
import { addSums, gradientsOf } from "../../../src/trainer/trainer/runGradients.ts"
import { stream } from "../../../src/base/rng/Rng.ts"
import { tinyConfig as config } from "../../decoder/networks/configs.ts"

const shape = { rank: 4, targets: Decoder.projections }
const sizes = { rows: 2, width: 16, block: 4, maxRuns: 3 }

const sampleOf = (seed: number, at: number): TrainingSample => {
  const random = stream(seed, "sample", at)
  const length = 4 + random.integer(9)
  const prompt = 1 + random.integer(3)
  const written = (numberOf: () => number) =>
    Float32Array.from({ length }, (_, token) => (token < prompt ? 0 : numberOf()))
  return {
    id: `${seed}-${at}`,
    tokens: Int32Array.from({ length }, () => random.integer(config.vocabSize)),
    mask: Uint8Array.from({ length }, (_, token) => (token < prompt ? 0 : 1)),
    logprobs: written(() => -0.5 - 2 * random.uniform()),
    advantages: written(() => random.normal()),
    temperature: 1,
  }
}

const objectiveOf = Schema.decodeSync(Losses.TokenObjective)
const adaptersWithNumbers = () => {
  const adapters = new Decoder.MultiLoRA(config, shape, sizes.maxRuns)
  for (let run = 0; run < sizes.maxRuns; run++) {
    adapters.reset(run, { rank: 4, alpha: 8 }, stream(7, "adapter", run))
    const random = stream(8, "more", run)
    adapters.row(run).forEach((_, at, row) => void (row[at] += 0.1 * random.normal()))
  }
  return adapters
}

/** Returns the summed gradients of runs that are packed together, by the index of the run. */
const trained = (
  objective: Losses.TokenObjective,
  runs: ReadonlyArray<number>,
  mixing: Mixing,
  broken: number | null = null,
) =>
  Effect.gen(function* () {
    const adapted = { shape, maxRuns: sizes.maxRuns }
    const program = yield* compileGradient({ config, ...sizes, mixing, adapters: adapted }, objective)
    const weights = Decoder.initialValues(Decoder.parametersOf(config), stream(1, "weights"))
    const adapters = adaptersWithNumbers()
    if (broken !== null) adapters.row(broken).fill(NaN)
    yield* program.writeBase(weights)
    yield* program.writeAdapters(adapters.table, adapters.scalings)
    const packer = makePacker({ ...sizes, ranks: 1, mixing })
    for (const run of runs) {
      packer.open(run, { id: `run_${run}`, step: 0, rulesAt: () => ({ normalisation: { type: "token_mean" } }) })
      packer.offer(run, { step: 0, samples: Array.from({ length: 5 }, (_, at) => sampleOf(run, at)) })
    }
    const sums = Array.from({ length: sizes.maxRuns }, () => new Float32Array(adapters.size))
    const reports = Array.from({ length: sizes.maxRuns }, (): Report => ({ loss: 0, sums: { tokens: 0 } }))
    const scratch = makeMicroBatch(sizes)
    for (let pack = packer.pack(); pack !== undefined; pack = packer.pack()) {
      for (const microBatch of pack.microBatches) {
        for (const { index, gradient, loss, sums: own } of yield* gradientsOf(() => program, microBatch, scratch)) {
          gradient.forEach((slope, at) => void (sums[index][at] += slope))
          reports[index] = { loss: reports[index].loss + loss, sums: addSums(reports[index].sums, own) }
        }
      }
    }
    return { sums, reports }
  }).pipe(Effect.scoped, Effect.provide(Wasm.layer))

/** The loss and the sums of metrics of a run. */
interface Report {
  readonly loss: number
  readonly sums: Losses.MetricSums<number>
}

/** Returns the gradients of all runs. */
const summed = (...options: Parameters<typeof trained>) => Effect.map(trained(...options), ({ sums }) => sums)

const largest = (values: Float32Array): number => values.reduce((most, value) => Math.max(most, Math.abs(value)), 0)

describe("the gradient of a micro-batch", () => {
  for (const type of ["sft", "grpo", "gspo", "cispo", "gmpo"] as const) {
    // One objective with rewards and one without stay quick, each in a test of its own.
    const [tags, tagsOfGrpo] = [type === "sft" ? [] : "slow", type === "grpo" ? [] : "slow"]
    const objective = objectiveOf({ type })
    it.effect(
      `by ${type} has the same bits for a run alone and with others, one run per micro-batch`,
      () =>
        Effect.gen(function* () {
          const together = yield* summed(objective, [0, 1, 2], "one-run")
          for (const run of [0, 1, 2]) {
            const alone = (yield* summed(objective, [run], "one-run"))[run]
            assert.isAbove(largest(alone), 1e-6)
            assert.deepStrictEqual(together[run], alone)
          }
        }),
      { tags },
    )

    it.effect(
      `by ${type} comes with the loss and the metrics of each run, also if a micro-batch holds several`,
      () =>
        Effect.gen(function* () {
          const { reports } = yield* trained(objective, [0, 1, 2], "many-runs")
          for (const run of [0, 1, 2]) {
            const alone = (yield* trained(objective, [run], "one-run")).reports[run]
            assert.isAbove(alone.sums.tokens, 0)
            assert.approximately(reports[run].loss, alone.loss, 1e-5)
            assert.deepStrictEqual(Object.keys(reports[run].sums), Object.keys(alone.sums))
            for (const [name, sum] of Object.entries(alone.sums))
              assert.approximately(
                Number(Reflect.get(reports[run].sums, name)),
                sum,
                1e-5 * Math.max(1, Math.abs(sum)),
                name,
              )
          }
          const [first, second] = reports
          assert.notStrictEqual(first.loss, second.loss)
        }),
      { tags: tagsOfGrpo },
    )

    it.effect(
      `by ${type} is the same to 1e-6 with several runs per micro-batch`,
      () =>
        Effect.gen(function* () {
          const together = yield* summed(objective, [0, 1, 2], "many-runs")
          for (const run of [0, 1, 2]) {
            const alone = (yield* summed(objective, [run], "one-run"))[run]
            const difference = largest(alone.map((slope, at) => slope - together[run][at]))
            assert.isAtMost(difference, 1e-6 * Math.max(1, largest(alone)))
          }
        }),
      { tags: tagsOfGrpo },
    )
  }

  it.effect("is not changed by another run whose adapter is not finite", () =>
    Effect.gen(function* () {
      const objective = objectiveOf({ type: "grpo" })
      for (const mixing of ["one-run", "many-runs"] as const) {
        const healthy = yield* summed(objective, [0, 1, 2], mixing)
        const broken = yield* summed(objective, [0, 1, 2], mixing, 1)
        assert.isTrue(broken[1].some(Number.isNaN))
        for (const run of [0, 2]) assert.deepStrictEqual(broken[run], healthy[run])
      }
    }),
  )

  it.effect("has the same bits if programs for several objectives share the weights", () =>
    Effect.gen(function* () {
      const objectives = [{ type: "sft" }, { type: "grpo", kl: { coefficient: 0.1 } }, { type: "gspo" }] as const
      const all = objectives.map((one) => objectiveOf(one))
      const shapes = { config, ...sizes, mixing: "one-run", adapters: { shape, maxRuns: sizes.maxRuns } } as const
      const together = yield* compileGradients(shapes, all)
      const weights = Decoder.initialValues(Decoder.parametersOf(config), stream(1, "weights"))
      const adapters = adaptersWithNumbers()
      // One of them gets the weights, for all.
      yield* together[0].writeBase(weights)
      yield* together[0].writeAdapters(adapters.table, adapters.scalings)
      const packer = makePacker({ ...sizes, ranks: 1, mixing: "one-run" })
      packer.open(1, { id: "run_1", step: 0, rulesAt: () => ({ normalisation: { type: "token_mean" } }) })
      packer.offer(1, { step: 0, samples: Array.from({ length: 3 }, (_, at) => sampleOf(1, at)) })
      const pack = packer.pack()
      assert.isDefined(pack)
      for (const [at, objective] of all.entries()) {
        const alone = yield* compileGradient(shapes, objective)
        yield* alone.writeBase(weights)
        yield* alone.writeAdapters(adapters.table, adapters.scalings)
        for (const program of [alone, together[at]]) yield* program.run(pack.microBatches[0])
        assert.isAbove(largest(alone.gradientOf(1)), 1e-6)
        assert.deepStrictEqual(together[at].gradientOf(1), alone.gradientOf(1), objective.type)
        assert.strictEqual(together[at].lossOf(1), alone.lossOf(1))
      }
    }).pipe(Effect.scoped, Effect.provide(Wasm.layer)),
  )

  it.effect("trains all weights if there are no adapters", () =>
    Effect.gen(function* () {
      const objective = objectiveOf({ type: "grpo" })
      const program = yield* compileGradient({ config, ...sizes, mixing: "one-run", adapters: null }, objective)
      const parameters = Decoder.parametersOf(config)
      const weights = Decoder.initialValues(parameters, stream(1, "weights"))
      yield* program.writeBase(weights)
      yield* program.writeReference(weights)
      const packer = makePacker({ ...sizes, ranks: 1, mixing: "one-run" })
      packer.open(0, { id: "run_0", step: 0, rulesAt: () => ({ normalisation: { type: "token_mean" } }) })
      packer.offer(0, { step: 0, samples: [sampleOf(3, 0)] })
      const pack = packer.pack()
      assert.isDefined(pack)
      yield* program.run(pack.microBatches[0])
      const size = Object.values(parameters).reduce((sum, { shape: [a, b = 1] }) => sum + a * b, 0)
      assert.strictEqual(program.gradientOf(0).length, size)
      assert.isAbove(largest(program.gradientOf(0)), 1e-6)
      assert.strictEqual(
        program.sumsOf(0).tokens,
        sampleOf(3, 0).mask.reduce((sum, mask) => sum + mask, 0),
      )
      // The weights that are trained are still those of the reference.
      assert.approximately(program.sumsOf(0).referenceKl ?? NaN, 0, 1e-6)
    }).pipe(Effect.scoped, Effect.provide(Wasm.layer)),
  )

  it.effect("names the device of the reference, which may be another one than that of the gradient", () =>
    Effect.gen(function* () {
      const wasm = yield* Backend
      const mixed = Backend.of({
        ...wasm,
        compile: (spec) =>
          Effect.map(wasm.compile(spec), (program) =>
            spec.name === "reference" ? { ...program, device: "another" } : program,
          ),
      })
      const shapes = { config, ...sizes, mixing: "one-run", adapters: null } as const
      const deviceOf = (coefficient: number) =>
        Effect.map(
          compileGradient(shapes, objectiveOf({ type: "grpo", kl: { coefficient } })),
          ({ device, referenceDevice }) => [device, referenceDevice],
        ).pipe(Effect.provideService(Backend, mixed))
      assert.deepStrictEqual(yield* deviceOf(0.1), ["wasm", "another"])
      assert.deepStrictEqual(yield* deviceOf(0), ["wasm", undefined])
    }).pipe(Effect.scoped, Effect.provide(Wasm.layer)),
  )
})
