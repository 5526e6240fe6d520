import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { LmRequest, type Completion } from "../../../src/agents/lm/Chat.ts"
import { makePacker } from "../../../src/trainer/batches/Packer.ts"
import type { TrainingSample } from "../../../src/trainer/batches/TrainingSample.ts"
import type { Encode } from "../../../src/trainer/orchestrator/demonstrations.ts"
import { openPairs, PairsConfig } from "../../../src/trainer/preferences/pairs.ts"
import { pairSamples } from "../../../src/trainer/preferences/pairSamples.ts"

/** Runs `body` with a file of these records. */
const withFile = <A, E>(
  records: ReadonlyArray<unknown>,
  body: (pairs: ReturnType<typeof openPairs>) => Effect.Effect<A, E, NodeServices.NodeServices>,
) =>
  Effect.acquireUseRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "pairs-"))),
    (folder) => {
      writeFileSync(join(folder, "pairs.jsonl"), records.map((record) => `${JSON.stringify(record)}\n`).join(""))
      const config = Schema.decodeSync(PairsConfig)({ datasetPath: "pairs.jsonl" })
      return body(openPairs(config, folder))
    },
    (folder) => Effect.sync(() => rmSync(folder, { recursive: true })),
  ).pipe(Effect.provide(NodeServices.layer))

/** Encodes texts as bytes, in which capital letters are unknown characters. */
const encode: Encode = ({ messages }, move) => {
  const idsOf = (text: string) => Array.from(text, (letter) => (/[A-Z]/.test(letter) ? 1 : letter.charCodeAt(0)))
  const content = typeof move === "string" ? move : move.name
  const completion: Completion = {
    content,
    toolCalls: [],
    finishReason: "stop",
    usage: { inputTokens: 0, outputTokens: 0, reasoningTokens: 0 },
    tokens: {
      promptIds: messages.flatMap((message) => idsOf(message.content)),
      completionIds: [...idsOf(content), 0],
      logprobs: null,
    },
    model: LmRequest.defaults.toolChoice,
    attempts: 1,
  }
  return Effect.succeed(completion)
}

const place = { encode, run: "run_a", step: 3, width: 12 }

describe("pairs of answers", () => {
  it.effect("become two samples each, from texts and from messages", () =>
    withFile(
      [
        { prompt: "ab", chosen: "x", rejected: "yz" },
        {
          prompt: [{ role: "user", content: "cd" }],
          chosen: [{ role: "assistant", content: "x" }],
          rejected: [{ role: "assistant", content: "y" }],
        },
      ],
      (opening) =>
        Effect.gen(function* () {
          const samples = yield* pairSamples({ pairs: yield* opening, indices: [1, 0], ...place })
          assert.deepStrictEqual(
            samples.map(({ id, tokens, mask }) => [id, String.fromCharCode(...tokens), mask.join("")]),
            [
              ["step-3-0-chosen", "cdx\0", "0011"],
              ["step-3-0-rejected", "cdy\0", "0011"],
              ["step-3-1-chosen", "abx\0", "0011"],
              ["step-3-1-rejected", "abyz\0", "00111"],
            ],
          )
        }),
    ),
  )

  for (const [record, message] of [
    [{ chosen: "x", rejected: "y" }, /^pairs\.jsonl:2: prompt: expected a text, or a list of messages/],
    [
      { prompt: "a", chosen: "x" },
      /:2: rejected: expected a text, or a list with one message of the assistant, found none$/,
    ],
    [{ prompt: "a", chosen: "x", rejected: "" }, /:2: rejected: expected an answer, found an empty one$/],
    [
      { prompt: "a", chosen: "x", rejected: "x" },
      /:2: rejected: expected another answer than chosen, found the same one/,
    ],
  ] as const)
    it.effect(`are refused with ${JSON.stringify(record)}`, () =>
      withFile([{ prompt: "a", chosen: "x", rejected: "y" }, record], (opening) =>
        Effect.map(Effect.flip(opening), (error) => assert.match(error.message, message)),
      ),
    )

  for (const [record, message] of [
    [
      { prompt: "a", chosen: "X", rejected: "Y" },
      /^run_a: step 3: pairs\.jsonl:1: expected two answers with different tokens/,
    ],
    [
      { prompt: "a", chosen: "x", rejected: "y".repeat(12) },
      /^run_a: step 3: sample step-3-0-rejected: tokens: expected at most 12/,
    ],
  ] as const)
    it.effect(`cannot be trained on: ${JSON.stringify(record)}`, () =>
      withFile([record], (opening) =>
        Effect.flatMap(opening, (pairs) => Effect.flip(pairSamples({ pairs, indices: [0], ...place }))).pipe(
          Effect.map((error) => assert.match(error.message, message)),
        ),
      ),
    )
})

