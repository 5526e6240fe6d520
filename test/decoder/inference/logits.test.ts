/** Log-probabilities of prompts, and changes of logits, against their definitions, with other requests in the batch. */
import { Effect } from "effect"
import { assert, describe, it } from "@effect/vitest"
import type { GenerateRequest, RequestedSampling } from "../../../src/decoder/inference/Engine.ts"
import { Ajv2020 } from "ajv/dist/2020.js"
import { makeEngine } from "../../../src/decoder/inference/makeEngine.ts"
import { eos, vocabSize as formatVocabulary, vocabulary } from "../constrained/vocabulary.ts"
import { engineOf, idsOf, promptOf } from "./asking.ts"
import { fakeModel, logitsAfter } from "./fakeModel.ts"

const vocabSize = 29

/** Log-softmax in float64. */
const logprobsOf = (logits: ArrayLike<number>): ReadonlyArray<number> => {
  const all = Array.from(logits)
  const largest = Math.max(...all)
  const total = Math.log(all.reduce((sum, logit) => sum + Math.exp(logit - largest), 0))
  return all.map((logit) => logit - largest - total)
}

const ranked = (logprobs: ReadonlyArray<number>): ReadonlyArray<number> =>
  logprobs.map((_, id) => id).sort((a, b) => logprobs[b] - logprobs[a] || a - b)

/** Other requests, of which some have the same prompt, so that they share its pages. */
const others = (promptIds: ReadonlyArray<number>): ReadonlyArray<GenerateRequest> =>
  [promptIds, promptOf(8, 12), promptIds, promptOf(9, 3)].map((ids, seed) => ({
    model: "base",
    promptIds: ids,
    sampling: { seed, maxTokens: 7, ...(seed === 2 ? { promptLogprobs: 0 } : {}) },
  }))

describe("log-probabilities of a prompt", () => {
  it.effect("are those of softmax(logits), with ranks, with and without an answer, whatever else is computed", () =>
    Effect.gen(function* () {
      const engine = yield* engineOf()
      for (const length of [1, 2, 9, 48]) {
        const promptIds = promptOf(length, length)
        const request = (sampling: RequestedSampling) => ({ model: "base", promptIds, sampling })
        const scoring = { promptLogprobs: 3, maxTokens: 0, temperature: 0.5 }
        const alone = yield* engine.generate(request(scoring))
        assert.deepStrictEqual([alone.tokens, alone.text, alone.finishReason], [[], "", "length"])
        assert.lengthOf(alone.promptLogprobs ?? [], length)
        for (const [at, token] of (alone.promptLogprobs ?? []).entries()) {
          assert.strictEqual(token === null, at === 0)
          if (token === null) continue
          const expected = logprobsOf(logitsAfter(promptIds.slice(0, at), vocabSize))
          assert.strictEqual(token.id, promptIds[at])
          assert.closeTo(token.logprob, expected[token.id], 1e-12)
          assert.strictEqual(token.rank, ranked(expected).indexOf(token.id) + 1)
          assert.deepStrictEqual(idsOf({ tokens: token.top }), ranked(expected).slice(0, 3))
          for (const { id, logprob } of token.top) assert.closeTo(logprob, expected[id], 1e-12)
        }
        if (length === 48) continue
        const sampling = { seed: 3, maxTokens: 5, ignoreEos: true }
        const free = yield* engine.generate(request(sampling))
        const [crowded, answered] = yield* Effect.all(
          [request(scoring), request({ ...sampling, promptLogprobs: 3 }), ...others(promptIds)].map(engine.generate),
          { concurrency: "unbounded" },
        )
        assert.deepStrictEqual(crowded, alone)
        assert.deepStrictEqual(answered, { ...free, promptLogprobs: alone.promptLogprobs ?? [] })
      }
      assert.strictEqual((yield* engine.status).pages.used, 0)
    }).pipe(Effect.scoped),
  )
})

