import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { encodeExperts } from "../../../src/base/formats/routedExperts.ts"
import { Sample } from "../../../src/agents/episode/samples/Sample.ts"
import { fromSample, validate } from "../../../src/trainer/batches/TrainingSample.ts"

const sample: Sample = {
  id: "turn-1",
  rolloutId: "r",
  turnId: "turn-1",
  groupId: null,
  parentRolloutId: null,
  depth: 0,
  player: null,
  purpose: "action",
  inputIds: [5, 6, 7, 8],
  actionMask: [0, 1, 0, 1],
  logprobs: [0, -0.5, 0, -0.25],
  stepIndices: [0],
  stepIds: ["s"],
  actionTargets: ["env"],
  hasEnvStep: true,
  parseFailed: false,
  incomplete: false,
  reward: 1,
  credit: 2,
  weight: 0.5,
  terminated: true,
  truncated: false,
  episodeTerminated: true,
  episodeTruncated: false,
  truncationReason: null,
  seqLenTruncated: false,
  seqLenOriginal: 4,
  seqLenRetained: 4,
  tags: {},
}

const place = { run: "run_a", step: 3 }
const convert = (change: Partial<Sample>) => fromSample({ ...sample, ...change }, { ...place, temperature: 0.7 })

describe("a sample of rollouts", () => {
  it.effect("becomes arrays; every token that the model wrote has the credit times the weight", () =>
    Effect.gen(function* () {
      assert.isTrue(Schema.is(Schema.toType(Sample))(sample))
      assert.deepEqual(yield* convert({}), {
        id: "turn-1",
        tokens: Int32Array.of(5, 6, 7, 8),
        mask: Uint8Array.of(0, 1, 0, 1),
        logprobs: Float32Array.of(0, -0.5, 0, -0.25),
        advantages: Float32Array.of(0, 1, 0, 1),
        temperature: 0.7,
      })
      const { advantages } = yield* convert({ advantages: [0, 3, 0, -3], credit: 99 })
      assert.deepEqual(advantages, Float32Array.of(0, 3, 0, -3))
    }),
  )

  it.effect("needs log-probabilities, except for losses that do not use them", () =>
    Effect.gen(function* () {
      const { message } = yield* Effect.flip(convert({ logprobs: null }))
      assert.strictEqual(
        message,
        "run_a: step 3: sample turn-1: logprobs: expected a log-probability for each token, found none",
      )
      const options = { ...place, temperature: 1, logprobs: "unused" } as const
      const { logprobs } = yield* fromSample({ ...sample, logprobs: null }, options)
      assert.deepEqual(logprobs, new Float32Array(4))
    }),
  )

  it.effect("has the experts of its tokens, which are checked if routers are replayed", () =>
    Effect.gen(function* () {
      const replayed = { layers: 1, count: 6, perToken: 2 }
      const encoded = (ids: ReadonlyArray<number>, layers = 1) =>
        convert({ routedExperts: encodeExperts({ layers, perToken: 2, ids: Uint8Array.from(ids) }) })
      const limits = { vocabSize: 9, width: 4 }
      const right = yield* encoded([0, 5, 1, 2, 4, 3])
      assert.deepEqual(right.routedExperts, { layers: 1, perToken: 2, ids: Uint8Array.of(0, 5, 1, 2, 4, 3) })
      yield* validate([right], { ...limits, replayed }, place)
      const problems = Effect.fnUntraced(function* (ids: ReadonlyArray<number>, layers?: number) {
        const sample = yield* encoded(ids, layers)
        // Experts that are not replayed do no harm.
        yield* validate([sample], limits, place)
        return (yield* Effect.flip(validate([sample], { ...limits, replayed }, place))).message
      })
      const start = "run_a: step 3: sample turn-1: routed_experts"
      assert.deepStrictEqual(
        [
          yield* problems([0, 5, 1, 2, 4, 6]),
          yield* problems([0, 5, 2, 2, 4, 3]),
          yield* problems([0, 5, 1, 2]),
          yield* problems([0, 5, 1, 2, 4, 3, 0, 1], 2),
        ],
        [
          `${start}[2]: expected an expert from 0 to 5, found 6`,
          `${start}[1]: expected 2 different experts in each layer, found 2 twice`,
          `${start}: expected those of all 4 tokens, or of all except the last one, found those of 2`,
          `${start}: expected 2 experts of a token in each of 1 layers, found 2 in each of 2`,
        ],
      )
      const needing = fromSample(sample, { ...place, temperature: 1, needsExperts: true })
      assert.strictEqual(
        (yield* Effect.flip(needing)).message,
        `${start}: expected the experts of each token, which trainer.enable_router_replay needs, found none`,
      )
      const damaged = yield* Effect.flip(convert({ routedExperts: { data: "AA", shape: [3, 1, 2], dtype: "uint8" } }))
      assert.include(damaged.message, `${start}: expected a record of experts, found expected`)
    }),
  )

  it.effect("is refused if the arrays cannot hold its numbers", () =>
    Effect.gen(function* () {
      const token = yield* Effect.flip(convert({ inputIds: [5, 2 ** 32 + 6, 7, 8] }))
      assert.strictEqual(
        token.message,
        "run_a: step 3: sample turn-1: tokens[1]: expected a token id, found 4294967302",
      )
      const huge = yield* convert({ credit: 1e300 })
      const { message } = yield* Effect.flip(validate([huge], { vocabSize: 9, width: 4 }, place))
      assert.strictEqual(
        message,
        "run_a: step 3: sample turn-1: advantages[1]: expected a finite number, found Infinity",
      )
    }),
  )
})

describe("the samples of a step", () => {
  it.effect("are valid together if their ids differ", () =>
    Effect.gen(function* () {
      const one = yield* convert({})
      const limits = { vocabSize: 9, width: 4 }
      yield* validate([one, { ...one, id: "turn-2" }], limits, place)
      const { message } = yield* Effect.flip(validate([one, one], limits, place))
      assert.strictEqual(
        message,
        'run_a: step 3: sample turn-1: id: expected an id that no other sample of the step has, found "turn-1" twice',
      )
      const short = yield* Effect.flip(validate([one], { vocabSize: 8, width: 4 }, place))
      assert.include(short.message, "tokens[3]: expected a token id from 0 to 7, found 8")
    }),
  )
})