const sampleOf = (id: string, length: number, prompt: number): TrainingSample => ({
  id,
  tokens: Int32Array.from({ length }, (_, at) => (at < prompt ? prompt : 100 + at)),
  mask: Uint8Array.from({ length }, (_, at) => (at < prompt ? 0 : 1)),
  logprobs: new Float32Array(length),
  advantages: new Float32Array(length),
  temperature: 1,
})

describe("the packing of pairs", () => {
  const sizes = { rows: 2, width: 12, block: 4, maxRuns: 1, ranks: 1 }
  const rulesAt = () => ({ normalisation: { type: "sequence_sum" as const }, arePairs: true })

  it("keeps both answers in one micro-batch, with the numbers 2k and 2k + 1", () => {
    const packer = makePacker({ ...sizes, mixing: "one-run" })
    packer.open(0, { id: "run_a", step: 0, rulesAt })
    // The lengths of the chosen and of the rejected answer's sequence.
    const lengths = [
      [4, 9],
      [5, 6],
      [12, 3],
      [4, 4],
      [4, 11],
    ]
    const samples = lengths.flatMap((both, pair) =>
      both.map((length, answer) => sampleOf(`${pair}-${answer}`, length, 1 + (pair % 2))),
    )
    packer.offer(0, { step: 0, samples })
    const seen: Array<string> = []
    for (let pack = packer.pack(); pack !== undefined; pack = packer.pack()) {
      const [{ sequences, mask, weights }] = pack.microBatches
      const [{ samples: ids }] = pack.shares
      for (const [, pair] of ids.flatMap((id) => [...id.matchAll(/^(\d+)-0$/g)])) {
        assert.include(ids, `${pair}-1`)
        seen.push(pair)
      }
      const counts = new Map<number, number>()
      sequences.forEach((number, at) => mask[at] === 1 && counts.set(number, (counts.get(number) ?? 0) + 1))
      // The pairs of the micro-batch, in the order of their numbers, have the lengths of the step's pairs.
      const pairsHere = [...new Set(ids.map((id) => Number(id.split("-")[0])))].sort((a, b) => a - b)
      pairsHere.forEach((pair, k) =>
        lengths[pair].forEach((length, answer) =>
          assert.strictEqual(counts.get(2 * k + answer), length - 1 - (pair % 2), `pair ${pair}`),
        ),
      )
      weights.forEach((weight, at) => assert.closeTo(weight, mask[at] / 10, 1e-7))
    }
    assert.deepStrictEqual(seen.sort(), ["0", "1", "2", "3", "4"])
  })

  it("refuses micro-batches that cannot hold a pair, and those of many runs", () => {
    const offerTo = (options: Parameters<typeof makePacker>[0]) => {
      const packer = makePacker(options)
      packer.open(0, { id: "run_a", step: 0, rulesAt })
      packer.offer(0, { step: 0, samples: [sampleOf("c", 10, 1), sampleOf("r", 9, 1)] })
    }
    assert.throws(() => offerTo({ ...sizes, rows: 1, mixing: "one-run" }), /set trainer\.rows to at least 2/)
    assert.throws(() => offerTo({ ...sizes, mixing: "many-runs" }), /expected trainer\.mixing: one-run/)
  })
})
