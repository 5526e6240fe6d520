import * as Reference from "../src/tensor/backend/reference.ts"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Record } from "effect"
import * as fc from "fast-check"
import { gradients } from "../src/tensor/graph/gradients.ts"
import * as G from "../src/tensor/graph/ops.ts"
import { sizeOf } from "../src/tensor/graph/Tensor.ts"
import { RowCache } from "../src/decoder/inference/RowCache.ts"
import * as Decoder from "../src/decoder/networks/Decoder.ts"
import * as Rng from "../src/base/rng/Rng.ts"
import { type Arrays, type PlainArray, plainFrequency, plainLogits } from "../test/decoder/networks/plain.ts"
import { compileWith } from "./support/agreement.ts"
import { assertClose, backends, configs, draw, feedSequences, statesFor, tokensOf, write } from "./support/decoders.ts"
import { tries } from "../test/house/tries.ts"

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
          program.feeds.temperature.set(temperatures)
          feedSequences(program, width, tokens)
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
      { numRuns: tries(30) },
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
        const sizes = { shape: adapterShape, slots: 2 }
        const selected = Decoder.selectedAdapters(config, { ...sizes, rows: sequences })
        const adapters = new Decoder.MultiLoRA(config, adapterShape, 2)
        for (const index of [0, 1]) {
          adapters.reset(index, { rank: index + 1, alpha: 2 }, Rng.stream(seed, "adapter", index))
          Rng.stream(seed, "B", index).fillNormal(adapters.namedParametersOf(index)[bName(config)].data)
        }
        const { inputs, outputs } = Decoder.cachedStep(config, weights, shape, selected.adapt)
        const program = compileWith(random.integer(2) === 0 ? backends.wasm : backends.cpu, {
          name: "step",
          inputs: { ...inputs, ...selected.inputs },
          state: { ...state, ...Record.map(selected.states, (tensor) => ({ tensor })) },
          outputs: { ...outputs },
        })
        write(program, arrays)
        // With the largest numbers of float32, what the adapter adds is not finite; other sequences must not get any of it.
        const isPoisoned = random.integer(2) === 0
        if (isPoisoned) adapters.row(0).fill(3.4028234663852886e38)
        const numbers = Record.map(selected.states, (tensor) => new Float32Array(sizeOf(tensor.shape)))
        for (const slot of [0, 1]) {
          const contents = { slot, parameters: adapters.namedParametersOf(slot), scaling: adapters.scalings[slot] }
          Decoder.fillSlot(config, sizes, numbers, contents)
        }
        for (const [name, data] of Object.entries(numbers)) Effect.runSync(program.write(name, data))
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
            feeds.slots[sequence] = row.adapter
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
      { numRuns: tries(30) },
    )
  })

  it("has these logits in steps over rows too, for any segments, whatever numbers other rows have", () => {
    const shapes = fc
      .record({
        longRows: fc.integer({ min: 1, max: 3 }),
        shortRows: fc.nat(2),
        segments: fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 1, maxLength: 3 }),
      })
      .map(({ shortRows, ...shape }) => ({ ...shape, rows: shape.longRows + shortRows }))
    fc.assert(
      fc.property(configs, shapes, fc.nat(), (config, shape, seed) => {
        const random = Rng.stream(seed, "rows")
        const arrays = draw(config, seed)
        const { weights, state } = statesFor(config)
        const { inputs, outputs } = Decoder.rowStep(config, weights, shape)
        const layer = random.integer(2) === 0 ? backends.wasm : backends.cpu
        const program = compileWith(layer, { name: "rows", inputs, state, outputs: { ...outputs } })
        write(program, arrays)
        const { feeds, results } = program
        const floats = (name: string): Float32Array => {
          const data = feeds[name]
          assert.instanceOf(data, Float32Array)
          return data
        }
        const cache = new RowCache(
          config,
          shape.segments.map((length, segment) => ({
            length,
            layers: Array.from({ length: config.layers }, (_, index) => ({
              keys: floats(Decoder.cacheInput("keys", index, segment)),
              values: floats(Decoder.cacheInput("values", index, segment)),
            })),
          })),
        )
        const rows = Array.from({ length: shape.rows }, (_, row) => {
          const segments = row < shape.longRows ? shape.segments : shape.segments.slice(0, 1)
          const room = segments.reduce((sum, length) => sum + length, 0)
          const tokens = tokensOf(config, seed, row)(1 + random.integer(room + 1))
          return { tokens, wanted: plainLogits(config, arrays, tokens), length: 0, room }
        })
        // A row whose sequence has numbers that are not finite must not change the others.
        const poisoned = random.integer(2 * shape.rows)
        const entriesOfRow = results.entries.length / shape.rows
        while (rows.some(({ length, tokens }) => length < tokens.length)) {
          rows.forEach(({ tokens, length, room }, row) => {
            feeds.tokens[row] = tokens[length] ?? 0
            feeds.lengths[row] = Math.min(length, room)
          })
          program.runSync?.()
          rows.forEach((own, row) => {
            const { tokens, wanted, length, room } = own
            if (length === tokens.length) return
            own.length++
            const entries = Float32Array.from(results.entries)
            if (row === poisoned) entries.fill(Number.NaN)
            else
              assertClose(
                results.logits.subarray(row * config.vocabSize, (row + 1) * config.vocabSize),
                [...wanted[length]],
                `row ${row}`,
              )
            if (length < room) cache.write(row, length, entries, row * entriesOfRow)
          })
        }
      }),
      { numRuns: tries(30) },
    )
  })

  it("has the slopes of a plain implementation, for every parameter and every matrix of adapters", () => {
    const targets = fc.uniqueArray(fc.constantFrom(...Decoder.projections), { minLength: 1 })
    const draws = fc.record({ targets, rank: fc.integer({ min: 1, max: 3 }), seed: fc.nat() })
    fc.assert(
      fc.property(configs, draws, (config, { targets, rank, seed }) => {
        // The norm of one number is its sign: near zero, no difference of sums tells its slope.
        fc.pre(config.hiddenSize > 1)
        const { weights, state } = statesFor(config)
        const [rows, width] = [2, 4]
        const inputs = Decoder.packedInputs(rows, width)
        const shape = { rank, targets }
        const routed = Decoder.routedAdapters(config, { shape, adapters: 2, blocks: rows })
        const hidden = Decoder.hiddenStates(config, weights, inputs, routed.adapt)
        const { logProbability_t } = Decoder.predictions(config, weights, hidden, inputs)
        const names = Object.keys(weights)
        const slopes = gradients(G.sum(logProbability_t), [...Object.values(weights), routed.table])
        const { table, blockAdapters, scalings } = routed
        // Its numbers are doubles: in float32, slopes that nearly cancel out have few right digits.
        const program = compileWith(Reference.layer, {
          name: "slopes",
          inputs: { ...inputs, blockAdapters, scalings },
          state: { ...state, adapters: { tensor: table } },
          outputs: Object.fromEntries([...names, "adapters"].map((name, index) => [name, slopes[index]])),
        })
        const arrays = draw(config, seed)
        write(program, arrays)
        const adapters = new Decoder.MultiLoRA(config, shape, 2)
        for (const index of [0, 1]) {
          adapters.reset(index, { rank, alpha: 1 + index }, Rng.stream(seed, "adapter", index))
          const random = Rng.stream(seed, "matrices", index)
          for (const { data } of Object.values(adapters.namedParametersOf(index))) random.fillNormal(data)
        }
        Effect.runSync(program.write("adapters", adapters.table))
        program.feeds.scalings.set(adapters.scalings)
        program.feeds.blockAdapters.set([0, 1])
        const tokens = Array.from({ length: rows }, (_, row) => tokensOf(config, seed, row)(width))
        feedSequences(
          program,
          width,
          tokens.map((sequence) => [sequence]),
        )
        program.runSync?.()

        const plainSum = (base: Arrays, matrices: ReadonlyArray<Arrays>): number =>
          tokens.reduce((total, sequence, row) => {
            const adapter = { matrices: matrices[row], scaling: adapters.scalings[row] }
            const logits = plainLogits(config, base, sequence, adapter)
            const later = sequence.map((token, at) => plainPrediction(logits[at - 1], token, 1).logProbability)
            return total + later.reduce((sum, each) => sum + each, 0)
          }, 0)
        const direction = Rng.stream(seed, "direction")
        /** Compares a slope along a random direction in one parameter, by central differences in doubles. */
        const compare = (
          name: string,
          { shape, data }: PlainArray,
          slope: ArrayLike<number>,
          sumWith: (changed: Arrays) => number,
        ) => {
          const along = Float64Array.from(data, () => direction.normal())
          const moved = (by: number) => ({ [name]: { shape, data: along.map((each, at) => data[at] + by * each) } })
          const wanted = (sumWith(moved(1e-6)) - sumWith(moved(-1e-6))) / 2e-6
          const found = along.reduce((sum, each, at) => sum + each * slope[at], 0)
          const size = along.reduce((sum, each, at) => sum + Math.abs(each * slope[at]), 0)
          if (!(Math.abs(found - wanted) <= 2e-4 * size + 1e-5)) assert.fail(`${name}: ${found}, expected ${wanted}`)
        }
        const matrices: ReadonlyArray<Arrays> = [0, 1].map((index) => adapters.namedParametersOf(index))
        for (const name of names)
          compare(name, arrays[name], program.results[name], (changed) => plainSum({ ...arrays, ...changed }, matrices))
        const { offsets, size } = Decoder.adapterLayoutOf(Decoder.adapterParametersOf(config, shape))
        matrices.forEach((own, index) => {
          for (const [name, matrix] of Object.entries(own)) {
            const from = index * size + (offsets.get(name) ?? Number.NaN)
            const slope = program.results.adapters.subarray(from, from + matrix.data.length)
            compare(name, matrix, slope, (changed) => plainSum(arrays, matrices.with(index, { ...own, ...changed })))
          }
        })
      }),
      { numRuns: tries(15) },
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
