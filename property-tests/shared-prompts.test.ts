import { assert, describe, it } from "@effect/vitest"
import { Effect, Record, Schema } from "effect"
import * as fc from "fast-check"
import type { Program } from "../src/tensor/backend/Backend.ts"
import * as Reference from "../src/tensor/backend/reference.ts"
import * as Wasm from "../src/tensor/backend/wasm.ts"
import { gradients } from "../src/tensor/graph/gradients.ts"
import * as G from "../src/tensor/graph/ops.ts"
import * as Losses from "../src/rl/losses/Losses.ts"
import * as Decoder from "../src/decoder/networks/Decoder.ts"
import { fill, makeMicroBatch, type MicroBatch } from "../src/trainer/batches/MicroBatch.ts"
import { makePacker } from "../src/trainer/batches/Packer.ts"
import type { Mixing } from "../src/trainer/batches/packUnits.ts"
import type { TrainingSample } from "../src/trainer/batches/TrainingSample.ts"
import { compileGradient, feedPacked } from "../src/trainer/trainer/gradientProgram.ts"
import * as Rng from "../src/base/rng/Rng.ts"
import { tinyConfig } from "../test/decoder/networks/configs.ts"
import { compileWith } from "./support/agreement.ts"
import { assertClose, backends, configs, draw, statesFor, write } from "./support/decoders.ts"
import { tries } from "../test/house/tries.ts"

/** The prompts of a step begin with some common tokens; the samples of a group have the same prompt. */
interface Drawn {
  readonly common: number
  /** The number of tokens of each group's prompt after the common ones, and of each answer. */
  readonly groups: ReadonlyArray<{ readonly prompt: number; readonly answers: ReadonlyArray<number> }>
  readonly seed: number
}

const steps: fc.Arbitrary<Drawn> = fc.record({
  common: fc.integer({ min: 1, max: 3 }),
  groups: fc.array(
    fc.record({
      prompt: fc.integer({ min: 0, max: 3 }),
      answers: fc.array(fc.integer({ min: 1, max: 5 }), { minLength: 1, maxLength: 3 }),
    }),
    { minLength: 1, maxLength: 2 },
  ),
  seed: fc.nat(),
})

/** The number of tokens of a window, where a sample with at most 11 has room. */
const width = 16

const samplesOf = ({ common, groups, seed }: Drawn, vocabSize: number, run: number): ReadonlyArray<TrainingSample> => {
  const random = Rng.stream(seed, "samples", run)
  const tokens = (length: number) => Array.from({ length }, () => random.integer(vocabSize))
  const first = tokens(common)
  return groups.flatMap(({ prompt, answers }, group) => {
    const own = [...first, ...tokens(prompt)]
    return answers.map((length, at): TrainingSample => {
      const all = [...own, ...tokens(length)]
      const written = (numberOf: () => number) =>
        Float32Array.from(all, (_, token) => (token < own.length ? 0 : numberOf()))
      return {
        id: `${group}-${at}`,
        tokens: Int32Array.from(all),
        // Now and then a token amid an answer does not count, such as the result of a tool.
        mask: Uint8Array.from(all, (_, token) => Number(token === own.length || (token > own.length && token % 4 > 0))),
        logprobs: written(() => -0.5 - 2 * random.uniform()),
        advantages: written(() => random.normal()),
        temperature: random.between(0.5, 2),
      }
    })
  })
}

/** Returns the only micro-batch of a step of some runs, with shared prompts. */
const packed = (runs: ReadonlyArray<ReadonlyArray<TrainingSample>>, rows: number, mixing: Mixing): MicroBatch => {
  const packer = makePacker({ rows, width, block: 4, maxRuns: 2, ranks: 1, mixing })
  for (const [run, samples] of runs.entries()) {
    packer.open(run, { id: `run_${run}`, step: 0, rulesAt: () => ({ normalisation: { type: "token_mean" } }) })
    packer.offer(run, { step: 0, samples })
  }
  const pack = packer.pack()
  assert.isDefined(pack)
  assert.isTrue(pack.shares.every(({ done }) => done))
  return pack.microBatches[0]
}

