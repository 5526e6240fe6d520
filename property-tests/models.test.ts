import { Cause, Effect, Exit } from "effect"
import * as fc from "fast-check"
import { assert, describe, it } from "vitest"
import { type DecoderConfig, parametersOf, projections } from "../src/decoder/networks/Decoder.ts"
import { adapterParametersOf } from "../src/decoder/networks/adapters.ts"
import * as LmAdapter from "../src/decoder/huggingFace/Adapter.ts"
import * as LmDirectory from "../src/decoder/huggingFace/LmDirectory.ts"
import type { FileContents } from "../src/decoder/huggingFace/modelWeights.ts"
import * as Rng from "../src/base/rng/Rng.ts"
import { byteLevel } from "../src/base/tokens/scratch.ts"
import { inMemory, json } from "../test/base/tokens/fixtures.ts"
import { tries } from "../test/house/tries.ts"

const size = fc.integer({ min: 1, max: 4 })
const scaling = fc.oneof(
  fc.constant(null),
  fc.record({ _tag: fc.constant("linear" as const), factor: fc.integer({ min: 1, max: 8 }) }),
  fc.record({
    _tag: fc.constant("llama3" as const),
    factor: fc.integer({ min: 2, max: 8 }),
    lowFrequencyFactor: fc.integer({ min: 1, max: 2 }),
    highFrequencyFactor: fc.integer({ min: 3, max: 8 }),
    originalMaxPositions: fc.integer({ min: 1, max: 100 }),
  }),
)
const biases = fc.oneof(
  fc.record({
    architecture: fc.constant("qwen2" as const),
    biases: fc.constant({ qkv: true, output: false, mlp: false }),
  }),
  fc.tuple(fc.boolean(), fc.boolean()).map(([attention, mlp]) => ({
    architecture: "llama" as const,
    biases: { qkv: attention, output: attention, mlp },
  })),
)

const config: fc.Arbitrary<DecoderConfig> = fc
  .tuple(
    fc.record({ hidden: size, inner: size, layers: size, groups: size, keyValueHeads: size, half: size }),
    biases,
    scaling,
    fc.boolean(),
  )
  .map(([{ hidden, inner, layers, groups, keyValueHeads, half }, kind, scaling, tiedEmbeddings]) => ({
    ...kind,
    vocabSize: 259 + inner,
    hiddenSize: hidden,
    intermediateSize: inner,
    layers,
    heads: groups * keyValueHeads,
    keyValueHeads,
    headDim: 2 * half,
    maxPositions: 64,
    rmsNormEpsilon: 1e-6,
    rope: { theta: 10_000, scaling },
    tiedEmbeddings,
  }))

const valuesOf = (declarations: Readonly<Record<string, { readonly shape: ReadonlyArray<number> }>>, seed: number) =>
  Object.fromEntries(
    Object.entries(declarations).map(([name, { shape }]) => {
      const data = new Float32Array(shape.reduce((product, length) => product * length, 1))
      Rng.stream(seed, name).fillNormal(data)
      return [name, { shape, data }]
    }),
  )

const bytesOf = (files: Readonly<Record<string, FileContents>>): Record<string, Uint8Array> =>
  Object.fromEntries(
    Object.entries(files).map(([name, contents]) => [
      name,
      contents instanceof Uint8Array ? contents : new Uint8Array(Buffer.concat([...contents])),
    ]),
  )

const tokens = Effect.runSync(byteLevel())
const eosIds = [2]

describe("a model's folder", () => {
  it("is read as it was saved, for every config and every size of shard", () => {
    fc.assert(
      fc.property(config, fc.nat(), fc.integer({ min: 1, max: 20_000 }), (decoder, seed, maxShardBytes) => {
        const weights = valuesOf(parametersOf(decoder), seed)
        const model = { decoder, weights, otherFiles: tokens.files, eosIds }
        const files = bytesOf(Effect.runSync(LmDirectory.filesOf(model, { maxShardBytes })))
        const opened = Effect.runSync(LmDirectory.open(inMemory(files)))
        assert.deepEqual(opened.decoder, decoder)
        assert.deepEqual(opened.eosIds, eosIds)
        assert.deepEqual(Effect.runSync(opened.weights.readAll), weights)
      }),
      { numRuns: tries(30) },
    )
  })

  it("that is damaged fails with an error that names one of its files", () => {
    const decoder = fc.sample(config, { seed: 1, numRuns: 1 })[0]
    const model = { decoder, weights: valuesOf(parametersOf(decoder), 1), otherFiles: tokens.files, eosIds }
    const files = bytesOf(Effect.runSync(LmDirectory.filesOf(model, { maxShardBytes: 9_000 })))
    const names = Object.keys(files)
    const damage = fc.oneof(
      fc.record({ cut: fc.nat(5_000) }),
      fc.record({ at: fc.nat(3_000), byte: fc.nat(255) }),
      fc.record({ value: fc.jsonValue() }),
    )
    const after = (bytes: Uint8Array, change: { cut?: number; at?: number; byte?: number; value?: unknown }) => {
      if (change.cut !== undefined) return bytes.slice(0, change.cut)
      if (change.at === undefined) return json(change.value)
      const changed = bytes.slice()
      changed[change.at % bytes.length] = change.byte ?? 0
      return changed
    }
    let failures = 0
    fc.assert(
      fc.property(fc.constantFrom(...names), damage, (name, change) => {
        const damaged = inMemory({ ...files, [name]: after(files[name], change) })
        const exit = Effect.runSyncExit(Effect.flatMap(LmDirectory.open(damaged), ({ weights }) => weights.readAll))
        if (Exit.isSuccess(exit)) return
        failures++
        const [reason] = exit.cause.reasons
        assert.isTrue(Cause.isFailReason(reason), Cause.pretty(exit.cause))
        const { message } = Cause.isFailReason(reason) ? reason.error : { message: "" }
        assert.isTrue(
          names.some((one) => message.startsWith(`${one}: `)),
          message,
        )
      }),
      { numRuns: tries(300) },
    )
    assert.isAbove(failures, tries(300) / 3)
  })
})

describe("an adapter's folder", () => {
  it("is read as it was saved", () => {
    const targets = fc.subarray([...projections], { minLength: 1 })
    fc.assert(
      fc.property(config, targets, size, fc.boolean(), fc.nat(), (decoder, targets, rank, rankStabilised, seed) => {
        const settings = { rank, alpha: 2.5, rankStabilised, targets, base: "base" }
        const adapter = LmAdapter.make(settings, valuesOf(adapterParametersOf(decoder, { rank, targets }), seed))
        const files = bytesOf(Effect.runSync(LmAdapter.filesOf(adapter, decoder)))
        assert.deepEqual(Effect.runSync(LmAdapter.load(inMemory(files), ".", decoder)), adapter)
      }),
      { numRuns: tries(30) },
    )
  })
})
