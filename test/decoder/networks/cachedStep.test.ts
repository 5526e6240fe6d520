import { assert, describe, it } from "@effect/vitest"
import { Record } from "effect"
import type { Layer } from "effect"
import type { Backend, BackendUnavailable } from "../../../src/tensor/backend/Backend.ts"
import { cachedStep, parametersOf, statesOf, storeEntries } from "../../../src/decoder/networks/Decoder.ts"
import { compileWith, identical } from "../../../property-tests/support/agreement.ts"
import { backends, config, expected, relativeError, tensorsIn, write } from "./fixture.ts"

const { greedy, forward } = expected
const weights = tensorsIn("model.safetensors")
const parameters = statesOf(parametersOf(config))

/** A step with a cache in which sequence i has every third page, from page i on, in descending order. */
const open = (layer: Layer.Layer<Backend, BackendUnavailable>, chunk: number) => {
  const shape = { sequences: 3, chunk, pages: 6, pageSize: 4, cachePages: 18 }
  const { inputs, outputs } = cachedStep(config, parameters, shape)
  const state = Record.map(parameters, (tensor) => ({ tensor }))
  const program = compileWith(layer, { name: "step", inputs, state, outputs: { ...outputs } })
  write(program, weights)
  const { feeds, results } = program
  const pagesOf = (sequence: number) => Int32Array.from({ length: 6 }, (_, page) => sequence + 3 * (5 - page))
  const lengths = [0, 0, 0]
  for (const sequence of [0, 1, 2]) feeds.pages.set(pagesOf(sequence), 6 * sequence)
  /** Takes up to `chunk` tokens of each sequence. Returns the logits after the last of them. */
  const take = (tokens: ReadonlyArray<ReadonlyArray<number>>): ReadonlyArray<ArrayLike<number>> => {
    feeds.tokens.fill(7)
    feeds.lengths.set(lengths)
    tokens.forEach((row, sequence) => feeds.tokens.set(row, sequence * chunk))
    program.runSync?.()
    return tokens.map(({ length: count }, sequence) => {
      const at = { sequence, pages: pagesOf(sequence), length: lengths[sequence], count }
      storeEntries(config, shape, { cache: feeds.cache, entries: results.entries, ...at })
      lengths[sequence] += count
      const row = sequence * chunk + Math.max(0, count - 1)
      return results.logits.slice(row * config.vocabSize, (row + 1) * config.vocabSize)
    })
  }
  return { take, forget: () => lengths.fill(0) }
}

const best = (logits: ArrayLike<number>): number => {
  const numbers = Array.from(logits)
  return numbers.indexOf(Math.max(...numbers))
}

describe("generating with a cache", () => {
  for (const [backend, layer] of Object.entries({ wasm: backends.wasm, cpu: backends.cpu })) {
    for (const chunk of [1, 2, 5]) {
      it(`chooses the greedy tokens of the fixture on ${backend}, with prompts in chunks of ${chunk}`, () => {
        const { take } = open(layer, chunk)
        let logits: ReadonlyArray<ArrayLike<number>> = []
        for (let at = 0; at < 5; at += chunk) logits = take(greedy.prompt.map((row) => row.slice(at, at + chunk)))
        const generated: ReadonlyArray<Array<number>> = [[], [], []]
        for (let count = 0; count < 12; count++) {
          logits.forEach((row, sequence) => generated[sequence].push(best(row)))
          logits = take(generated.map((row) => [row[count]]))
        }
        assert.deepStrictEqual(generated, greedy.generated)
      })
    }

    it(`has the logits of the whole sequence on ${backend}, with rows of different lengths in one step`, () => {
      const { take } = open(layer, 5)
      const rows = forward.input_ids
      take([rows[0].slice(0, 5), rows[1].slice(0, 1), []])
      take([rows[0].slice(5, 10), rows[1].slice(1, 6), rows[2].slice(0, 3)])
      take([rows[0].slice(10, 15), rows[1].slice(6, 11), rows[2].slice(3, 8)])
      take([rows[0].slice(15), rows[1].slice(11, 16), rows[2].slice(8, 13)])
      const [, second, third] = take([[], rows[1].slice(16), rows[2].slice(13)])
      assert.isBelow(relativeError(second, forward.logits_last[1]), 1e-4)
      assert.isBelow(relativeError(third, forward.logits_last[2]), 1e-4)
    })

    it(`gives a sequence the same bits on ${backend}, whatever the other sequences of the step are`, () => {
      const { take, forget } = open(layer, 5)
      const rows = forward.input_ids
      const alone = [take([rows[0].slice(0, 5), [], []]), take([rows[0].slice(5, 8), [], []])]
      forget()
      const together = [
        take([rows[0].slice(0, 5), rows[1].slice(0, 4), rows[2].slice(0, 5)]),
        take([rows[0].slice(5, 8), rows[1].slice(4, 9), rows[2].slice(5, 7)]),
      ]
      for (const step of [0, 1]) assert.isUndefined(identical(together[step][0], alone[step][0]))
    })
  }
})
