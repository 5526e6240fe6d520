/** Answers `POST /v1/embeddings`: one vector of length 1 for each text or list of token ids. */
import { Effect, Schema } from "effect"
import { intBetween, naturalInt } from "../../base/config/fields.ts"
import type { ModelInfo } from "../inference/Engine.ts"
import { ApiError, badRequest } from "./ApiError.ts"
import { tooManyAnswers } from "./limits.ts"
import { decoder, maybe } from "./requests.ts"
import { json } from "./responses.ts"
import { timedAnswer } from "./serveMetrics.ts"
import { encodePrompt, modelOf, readBody, type ServerState } from "./ServerState.ts"
import { fingerprint } from "./weightsUsed.ts"

/** The largest number of inputs of a request, as on OpenAI's servers. */
const mostInputs = 2048

/** The largest number of elements in all embeddings of an answer together: about 40 MB as text. */
const mostElements = 2 ** 21

const Ids = Schema.NonEmptyArray(naturalInt)

/** The body of `POST /v1/embeddings`. */
const EmbeddingsBody = Schema.Struct({
  model: maybe(Schema.String),
  input: Schema.Union([
    Schema.String,
    Ids,
    Schema.NonEmptyArray(Schema.String).check(Schema.isMaxLength(mostInputs)),
    Schema.NonEmptyArray(Ids).check(Schema.isMaxLength(mostInputs)),
  ]),
  encoding_format: maybe(Schema.Literals(["float", "base64"])),
  /** The number of elements that are kept of each embedding, from the first on; all by default. */
  dimensions: maybe(intBetween(1, 2 ** 20)),
  /** The way in which the hidden states of the tokens become one vector; by default the server's. */
  pooling: maybe(Schema.Literals(["mean", "last"])),
  /** Whether the tokenizer's special tokens are added to a text; true by default. */
  add_special_tokens: maybe(Schema.Boolean),
})
type EmbeddingsBody = typeof EmbeddingsBody.Type

const isIds = Schema.is(Ids)

const inputsOf = ({ input }: EmbeddingsBody): ReadonlyArray<string | ReadonlyArray<number>> =>
  typeof input === "string" || isIds(input) ? [input] : input

/** Returns the number of elements of each embedding. Refuses more than the model has, and answers that are too large. */
const dimensionsOf = Effect.fnUntraced(function* ({ dimensions }: EmbeddingsBody, size: number, inputs: number) {
  const wanted = dimensions ?? size
  if (wanted > size) {
    const problem = `dimensions: expected at most ${size}, the size of the model's embeddings; found ${wanted}`
    return yield* badRequest(problem, "dimensions")
  }
  const most = Math.floor(mostElements / wanted)
  if (inputs > most) {
    const problem = `input: expected at most ${most} inputs with embeddings of ${wanted} elements, found ${inputs}`
    return yield* badRequest(`${problem}; send several requests`, "input")
  }
  return wanted
})

/** Encodes the inputs that are texts. */
const encodedInputs = (state: ServerState, body: EmbeddingsBody, model: ModelInfo) => {
  const addSpecial = body.add_special_tokens ?? true
  const inputs = inputsOf(body)
  return Effect.forEach(inputs, (input, at) =>
    Effect.gen(function* () {
      if (typeof input !== "string") return input
      const param = inputs.length === 1 ? "input" : `input[${at}]`
      const ids = yield* encodePrompt(state, input, { param, model, addSpecial })
      if (ids.length === 0) return yield* badRequest(`${param}: expected a text with one token or more`, param)
      yield* Effect.yieldNow
      return ids
    }),
  )
}

/** Cuts a vector to its first elements, and scales these to length 1. A vector of zeros stays as it is. */
const scaled = (vector: Float64Array, dimensions: number): Float32Array => {
  const kept = vector.subarray(0, dimensions)
  const norm = Math.sqrt(kept.reduce((sum, element) => sum + element * element, 0))
  return Float32Array.from(kept, (element) => (norm === 0 ? 0 : element / norm))
}

const encodeBase64 = Schema.encodeSync(Schema.Uint8ArrayFromBase64)

/** Encodes float32 numbers in the order of bytes that clients expect, little-endian. */
const inBase64 = (numbers: Float32Array): string => {
  const view = new DataView(new ArrayBuffer(numbers.length * 4))
  numbers.forEach((number, at) => view.setFloat32(at * 4, number, true))
  return encodeBase64(new Uint8Array(view.buffer))
}

const noEmbeddings = new ApiError({
  status: 400,
  code: "unsupported",
  param: "model",
  message: "model: this server computes no embeddings; make its engine with embeddings: true",
})

const decodeBody = decoder(EmbeddingsBody)

/** Answers `POST /v1/embeddings`. */
export const embeddings = Effect.fnUntraced(function* (state: ServerState) {
  const { engine, gate, maxAnswers } = state
  const body = yield* Effect.flatMap(readBody(state), decodeBody)
  const model = yield* modelOf(state, body.model)
  const { embedder } = engine
  if (embedder === undefined) return yield* noEmbeddings
  const count = inputsOf(body).length
  if (count > maxAnswers) return yield* tooManyAnswers(count, maxAnswers, "input")
  const dimensions = yield* dimensionsOf(body, embedder.size, count)
  const inputs = yield* encodedInputs(state, body, model)
  yield* gate.enter(count)
  yield* timedAnswer(state.metrics)
  const pooling = body.pooling ?? state.pooling
  const embedded = yield* Effect.forEach(
    inputs,
    (promptIds) => embedder.embed({ model: model.name, promptIds, pooling }),
    { concurrency: "unbounded" },
  )
  const tokens = inputs.reduce((sum, { length }) => sum + length, 0)
  const written = (vector: Float32Array) => (body.encoding_format === "base64" ? inBase64(vector) : Array.from(vector))
  return json({
    object: "list",
    data: embedded.map(({ embedding }, index) => ({
      object: "embedding",
      index,
      embedding: written(scaled(embedding, dimensions)),
    })),
    model: model.name,
    system_fingerprint: fingerprint(embedded.map(({ weights }) => weights)),
    usage: { prompt_tokens: tokens, total_tokens: tokens },
  })
})
