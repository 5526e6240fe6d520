/** Asks engines of the fake model, and compares the answers with the definition of generating. */
import { Effect, Schema } from "effect"
import { assert } from "vitest"
import { draw, makeDrawing } from "../../../src/decoder/inference/draw.ts"
import type {
  EngineService,
  Generated,
  GenerateRequest,
  RequestedSampling,
} from "../../../src/decoder/inference/Engine.ts"
import { makeEngine } from "../../../src/decoder/inference/makeEngine.ts"
import { Sampling } from "../../../src/decoder/inference/Sampling.ts"
import { makeStopSearch } from "../../../src/decoder/inference/stopStrings.ts"
import { stream } from "../../../src/base/rng/Rng.ts"
import { fakeModel, type FakeOptions, letters, logitsAfter } from "./fakeModel.ts"

export const eosId = 25

/** Generates as the definition says, one token after the other, with the whole sequence each time. */
const alone = (promptIds: ReadonlyArray<number>, options: RequestedSampling, weights = 0) => {
  const sampling = Schema.decodeSync(Sampling)(options)
  const drawing = makeDrawing(29)
  const ids = [...promptIds]
  const random = stream(sampling.seed ?? 0, "token")
  const most = Math.min(48, promptIds.length + (sampling.maxTokens ?? 48))
  const stops = makeStopSearch(sampling.stop)
  const decoder = letters.decoder()
  let text = ""
  while (ids.length < most) {
    const uniform = sampling.temperature === 0 ? 0 : random.child(ids.length - promptIds.length).uniformDouble()
    const id = draw(drawing, logitsAfter(ids, 29, weights), 0, sampling, uniform)
    ids.push(id)
    if ((id === eosId && !sampling.ignoreEos) || sampling.stopTokenIds.includes(id)) break
    text += stops.push(decoder.push(id))
    if (stops.found() !== null) break
  }
  return { ids: ids.slice(promptIds.length), text: text + stops.end() }
}

export const engineOf = (options: FakeOptions = {}) =>
  makeEngine(fakeModel(options), { name: "base", tokenizer: letters, eosIds: [eosId] })

export const idsOf = ({ tokens }: { readonly tokens: ReadonlyArray<{ readonly id: number }> }) =>
  tokens.map(({ id }) => id)

export const promptOf = (seed: number, length: number): ReadonlyArray<number> => {
  const random = stream(seed, "prompt")
  return Array.from({ length }, () => random.integer(25))
}

/** Checks the tokens and the text of an answer against the definition. */
export const checkAnswer = (answer: Generated, request: GenerateRequest, weights: number): void => {
  const expected = alone(Array.from(request.promptIds), request.sampling ?? {}, weights)
  assert.deepStrictEqual({ ids: idsOf(answer), text: answer.text }, expected)
}

/** Asks for an answer, and checks it. */
export const check = (engine: EngineService, request: GenerateRequest) =>
  Effect.map(engine.generate(request), (answer) => {
    checkAnswer(answer, request, 0)
    return answer
  })
