import { assert, describe, it } from "@effect/vitest"
import { Effect, Record } from "effect"
import * as fc from "fast-check"
import type { Program } from "../src/backend/Backend.ts"
import * as OnnxNode from "../src/backend/onnx-node.ts"
import * as Wasm from "../src/backend/wasm.ts"
import { gradients } from "../src/graph/gradients.ts"
import * as G from "../src/graph/ops.ts"
import * as Decoder from "../src/model/decoder/Decoder.ts"
import * as Rng from "../src/rng/Rng.ts"
import { type Arrays, plainFrequency, plainLogits } from "../test/model/decoder/plain.ts"
import { compileWith, identical } from "./support/agreement.ts"

const backends = { wasm: Wasm.layer, cpu: OnnxNode.layerCpu() }

const scaling = fc.oneof(
  fc.constant(null),
  fc.record({ _tag: fc.constant("linear" as const), factor: fc.constantFrom(2, 4.5) }),
  fc.record({
    _tag: fc.constant("llama3" as const),
    factor: fc.constantFrom(2, 8),
    lowFrequencyFactor: fc.constantFrom(0.5, 1),
    highFrequencyFactor: fc.constantFrom(2, 4),
    originalMaxPositions: fc.constantFrom(16, 64),
  }),
)

const configs: fc.Arbitrary<Decoder.DecoderConfig> = fc
  .record({
    architecture: fc.constantFrom("llama" as const, "qwen2" as const),
    vocabSize: fc.integer({ min: 2, max: 23 }),
    hiddenSize: fc.integer({ min: 1, max: 17 }),
    intermediateSize: fc.integer({ min: 1, max: 13 }),
    layers: fc.integer({ min: 1, max: 2 }),
    keyValueHeads: fc.integer({ min: 1, max: 3 }),
    group: fc.integer({ min: 1, max: 3 }),
    headDim: fc.constantFrom(2, 4, 6, 8),
    maxPositions: fc.constant(64),
    rmsNormEpsilon: fc.constantFrom(1e-5, 1e-6),
    rope: fc.record({ theta: fc.constantFrom(100, 10_000, 500_000), scaling }),
    biases: fc.record({ qkv: fc.boolean(), output: fc.boolean(), mlp: fc.boolean() }),
    tiedEmbeddings: fc.boolean(),
  })
  .map(({ group, ...config }) => ({ ...config, heads: group * config.keyValueHeads }))

/** Draws all parameters, with norms and biases that matter. */
const draw = (config: Decoder.DecoderConfig, seed: number): Arrays => {
  const random = Rng.stream(seed, "weights")
  return Record.map(Decoder.parametersOf(config), ({ shape }) => {
    const data = new Float32Array(shape.reduce((a, b) => a * b, 1))
    random.fillNormal(data)
    // A norm's scale is around 1; matrices keep the size of what they multiply.
    const size = shape.length === 1 ? 0.5 : 1 / Math.sqrt(shape[1])
    return { shape, data: data.map((value) => (shape.length === 1 ? 1 : 0) + size * value) }
  })
}

const write = (program: Program, arrays: Arrays): void => {
  for (const [name, { data }] of Object.entries(arrays)) Effect.runSync(program.write(name, data))
}

const statesFor = (config: Decoder.DecoderConfig) => {
  const weights = Decoder.statesOf(Decoder.parametersOf(config))
  return { weights, state: Record.map(weights, (tensor) => ({ tensor })) }
}

const assertClose = (found: ArrayLike<number>, wanted: ReadonlyArray<number>, message: string): void => {
  assert.strictEqual(found.length, wanted.length, message)
  const size = Math.max(1, ...wanted.map(Math.abs))
  wanted.forEach((value, at) => {
    if (!(Math.abs(found[at] - value) <= 1e-4 * size))
      assert.fail(`${message}: number ${at} is ${found[at]}, expected ${value}`)
  })
}

/** Computes the log-probability of a token and the entropy of its distribution; both are 0 without logits. */
const plainPrediction = (logits: ReadonlyArray<number> | undefined, token: number, temperature: number) => {
  if (logits === undefined) return { logProbability: 0, entropy: 0 }
  const cooled = logits.map((logit) => logit / temperature)
  const largest = Math.max(...cooled)
  const total = Math.log(cooled.reduce((sum, logit) => sum + Math.exp(logit - largest), 0)) + largest
  const entropy = cooled.reduce((sum, logit) => sum - Math.exp(logit - total) * (logit - total), 0)
  return { logProbability: cooled[token] - total, entropy }
}

