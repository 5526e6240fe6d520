/** Declares the requests that a trainer sends to the thread of its engine, and their answers: the methods of an `Engine`. */
import { Schema } from "effect"
import * as Rpc from "effect/rpc/Rpc"
import * as RpcGroup from "effect/rpc/RpcGroup"
import * as Transferable from "effect/workers/Transferable"
import { isPlain } from "../../base/config/plain.ts"
import type { RoutedExperts } from "../../base/formats/routedExperts.ts"
import { EngineError } from "../../decoder/inference/EngineError.ts"
import type { RequestedSampling } from "../../decoder/inference/Sampling.ts"
import { TrainerError } from "../TrainerError.ts"
import { EngineTask } from "./EngineThreads.ts"

const { String, Number, Int, Array, Struct, Record, NullOr, Union, Literal, Literals } = Schema

/** Makes the Schema of a value that messages copy. It is not transferred, because the caller keeps using its arrays. */
const copied = <A>(is: (value: unknown) => value is A) => Transferable.schema(Schema.declare(is), () => [])

const Request = Struct({
  model: String,
  promptIds: Array(Number),
  // The engine itself checks the sampling settings.
  sampling: Schema.optionalKey(copied((value): value is RequestedSampling => isPlain(value))),
})

const Candidate = Struct({ id: Int, logprob: Number })
const Token = Struct({ ...Candidate.fields, top: Array(Candidate) })
const Weights = Struct({ model: String, step: Int, baseStep: Int })

const Prompt = Array(NullOr(Struct({ ...Token.fields, rank: Int })))

const Generated = Struct({
  tokens: Array(Token),
  text: String,
  finishReason: Literals(["stop", "length"]),
  stopReason: NullOr(Union([String, Number])),
  weights: Weights,
  promptLogprobs: Schema.optionalKey(Prompt),
  routedExperts: Schema.optionalKey(
    Struct({
      layers: Int,
      perToken: Int,
      ids: copied(
        (value): value is RoutedExperts["ids"] => value instanceof Uint8Array || value instanceof Uint16Array,
      ),
    }),
  ),
})

const Event = Union([
  Struct({
    _tag: Literal("Token"),
    token: Token,
    text: String,
    weights: Weights,
    promptLogprobs: Schema.optionalKey(Prompt),
  }),
  Struct({ _tag: Literal("Finished"), text: String, generated: Generated }),
])

const Info = Struct({ name: String, base: NullOr(String), step: Int, maxLength: Int })

const Status = Struct({
  running: Int,
  waiting: Int,
  steps: Int,
  promptTokens: Int,
  cachedPromptTokens: Int,
  generatedTokens: Int,
  pages: Struct({ used: Int, kept: Int, free: Int }),
})

const Floats = copied((value): value is Float32Array => value instanceof Float32Array)
const Tensors = Record(String, Struct({ shape: Array(Int), data: Floats }))
const Adapter = Struct({ rank: Int, alpha: Number, tensors: Tensors })

export const messages = RpcGroup.make(
  /** Opens the model and makes the engine. It must be the first request. */
  Rpc.make("Open", { payload: EngineTask, error: TrainerError }),
  Rpc.make("Generate", { payload: Request, success: Generated, error: EngineError }),
  Rpc.make("Stream", { payload: Request, success: Event, error: EngineError, stream: true }),
  Rpc.make("Models", { success: Array(Info) }),
  Rpc.make("AwaitStep", { payload: { model: String, step: Int } }),
  Rpc.make("Status", { success: Status }),
  Rpc.make("LoadAdapter", { payload: { name: String, step: Int, adapter: Adapter }, error: EngineError }),
  Rpc.make("UnloadAdapter", { payload: { name: String }, error: EngineError }),
  Rpc.make("LoadWeights", { payload: { step: Int, weights: Tensors }, error: EngineError }),
)