describe("bias and penalties", () => {
  const sampling = {
    logitBias: [
      [3, 2.5],
      [4, -100],
      [7, 0.25],
    ],
    repetitionPenalty: 1.3,
    frequencyPenalty: 0.4,
    presencePenalty: -0.7,
    temperature: 0,
    maxTokens: 20,
    ignoreEos: true,
    topLogprobs: 2,
  } as const satisfies RequestedSampling

  /** Takes the likeliest token after the changes that vLLM makes, in its order. */
  const expected = (promptIds: ReadonlyArray<number>, changes: typeof sampling) => {
    const answer: Array<number> = []
    while (answer.length < changes.maxTokens) {
      const logits = logitsAfter([...promptIds, ...answer], vocabSize)
      for (const [id, bias] of changes.logitBias) logits[id] += bias
      for (let id = 0; id < vocabSize; id++) {
        const count = answer.filter((other) => other === id).length
        if (count > 0 || promptIds.includes(id)) {
          logits[id] = logits[id] > 0 ? logits[id] / changes.repetitionPenalty : logits[id] * changes.repetitionPenalty
        }
        if (count > 0) logits[id] = Math.fround(logits[id] - changes.frequencyPenalty * count) - changes.presencePenalty
      }
      answer.push(ranked(Array.from(logits))[0])
    }
    return answer
  }

  it.effect("change the draws as in vLLM, and not the log-probabilities, whatever else is computed", () =>
    Effect.gen(function* () {
      const engine = yield* engineOf()
      for (const length of [1, 6, 13]) {
        const promptIds = promptOf(length, length)
        const request = { model: "base", promptIds, sampling }
        const alone = yield* engine.generate(request)
        assert.deepStrictEqual(idsOf(alone), expected(promptIds, sampling))
        const plain = yield* engine.generate({ model: "base", promptIds, sampling: { temperature: 0, maxTokens: 20 } })
        assert.notDeepEqual(idsOf(plain), idsOf(alone))
        for (const [at, { id, logprob, top }] of alone.tokens.entries()) {
          const own = logprobsOf(logitsAfter([...promptIds, ...idsOf(alone).slice(0, at)], vocabSize))
          assert.closeTo(logprob, own[id], 1e-12)
          assert.deepStrictEqual(idsOf({ tokens: top }), ranked(own).slice(0, 2))
        }
        const drawn = { ...request, sampling: { ...sampling, temperature: 1.5, topP: 0.9, seed: 5 } }
        const once = yield* engine.generate(drawn)
        const all = yield* Effect.all([request, drawn, ...others(promptIds)].map(engine.generate), {
          concurrency: "unbounded",
        })
        assert.deepStrictEqual(all.slice(0, 2), [alone, once])
      }
    }).pipe(Effect.scoped),
  )

  it.effect("are checked before the request waits", () =>
    Effect.gen(function* () {
      const engine = yield* engineOf()
      const problemOf = (sampling: RequestedSampling) =>
        Effect.map(Effect.flip(engine.generate({ model: "base", promptIds: [1], sampling })), ({ message }) => message)
      assert.include(
        yield* problemOf({ logitBias: [[vocabSize, 1]] }),
        "logitBias: expected ids from 0 to 28, found 29",
      )
      assert.include(yield* problemOf({ logitBias: [[1, 101]] }), "between -100 and 100")
      assert.include(yield* problemOf({ maxTokens: 0 }), "maxTokens: expected 1 or more")
      assert.include(yield* problemOf({ presencePenalty: 3 }), "between -2 and 2")
    }).pipe(Effect.scoped),
  )
})

describe("an answer in a format", () => {
  const engine = makeEngine(fakeModel({ vocabSize: formatVocabulary }), {
    name: "base",
    tokenizer: vocabulary,
    eosIds: [eos],
  })
  const colour = { type: "object", properties: { c: { enum: ["red", "blue"] } }, required: ["c"] }
  const formats = [colour, { type: "integer", maximum: 99 }, { type: "array", items: { type: "null" }, maxItems: 3 }]

  it.effect("fits its own schema, alone and among others, and is cut with the reason length", () =>
    Effect.gen(function* () {
      const { generate } = yield* engine
      const requests = formats.flatMap((jsonSchema) =>
        [1, 2].map((seed) => ({ model: "base", promptIds: [seed], sampling: { seed, jsonSchema, temperature: 2 } })),
      )
      const alone = yield* Effect.forEach(requests, generate)
      for (const [index, { text, finishReason }] of alone.entries()) {
        if (finishReason === "length") continue
        const value: unknown = JSON.parse(text)
        const { sampling } = requests[index]
        assert.isTrue(new Ajv2020().validate(sampling.jsonSchema, value), text)
      }
      assert.isAbove(alone.filter(({ finishReason }) => finishReason === "stop").length, 3)
      const free = { model: "base", promptIds: [1], sampling: { seed: 1, maxTokens: 9 } }
      const crowded = yield* Effect.all([...requests, free, free].map(generate), { concurrency: "unbounded" })
      assert.deepStrictEqual(crowded.slice(0, alone.length), alone)
      const cut = yield* generate({ ...requests[0], sampling: { jsonSchema: colour, maxTokens: 4 } })
      assert.strictEqual(cut.finishReason, "length")
      const [first] = alone[0].tokens
      const own = logprobsOf(logitsAfter([1], formatVocabulary).map((logit) => logit / 2))
      assert.closeTo(first.logprob, own[first.id], 1e-6)
    }).pipe(Effect.scoped),
  )

  it.effect("ends as soon as it can if the model has no end token; other tokenizers are refused", () =>
    Effect.gen(function* () {
      const options = { name: "base", tokenizer: vocabulary }
      const { generate } = yield* makeEngine(fakeModel({ vocabSize: formatVocabulary }), options)
      const request = { model: "base", promptIds: [1], sampling: { jsonSchema: { type: "integer" } } }
      const { text, finishReason } = yield* generate(request)
      assert.deepStrictEqual([/^-?\d$/.test(text), finishReason], [true, "stop"])
      const other = yield* engineOf()
      const { part, message } = yield* Effect.flip(other.generate(request))
      assert.deepStrictEqual([part, message.includes("bytes of its tokens")], ["jsonSchema", true])
    }).pipe(Effect.scoped),
  )
})