/** Windows of a width, each divided into sequences and, at the end, padding; lengths in order. */
const layouts = fc
  .record({ rows: fc.integer({ min: 1, max: 2 }), width: fc.integer({ min: 1, max: 9 }) })
  .chain(({ rows, width }) =>
    fc.record({
      width: fc.constant(width),
      windows: fc.array(
        fc.array(fc.integer({ min: 1, max: width }), { minLength: 1, maxLength: 3 }).map((lengths) => {
          let left = width
          return lengths.flatMap((length) => {
            const own = Math.min(length, left)
            left -= own
            return own > 0 ? [own] : []
          })
        }),
        { minLength: rows, maxLength: rows },
      ),
    }),
  )

const tokensOf = (config: Decoder.DecoderConfig, seed: number, ...path: ReadonlyArray<number>) => {
  const random = Rng.stream(seed, "tokens", ...path)
  return (length: number): ReadonlyArray<number> => Array.from({ length }, () => random.integer(config.vocabSize))
}

describe("a decoder's graph", () => {
  it("has the logits, log-probabilities and entropies of a plain implementation in doubles, for any config and any packing", () => {
    fc.assert(
      fc.property(configs, layouts, fc.nat(), (config, { width, windows }, seed) => {
        const { weights, state } = statesFor(config)
        const inputs = Decoder.packedInputs(windows.length, width)
        const temperature = G.input("temperature", [windows.length, width])
        const hidden = Decoder.hiddenStates(config, weights, inputs)
        const predictions = Decoder.predictions(config, weights, hidden, { ...inputs, temperature })
        const logits = Decoder.logitsOf(config, weights, hidden)
        const arrays = draw(config, seed)
        const tokens = windows.map((lengths, row) => lengths.map(tokensOf(config, seed, row)))
        const wanted = tokens.map((window) => window.map((sequence) => plainLogits(config, arrays, sequence)))
        const heat = Rng.stream(seed, "temperature")
        const temperatures = Float32Array.from({ length: windows.length * width }, () => heat.between(0.5, 2))
        for (const [name, layer] of Object.entries(backends)) {
          const program = compileWith(layer, {
            name: "packed",
            inputs: { ...inputs, temperature },
            state,
            outputs: { logits, ...predictions },
          })
          write(program, arrays)
          program.feeds.segments.fill(-1)
          program.feeds.temperature.set(temperatures)
          tokens.forEach((window, row) => {
            let at = row * width
            window.forEach((sequence, segment) => {
              sequence.forEach((token, position) => {
                program.feeds.tokens[at] = token
                program.feeds.positions[at] = position
                program.feeds.segments[at++] = segment
              })
            })
          })
          program.runSync?.()
          const { results } = program
          wanted.forEach((window, row) => {
            let at = row * width
            window.forEach((sequence, segment) => {
              sequence.forEach((numbers, position) => {
                const found = results.logits.subarray(at * config.vocabSize, (at + 1) * config.vocabSize)
                assertClose(found, numbers, name)
                // Each token is predicted by the logits before it, at its own temperature; the first one by nothing.
                const before = position === 0 ? undefined : sequence[position - 1]
                const token = tokens[row][segment][position]
                const { logProbability, entropy } = plainPrediction(before, token, temperatures[at])
                assertClose([results.logProbability_t[at], results.entropy_t[at]], [logProbability, entropy], name)
                at++
              })
            })
            // Padding is predicted by nothing.
            for (; at < (row + 1) * width; at++)
              assert.deepStrictEqual([results.logProbability_t[at], results.entropy_t[at]], [0, 0])
          })
        }
      }),
      { numRuns: 30 },
    )
  })

  it("has these logits in steps with a cache too, for any pages, chunks and adapters", () => {
    const shapes = fc.record({
      sequences: fc.integer({ min: 1, max: 3 }),
      chunk: fc.integer({ min: 1, max: 4 }),
      pageSize: fc.integer({ min: 1, max: 5 }),
    })
    fc.assert(
      fc.property(configs, shapes, fc.nat(), (config, { sequences, chunk, pageSize }, seed) => {
        const random = Rng.stream(seed, "steps")
        const arrays = draw(config, seed)
        const { weights, state } = statesFor(config)
        const pages = Math.ceil(9 / pageSize)
        const shape = { sequences, chunk, pages, pageSize, cachePages: pages * sequences }
        const adapterShape = { rank: 2, targets: ["q_proj", "v_proj", "gate_proj", "down_proj"] as const }
        const routed = Decoder.routedAdapters(config, {
          shape: adapterShape,
          adapters: 2,
          blocks: sequences,
          mayBeBase: true,
        })
        const adapters = new Decoder.MultiLoRA(config, adapterShape, 2)
        for (const index of [0, 1]) {
          adapters.reset(index, { rank: index + 1, alpha: 2 }, Rng.stream(seed, "adapter", index))
          Rng.stream(seed, "B", index).fillNormal(adapters.namedParametersOf(index)[bName(config)].data)
        }
        const { inputs, outputs } = Decoder.cachedStep(config, weights, shape, routed.adapt)
        const { table, blockAdapters, scalings } = routed
        const program = compileWith(random.integer(2) === 0 ? backends.wasm : backends.cpu, {
          name: "step",
          inputs: { ...inputs, blockAdapters, scalings },
          state: { ...state, adapters: { tensor: table } },
          outputs: { ...outputs },
        })
        write(program, arrays)
        // What an adapter could do to a sequence without one would be seen from numbers that are not finite.
        const isPoisoned = random.integer(2) === 0
        if (isPoisoned) adapters.row(0).fill(Number.NaN)
        Effect.runSync(program.write("adapters", adapters.table))
        program.feeds.scalings.set(adapters.scalings)
        const order = Array.from({ length: pages * sequences }, (_, page) => page)
        const pagesOf = (row: number): Int32Array => Int32Array.from(order.filter((page) => page % sequences === row))
        const rows = Array.from({ length: sequences }, (_, row) => ({
          tokens: tokensOf(config, seed, row)(1 + random.integer(9)),
          adapter: isPoisoned ? [-1, 1][random.integer(2)] : random.integer(3) - 1,
          length: 0,
          pages: pagesOf(row).toReversed(),
        }))
        const wanted = rows.map(({ tokens, adapter }) =>
          plainLogits(
            config,
            arrays,
            tokens,
            adapter < 0 ? undefined : { matrices: adapters.stateDictOf(adapter), scaling: adapters.scalings[adapter] },
          ),
        )
        const { feeds, results } = program
        while (rows.some(({ length, tokens }) => length < tokens.length)) {
          feeds.tokens.fill(0)
          const counts = rows.map(({ tokens, length }) => Math.min(random.integer(chunk + 1), tokens.length - length))
          rows.forEach((row, sequence) => {
            feeds.tokens.set(row.tokens.slice(row.length, row.length + counts[sequence]), sequence * chunk)
            feeds.lengths[sequence] = row.length
            feeds.pages.set(row.pages, sequence * pages)
            feeds.blockAdapters[sequence] = row.adapter
          })
          program.runSync?.()
          rows.forEach((row, sequence) => {
            const count = counts[sequence]
            for (let token = 0; token < count; token++) {
              const at = (sequence * chunk + token) * config.vocabSize
              const found = results.logits.subarray(at, at + config.vocabSize)
              assertClose(found, [...wanted[sequence][row.length + token]], `sequence ${sequence}`)
            }
            const { pages, length } = row
            const stored = { cache: feeds.cache, entries: results.entries, sequence, pages, length, count }
            Decoder.storeEntries(config, shape, stored)
            row.length += count
          })
        }
      }),
      { numRuns: 30 },
    )
  })

  it("rotates by the frequencies that the definition by wavelengths states", () => {
    fc.assert(
      fc.property(configs, (config) => {
        Decoder.rotaryFrequencies(config).forEach((frequency, pair) => {
          const wanted = plainFrequency(config, pair)
          assert.isAtMost(Math.abs(frequency - wanted), 1e-6 * wanted)
        })
      }),
    )
  })

  it("is made from a config that decodes to itself; heads that do not divide are refused by name", () => {
    fc.assert(
      fc.property(configs, (config) => {
        const encoded: unknown = JSON.parse(JSON.stringify(config))
        assert.deepStrictEqual(Effect.runSync(Decoder.decodeConfig(encoded, "config.json")), config)
        const wrong = { ...config, heads: config.keyValueHeads + 1, keyValueHeads: config.keyValueHeads + 2 }
        const error = Effect.runSync(Effect.flip(Decoder.decodeConfig(wrong, "config.json")))
        assert.strictEqual(
          error.message,
          `config.json: key_value_heads: expected a divisor of the number of heads, ${wrong.heads}, found ${wrong.keyValueHeads}`,
        )
      }),
    )
  })
})