/** Returns the micro-batch in which each sample has a window of its own. */
const apart = (runs: ReadonlyArray<ReadonlyArray<TrainingSample>>, rows: number): MicroBatch => {
  const microBatch = makeMicroBatch({ rows, width, block: 4, maxRuns: 2 })
  const counted = runs.map((samples) => Losses.totalsOf(samples.map(({ mask }) => mask)).tokens)
  const all = runs.flatMap((samples, run) => samples.map((sample) => ({ sample, run, weight: 1 / counted[run] })))
  const placed = all.map((one, window) => ({ ...one, window, shared: 0, start: 0 }))
  fill(microBatch, placed, { adapterBefore: 0, padId: 0 })
  return microBatch
}

const placedTokens = ({ sequences }: MicroBatch): number => sequences.filter((sequence) => sequence >= 0).length

/** The numbers of trained tokens, sorted by sample: samples stand in other places if they share their prompts. */
const byToken = (microBatch: MicroBatch, numbers: ArrayLike<number>): ReadonlyArray<number> =>
  Array.from(microBatch.weights.keys())
    .filter((at) => microBatch.mask[at] === 1)
    .sort((a, b) => {
      const { logprobs } = microBatch
      return logprobs[a] - logprobs[b]
    })
    .map((at) => numbers[at])

/** Checks that numbers are equal but for the rounding of doubles, and then of the results to float32. */
const assertSame = (found: ArrayLike<number>, wanted: ArrayLike<number>, message: string): void => {
  assert.strictEqual(found.length, wanted.length, message)
  const size = Math.max(1, ...Array.from(wanted, Math.abs))
  for (let at = 0; at < wanted.length; at++) {
    const within = 2 ** -23 * Math.abs(wanted[at]) + 1e-10 * size
    if (!(Math.abs(found[at] - wanted[at]) <= within))
      assert.fail(`${message}: number ${at} is ${found[at]}, expected ${wanted[at]}`)
  }
}

const shape = { rank: 2, targets: Decoder.projections }

/** Draws adapters with all of their matrices. */
const drawAdapters = (config: Decoder.DecoderConfig, seed: number): Decoder.MultiLoRA => {
  const adapters = new Decoder.MultiLoRA(config, shape, 2)
  for (const run of [0, 1]) {
    adapters.reset(run, { rank: 2, alpha: 2 + run }, Rng.stream(seed, "adapter", run))
    const random = Rng.stream(seed, "matrices", run)
    adapters.row(run).forEach((_, at, row) => (row[at] += 0.3 * random.normal()))
  }
  return adapters
}

