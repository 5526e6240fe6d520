import { assert, describe, it } from "@effect/vitest"
import { Effect, Record } from "effect"
import * as fc from "fast-check"
import type { Program } from "../src/tensor/backend/Backend.ts"
import { gradients } from "../src/tensor/graph/gradients.ts"
import * as G from "../src/tensor/graph/ops.ts"
import * as Decoder from "../src/decoder/networks/Decoder.ts"
import * as Rng from "../src/base/rng/Rng.ts"
import { compileWith, identical } from "./support/agreement.ts"
import { backends, draw, feedSequences, statesFor, tokensOf, write } from "./support/decoders.ts"
import { tries } from "../test/house/tries.ts"

const small: Decoder.DecoderConfig = {
  architecture: "llama",
  vocabSize: 19,
  hiddenSize: 12,
  intermediateSize: 20,
  layers: 2,
  heads: 4,
  keyValueHeads: 2,
  headDim: 4,
  maxPositions: 64,
  rmsNormEpsilon: 1e-6,
  rope: { theta: 10_000, scaling: null },
  biases: { qkv: true, output: false, mlp: false },
  tiedEmbeddings: true,
}

describe("adapters in one graph", () => {
  // Each window holds two sequences, of one adapter or of two.
  const [windows, width, block, count] = [4, 8, 4, 3]
  const sequences = 2 * windows
  const length = width / 2
  const shape = { rank: 3, targets: Decoder.projections }
  const { weights, state } = statesFor(small)
  const inputs = Decoder.packedInputs(windows, width)
  const blocks = (windows * width) / block
  const { adapt, table, blockAdapters, scalings } = Decoder.routedAdapters(small, { shape, adapters: count, blocks })
  const hidden = Decoder.hiddenStates(small, weights, inputs, adapt)
  const { logProbability_t } = Decoder.predictions(small, weights, hidden, inputs)
  const weight = G.input("weight", [windows, width])
  const [slope] = gradients(G.neg(G.sum(G.mul(logProbability_t, weight))), [table])
  const base = Decoder.predictions(small, weights, Decoder.hiddenStates(small, weights, inputs), inputs)
  const spec = {
    name: "adapters",
    inputs: { ...inputs, blockAdapters, scalings, weight },
    state: { ...state, adapters: { tensor: table } },
    outputs: { logProbability_t, slope, base: base.logProbability_t },
  }
  const programs = Record.map(backends, (layer) => compileWith(layer, spec))
  for (const program of Object.values(programs)) write(program, draw(small, 3))
  const { size } = new Decoder.MultiLoRA(small, shape, 1)

  /** The same losses and gradients, if all tokens have one adapter. */
  const one = Decoder.oneAdapter(small, shape)
  const ofOne = Decoder.predictions(small, weights, Decoder.hiddenStates(small, weights, inputs, one.adapt), inputs)
  const [slopeOfOne] = gradients(G.neg(G.sum(G.mul(ofOne.logProbability_t, weight))), [one.adapter])
  const specOfOne = {
    name: "one adapter",
    inputs: { ...inputs, adapter: one.adapter, scaling: one.scaling, weight },
    state,
    outputs: { logProbability_t: ofOne.logProbability_t, slope: slopeOfOne },
  }
  const programsOfOne = Record.map(backends, (layer) => compileWith(layer, specOfOne))
  for (const program of Object.values(programsOfOne)) write(program, draw(small, 3))

  /** Draws all of an adapter's matrices, B too. */
  const drawn = (random: Rng.Stream): Float32Array => {
    const row = new Float32Array(size)
    random.fillNormal(row)
    return row.map((value) => 0.3 * value)
  }

  /** A sequence that fills half of a window: its adapter, and the random stream of its tokens. */
  interface Sequence {
    readonly adapter: number
    readonly stream: number
  }

  const run = (program: Program, all: ReadonlyArray<Sequence>, rows: ReadonlyArray<Float32Array>) => {
    const sorted = [...all].sort((a, b) => a.adapter - b.adapter)
    const tokens = sorted.map(({ stream }) => tokensOf(small, stream)(length))
    const rowsOfTokens = Array.from({ length: windows }, (_, row) => tokens.slice(2 * row, 2 * row + 2))
    feedSequences(program, width, rowsOfTokens)
    sorted.forEach(({ stream }, at) => {
      const weights = Array.from({ length }, (_, token) => Rng.stream(stream, "weight", token).uniform())
      program.feeds.weight.set(weights, at * length)
    })
    const loraNumTokens = rows.map((_, adapter) => length * sorted.filter((one) => one.adapter === adapter).length)
    program.feeds.blockAdapters.set(Decoder.blockAdaptersOf({ loraNumTokens, tokens: windows * width, block }))
    program.feeds.scalings.set([2, 0.5, 1])
    const joined = new Float32Array(count * size)
    rows.forEach((row, adapter) => joined.set(row, adapter * size))
    Effect.runSync(program.write("adapters", joined))
    program.runSync?.()
    const { logProbability_t, slope, base } = Record.map(program.results, (numbers) => numbers.slice())
    return {
      of: (sequence: Sequence) => {
        const at = sorted.indexOf(sequence) * length
        return logProbability_t.subarray(at, at + length)
      },
      slopeOf: (adapter: number) => slope.subarray(adapter * size, (adapter + 1) * size),
      all: logProbability_t,
      base,
    }
  }

  const batches = fc.array(fc.record({ adapter: fc.nat({ max: count - 1 }), stream: fc.nat() }), {
    minLength: sequences,
    maxLength: sequences,
  })
  const seeds = fc.nat()

  const areNear = (found: ArrayLike<number>, wanted: ArrayLike<number>, within: number, message: string): void => {
    const largest = Math.max(1, ...Array.from(wanted, Math.abs))
    const isClose = (value: number, at: number): boolean => Math.abs(value - wanted[at]) <= within * largest
    assert.isTrue(Array.from(found).every(isClose), message)
  }

  for (const [name, program] of Object.entries(programs)) {
    const programOfOne = name === "wasm" ? programsOfOne.wasm : programsOfOne.cpu
    const agrees = (found: ArrayLike<number>, wanted: ArrayLike<number>, message: string): void => {
      if (name === "wasm") assert.isUndefined(identical(found, wanted), message)
      else areNear(found, wanted, 1e-6, message)
    }

    it(`an adapter's results and gradient depend on its own tokens and numbers alone, on ${name}`, () => {
      fc.assert(
        fc.property(batches, fc.nat({ max: count - 1 }), seeds, seeds, (batch, other, seed, changed) => {
          const rows = Array.from({ length: count }, (_, adapter) => drawn(Rng.stream(seed, "adapter", adapter)))
          // All sequences of one adapter become other ones, and its numbers other numbers.
          const different = batch.map((sequence) =>
            sequence.adapter === other ? { adapter: other, stream: sequence.stream + 1 + changed } : sequence,
          )
          const before = run(program, batch, rows)
          const after = run(program, different, rows.with(other, drawn(Rng.stream(changed, "changed"))))
          for (const sequence of batch.filter(({ adapter }) => adapter !== other))
            assert.isUndefined(identical(after.of(sequence), before.of(sequence)))
          for (let adapter = 0; adapter < count; adapter++)
            if (adapter !== other) assert.isUndefined(identical(after.slopeOf(adapter), before.slopeOf(adapter)))
        }),
        { numRuns: tries(25) },
      )
    })

    it(`an adapter that has become NaN changes no adapter of other windows, on ${name}`, () => {
      fc.assert(
        fc.property(batches, fc.nat({ max: count - 1 }), seeds, (batch, other, seed) => {
          const rows = Array.from({ length: count }, (_, adapter) => drawn(Rng.stream(seed, "adapter", adapter)))
          // Both sequences of a window have the same adapter.
          const apart = batch.slice(0, windows).flatMap(({ adapter, stream }) => [
            { adapter, stream },
            { adapter, stream: stream + 1 },
          ])
          const before = run(program, apart, rows)
          const after = run(program, apart, rows.with(other, new Float32Array(size).fill(Number.NaN)))
          for (const sequence of apart) {
            if (sequence.adapter === other) assert.isTrue(after.of(sequence).subarray(1).every(Number.isNaN))
            else assert.isUndefined(identical(after.of(sequence), before.of(sequence)))
          }
          for (let adapter = 0; adapter < count; adapter++)
            if (adapter !== other) assert.isUndefined(identical(after.slopeOf(adapter), before.slopeOf(adapter)))
        }),
        { numRuns: tries(10) },
      )
    })

    it(`adapters together have the gradients that each has alone, bit for bit on wasm, on ${name}`, () => {
      fc.assert(
        fc.property(batches, seeds, (batch, seed) => {
          const rows = Array.from({ length: count }, (_, adapter) => drawn(Rng.stream(seed, "adapter", adapter)))
          const together = run(program, batch, rows)
          for (let adapter = 0; adapter < count; adapter++) {
            // Alone, the adapter's sequences are in other places, and another adapter has the rest of the batch.
            const own = batch.filter((sequence) => sequence.adapter === adapter)
            const spare = (adapter + 1) % count
            const rest = Array.from({ length: sequences - own.length }, () => ({ adapter: spare, stream: 5 }))
            const alone = run(program, [...own, ...rest], rows)
            agrees(alone.slopeOf(adapter), together.slopeOf(adapter), `adapter ${adapter}`)
            if (own.length === 0) assert.isTrue(together.slopeOf(adapter).every((number) => number === 0))
            else assert.isTrue(together.slopeOf(adapter).some((number) => number !== 0))
            for (const sequence of own) agrees(alone.of(sequence), together.of(sequence), `adapter ${adapter}`)
          }
        }),
        { numRuns: tries(15) },
      )
    })

    it(`adapters with B = 0 leave the base model's results bit-equal, on ${name}`, () => {
      fc.assert(
        fc.property(batches, seeds, (batch, seed) => {
          const adapters = new Decoder.MultiLoRA(small, shape, count)
          for (let index = 0; index < count; index++)
            adapters.reset(index, { rank: 1 + index, alpha: 4 }, Rng.stream(seed, "run", index))
          const rows = Array.from({ length: count }, (_, index) => adapters.row(index))
          const { all, base } = run(program, batch, rows)
          assert.isUndefined(identical(all, base))
        }),
        { numRuns: tries(10) },
      )
    })

    it(`one adapter for all tokens gives by plain products what it gives by blocks, on ${name}`, () => {
      fc.assert(
        fc.property(batches, fc.nat({ max: count - 1 }), seeds, (batch, adapter, seed) => {
          const rows = Array.from({ length: count }, (_, index) => drawn(Rng.stream(seed, "adapter", index)))
          const routed = run(
            program,
            batch.map(({ stream }) => ({ adapter, stream })),
            rows,
          )
          for (const feed of ["tokens", "positions", "contexts", "ends", "weight"] as const)
            programOfOne.feeds[feed].set(program.feeds[feed])
          programOfOne.feeds.adapter.set(rows[adapter])
          programOfOne.feeds.scaling[0] = program.feeds.scalings[adapter]
          programOfOne.runSync?.()
          const message = `adapter ${adapter}`
          areNear(programOfOne.results.logProbability_t, routed.all, 1e-5, message)
          areNear(programOfOne.results.slope, routed.slopeOf(adapter), 1e-5, message)
        }),
        { numRuns: tries(15) },
      )
    })

    it(`rows and columns beyond an adapter's rank have no gradient, on ${name}`, () => {
      const adapters = new Decoder.MultiLoRA(small, shape, count)
      adapters.reset(1, { rank: 2, alpha: 4 }, Rng.stream(1, "run"))
      const parameters = adapters.namedParametersOf(1)
      const used = (key: string, at: number): boolean =>
        key.endsWith("lora_A.weight") ? at < 2 * parameters[key].shape[1] : at % shape.rank < 2
      for (const [key, { data }] of Object.entries(parameters))
        data.forEach((_, at) => (data[at] = used(key, at) ? Math.sin(at + 1) : 0))
      const batch = Array.from({ length: sequences }, (_, stream) => ({ adapter: 1, stream }))
      const rows = Array.from({ length: count }, (_, index) => adapters.row(index))
      const found = run(program, batch, rows).slopeOf(1)
      const { offsets } = Decoder.adapterLayoutOf(Decoder.adapterParametersOf(small, shape))
      for (const [key, { data }] of Object.entries(parameters)) {
        const from = offsets.get(key) ?? Number.NaN
        const slopes = found.subarray(from, from + data.length)
        slopes.forEach((number, at) => assert.isTrue(used(key, at) || number === 0, key))
        assert.isTrue(
          slopes.some((number) => number !== 0),
          key,
        )
      }
    })
  }
})