const bName = (config: Decoder.DecoderConfig): string =>
  `${Decoder.projectionName(config.layers - 1, "v_proj")}.lora_B.weight`

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
  const [windows, width, block, count] = [4, 8, 4, 3]
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

  /** Draws all of an adapter's matrices, B too. */
  const drawn = (random: Rng.Stream): Float32Array => {
    const row = new Float32Array(size)
    random.fillNormal(row)
    return row.map((value) => 0.3 * value)
  }

  /** A window: the adapter whose sequence fills it, and the sequence's random stream. */
  interface Window {
    readonly adapter: number
    readonly stream: number
  }

  const run = (program: Program, all: ReadonlyArray<Window>, rows: ReadonlyArray<Float32Array>) => {
    const sorted = [...all].sort((a, b) => a.adapter - b.adapter)
    sorted.forEach(({ stream }, row) => {
      program.feeds.tokens.set(tokensOf(small, stream)(width), row * width)
      program.feeds.weight.set(
        Array.from({ length: width }, (_, at) => Rng.stream(stream, "weight", at).uniform()),
        row * width,
      )
    })
    program.feeds.positions.forEach((_, at, feed) => (feed[at] = at % width))
    const loraNumTokens = rows.map((_, adapter) => width * sorted.filter((window) => window.adapter === adapter).length)
    program.feeds.blockAdapters.set(Decoder.blockAdaptersOf({ loraNumTokens, tokens: windows * width, block }))
    program.feeds.scalings.set([2, 0.5, 1])
    const joined = new Float32Array(count * size)
    rows.forEach((row, adapter) => joined.set(row, adapter * size))
    Effect.runSync(program.write("adapters", joined))
    program.runSync?.()
    const { logProbability_t, slope, base } = Record.map(program.results, (numbers) => numbers.slice())
    return {
      of: (window: Window) => {
        const at = sorted.indexOf(window) * width
        return logProbability_t.subarray(at, at + width)
      },
      slopeOf: (adapter: number) => slope.subarray(adapter * size, (adapter + 1) * size),
      all: logProbability_t,
      base,
    }
  }

  const batches = fc.array(fc.record({ adapter: fc.nat({ max: count - 1 }), stream: fc.nat() }), {
    minLength: windows,
    maxLength: windows,
  })
  const seeds = fc.nat()

  for (const [name, program] of Object.entries(programs)) {
    const agrees = (found: ArrayLike<number>, wanted: ArrayLike<number>, message: string): void => {
      if (name === "wasm") assert.isUndefined(identical(found, wanted), message)
      else assertClose(found, Array.from(wanted), message)
    }

    it(`an adapter's results and gradient depend on its own tokens and numbers alone, on ${name}`, () => {
      fc.assert(
        fc.property(batches, fc.nat({ max: count - 1 }), seeds, seeds, (batch, other, seed, changed) => {
          const rows = Array.from({ length: count }, (_, adapter) => drawn(Rng.stream(seed, "adapter", adapter)))
          // All windows of one adapter become other sequences, and its numbers other numbers.
          const different = batch.map((window) =>
            window.adapter === other ? { adapter: other, stream: window.stream + 1 + changed } : window,
          )
          const before = run(program, batch, rows)
          const after = run(program, different, rows.with(other, drawn(Rng.stream(changed, "changed"))))
          for (const window of batch.filter(({ adapter }) => adapter !== other))
            assert.isUndefined(identical(after.of(window), before.of(window)))
          for (let adapter = 0; adapter < count; adapter++)
            if (adapter !== other) assert.isUndefined(identical(after.slopeOf(adapter), before.slopeOf(adapter)))
        }),
        { numRuns: 25 },
      )
    })

    it(`adapters together have the gradients that each has alone, bit for bit on wasm, on ${name}`, () => {
      fc.assert(
        fc.property(batches, seeds, (batch, seed) => {
          const rows = Array.from({ length: count }, (_, adapter) => drawn(Rng.stream(seed, "adapter", adapter)))
          const together = run(program, batch, rows)
          for (let adapter = 0; adapter < count; adapter++) {
            // Alone, the adapter's windows come first, and the rest of the batch has weight zero: another adapter's.
            const own = batch.filter((window) => window.adapter === adapter)
            const spare = (adapter + 1) % count
            const rest = Array.from({ length: windows - own.length }, () => ({ adapter: spare, stream: 5 }))
            const alone = run(program, [...own, ...rest], rows)
            agrees(alone.slopeOf(adapter), together.slopeOf(adapter), `adapter ${adapter}`)
            if (own.length === 0) assert.isTrue(together.slopeOf(adapter).every((number) => number === 0))
            else assert.isTrue(together.slopeOf(adapter).some((number) => number !== 0))
            for (const window of own) agrees(alone.of(window), together.of(window), `adapter ${adapter}`)
          }
        }),
        { numRuns: 15 },
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
        { numRuns: 10 },
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
      const batch = Array.from({ length: windows }, (_, stream) => ({ adapter: 1, stream }))
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