describe("samples that share their prompts in a window", () => {
  it("have the log-probabilities, the entropies and all slopes that they have alone, for any decoder", () => {
    fc.assert(
      fc.property(configs, steps, (config, drawn) => {
        // The norm of one number is its sign.
        fc.pre(config.hiddenSize > 1)
        const samples = samplesOf(drawn, config.vocabSize, 0)
        const rows = samples.length
        const { weights, state } = statesFor(config)
        const inputs = Decoder.packedInputs(rows, width)
        const [temperature_t, weight_t] = [G.input("temperature_t", [rows, width]), G.input("weight", [rows, width])]
        const { adapt, adapter, scaling } = Decoder.oneAdapter(config, shape)
        const hidden = Decoder.hiddenStates(config, weights, inputs, adapt)
        const predictions = Decoder.predictions(config, weights, hidden, { ...inputs, temperature: temperature_t })
        const names = Object.keys(weights)
        const slopes = gradients(G.sum(G.mul(predictions.logProbability_t, weight_t)), [
          ...Object.values(weights),
          adapter,
        ])
        const spec = {
          name: "shared",
          inputs: { ...inputs, temperature_t, weight: weight_t, adapter, scaling },
          state,
          outputs: {
            ...predictions,
            ...Object.fromEntries([...names, "adapter"].map((name, at) => [`slope of ${name}`, slopes[at]])),
          },
        }
        const adapters = drawAdapters(config, drawn.seed)
        const resultsOf = (program: Program, microBatch: MicroBatch) => {
          feedPacked(program.feeds, microBatch)
          program.feeds.weight.set(microBatch.weights)
          program.feeds.adapter.set(adapters.row(0))
          program.feeds.scaling[0] = 1.5
          program.runSync?.()
          const { logProbability_t, entropy_t, ...rest } = program.results
          const tokens = [logProbability_t, entropy_t].map((numbers) => byToken(microBatch, numbers))
          return { tokens, slopes: Record.map(rest, (numbers) => numbers.slice()) }
        }
        const together = packed([samples], rows, "one-run")
        const alone = apart([samples], rows)
        if (rows > 1) assert.isBelow(placedTokens(together), placedTokens(alone))
        const arrays = draw(config, drawn.seed)

        // Its numbers are doubles.
        const reference = compileWith(Reference.layer, spec)
        write(reference, arrays)
        const wanted = resultsOf(reference, alone)
        const found = resultsOf(reference, together)
        found.tokens.forEach((numbers, at) => assertSame(numbers, wanted.tokens[at], "tokens"))
        for (const [name, slope] of Object.entries(found.slopes)) assertSame(slope, wanted.slopes[name], name)

        const wasm = compileWith(backends.wasm, spec)
        write(wasm, arrays)
        resultsOf(wasm, together).tokens.forEach((numbers, at) => assertClose(numbers, wanted.tokens[at], "wasm"))
      }),
      { numRuns: tries(10) },
    )
  })

  const objectives = {
    sft: { type: "sft" },
    "grpo with a KL term": { type: "grpo", kl: { type: "k3", coefficient: 0.1 } },
    // With this range, no ratio is clipped.
    gspo: { type: "gspo", clipLow: 0.999, clipHigh: 1000, kl: null },
  } as const
  for (const [name, objective] of Object.entries(objectives))
    for (const mixing of ["one-run", "many-runs"] as const)
      it.effect(
        `give the loss, the metrics and the gradients that they give alone, by ${name} with ${mixing}`,
        () =>
          Effect.gen(function* () {
            const rows = 12
            const program = (layer: typeof Reference.layer) =>
              compileGradient(
                { config: tinyConfig, rows, width, block: 4, mixing, adapters: { shape, maxRuns: 2 } },
                Schema.decodeUnknownSync(Losses.TokenObjective)(objective),
              ).pipe(Effect.provide(layer))
            const programs = { reference: yield* program(Reference.layer), wasm: yield* program(Wasm.layer) }
            const weights = Decoder.initialValues(Decoder.parametersOf(tinyConfig), Rng.stream(1, "weights"))
            const adapters = drawAdapters(tinyConfig, 5)
            for (const one of Object.values(programs)) {
              yield* one.writeBase(weights)
              yield* one.writeAdapters(adapters.table, adapters.scalings)
            }
            const resultsOf = (backend: keyof typeof programs, microBatch: MicroBatch, run: number) =>
              Effect.map(programs[backend].run(microBatch), () => ({
                sums: [programs[backend].lossOf(run), ...Object.values(programs[backend].sumsOf(run))],
                gradient: programs[backend].gradientOf(run).slice(),
              }))
            for (const drawn of fc.sample(steps, { numRuns: 3, seed: 1 })) {
              const runs = (mixing === "one-run" ? [0] : [0, 1]).map((run) =>
                samplesOf(drawn, tinyConfig.vocabSize, run),
              )
              const [together, alone] = [packed(runs, rows, mixing), apart(runs, rows)]
              for (const run of runs.keys()) {
                const wanted = yield* resultsOf("reference", alone, run)
                assert.isTrue(wanted.gradient.some((slope) => Math.abs(slope) > 1e-4))
                const found = yield* resultsOf("reference", together, run)
                assertSame(found.sums, wanted.sums, name)
                assertSame(found.gradient, wanted.gradient, name)
                const onWasm = yield* resultsOf("wasm", together, run)
                assertClose(onWasm.sums, wanted.sums, "wasm")
                assertClose(onWasm.gradient, Array.from(wanted.gradient), "wasm")
              }
            }
          }).pipe(Effect.scoped),
        { tags: (mixing === "many-runs") === (name === "gspo") ? [] : "slow" },
      )
})
