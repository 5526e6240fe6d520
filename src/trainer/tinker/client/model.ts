/** Sends the requests of one model, in the order of their numbers. */
import { Effect, Schema, Semaphore } from "effect"
import { attempt } from "../../../base/config/attempt.ts"
import { LossOutput } from "../wire/outcomes.ts"
import { decodeLossOutput, encodeLossRequest, type ReceivedLoss, type SentDatum } from "../wire/protobuf.ts"
import type * as Requests from "../wire/requests.ts"
import { OptimStepDone, SamplerSaved, WeightsSaved } from "../wire/responses.ts"
import type { BytesRequest } from "../../../agents/lm/providers/httpBytes.ts"
import { type Connection, decodeJson, jsonRequest, malformed } from "./connection.ts"
import { accept, decodesJson, type LongRequest, type Outcome, outcomeOf } from "./futures.ts"
import { makeSampler, type TinkerSampler } from "./sampler.ts"
import { isOutage, type TinkerError, tinkerError } from "./TinkerError.ts"

/** Examples, and the loss to compute over them. */
export interface LossData {
  readonly data: ReadonlyArray<SentDatum>
  /** The name of the loss, such as `cross_entropy`; see docs/tinker.md. */
  readonly loss: string
  readonly lossConfig?: Readonly<Record<string, number>>
}

/** The settings of an update by AdamW. Settings that are left out have the server's defaults. */
export interface AdamParams {
  readonly learningRate: number
  readonly beta1?: number
  readonly beta2?: number
  readonly epsilon?: number
  readonly weightDecay?: number
  /** The largest norm of the gradient; 0 sets no limit. */
  readonly maxNorm?: number
}

/** A model that is trained on the server. */
export interface TinkerModel {
  readonly id: string
  /** Computes the log-probabilities of the targets. */
  readonly forward: (loss: LossData) => Effect.Effect<ReceivedLoss, TinkerError>
  /** Computes the same, and adds the gradient of the loss to the model's sum. */
  readonly forwardBackward: (loss: LossData) => Effect.Effect<ReceivedLoss, TinkerError>
  /** Updates the model by the sum of its gradients. Returns the server's metrics, such as the norm of the gradient. */
  readonly optimStep: (adam: AdamParams) => Effect.Effect<Readonly<Record<string, number>>, TinkerError>
  /** Saves weights and optimiser under a name, and returns the address of the checkpoint. */
  readonly saveWeights: (name: string) => Effect.Effect<string, TinkerError>
  /** Replaces the weights, and the optimiser's moments, by those of a checkpoint. */
  readonly loadWeights: (path: string) => Effect.Effect<void, TinkerError>
  /** Makes the current weights available for sampling. */
  readonly sampler: Effect.Effect<TinkerSampler, TinkerError>
}

interface ModelOptions {
  readonly connection: Connection
  readonly id: string
  /** Returns the number of a new sampling session. */
  readonly nextSampler: () => number
}

interface Numbered {
  readonly model_id: string
  readonly seq_id: number
}

/** The model's state. */
interface ModelState extends ModelOptions {
  /** One request is sent at a time. */
  readonly alone: Semaphore.Semaphore
  /** The number of the next request. */
  next: number
  /** Set if a request may have been accepted or not. Then the number of the next request is unknown. */
  uncertain: TinkerError | undefined
}

const JsonLoss = Schema.Struct({
  loss_fn_outputs: LossOutput.fields.loss_fn_outputs,
  metrics: LossOutput.fields.metrics,
})

const received = Effect.fnUntraced(function* (connection: Connection, path: string, outcome: Outcome) {
  if (outcome._tag === "Protobuf")
    return yield* Effect.mapError(
      attempt(() => decodeLossOutput(outcome.bytes), RangeError),
      ({ message }) => malformed(connection, path, message),
    )
  const { loss_fn_outputs, metrics } = yield* decodeJson(connection, path, JsonLoss, outcome.value)
  const logProbabilities = loss_fn_outputs.map(({ logprobs }) => Float32Array.from(logprobs?.data ?? []))
  return { logProbabilities, metrics } satisfies ReceivedLoss
})

/** Returns what is wrong with the output of a loss; undefined if nothing is. */
const problemIn = ({ logProbabilities }: ReceivedLoss, { data }: LossData): string | undefined => {
  if (logProbabilities.length !== data.length)
    return `expected logprobs of ${data.length} examples, found ${logProbabilities.length}`
  const wrong = logProbabilities.findIndex(({ length }, at) => length !== data[at].targets.length)
  if (wrong !== -1)
    return `example ${wrong}: expected ${data[wrong].targets.length} logprobs, found ${logProbabilities[wrong].length}`
  // Slopes that follow from other values would end in the model's gradient.
  const infinite = logProbabilities.findIndex((all) => !all.every(Number.isFinite))
  return infinite === -1 ? undefined : `example ${infinite}: expected finite logprobs`
}

/** Sends a request with the model's next number. It is not interrupted before the server has accepted it. */
const numbered = <A>(
  state: ModelState,
  requestOf: (numbers: Numbered) => BytesRequest,
  rest: Omit<LongRequest<A>, "request">,
): Effect.Effect<A, TinkerError> => {
  const { connection, id, alone } = state
  return Effect.uninterruptibleMask((restore) =>
    Effect.gen(function* () {
      if (state.uncertain !== undefined) return yield* state.uncertain
      const long = { ...rest, request: requestOf({ model_id: id, seq_id: state.next }) }
      const accepted = yield* Effect.tapError(accept(connection, long), (error) =>
        Effect.sync(() => {
          // A refused request has not used its number. Without an answer, nobody knows.
          if (isOutage(error) || error.reason === "malformed")
            state.uncertain = tinkerError("uncertain", `the model ${id} takes no more requests: ${error.message}`)
        }),
      )
      state.next++
      return yield* restore(outcomeOf(connection, long, accepted))
    }),
  ).pipe(alone.withPermits(1))
}

const computeLoss = (state: ModelState, kind: "forward" | "forward_backward", asked: LossData) => {
  const { connection } = state
  const { data, loss, lossConfig = {} } = asked
  const forwardOnly = kind === "forward"
  const requestOf = ({ model_id, seq_id }: Numbered): BytesRequest => ({
    // The service has one path for both, and protobuf says which.
    path: "forward_backward",
    body: encodeLossRequest({ modelId: model_id, seqId: seq_id, forwardOnly, loss, lossConfig, data }),
    contentType: "application/x-protobuf",
    accept: "application/json",
  })
  const decode = Effect.fnUntraced(function* (outcome: Outcome) {
    const output = yield* received(connection, kind, outcome)
    const problem = problemIn(output, asked)
    return problem === undefined ? output : yield* malformed(connection, kind, problem)
  })
  // Servers may return a loss beside each log-probability, and a shape of each example.
  const numbers = data.reduce((sum, { targets }) => sum + 2 * targets.length + 8, 0)
  return numbered(state, requestOf, { protobuf: true, numbers, decode })
}

/** Sends a request in JSON, whose outcome is JSON. */
const sendJson = <S extends Schema.Codec<unknown, unknown>>(
  state: ModelState,
  path: string,
  body: object,
  schema: S,
): Effect.Effect<S["Type"], TinkerError> =>
  numbered(state, (numbers) => jsonRequest(path, { type: path, ...numbers, ...body }), {
    protobuf: false,
    decode: decodesJson(state.connection, path, schema),
  })

/** Encodes the settings of an update. Those that are left out have the server's defaults. */
const optimStepBody = ({ learningRate, beta1, beta2, epsilon, weightDecay, maxNorm }: AdamParams) => {
  const body: typeof Requests.OptimStep.Type = {
    adam_params: {
      learning_rate: learningRate,
      ...(beta1 === undefined ? {} : { beta1 }),
      ...(beta2 === undefined ? {} : { beta2 }),
      ...(epsilon === undefined ? {} : { eps: epsilon }),
      ...(weightDecay === undefined ? {} : { weight_decay: weightDecay }),
      ...(maxNorm === undefined ? {} : { grad_clip_norm: maxNorm }),
    },
  }
  return body
}

/** Makes the model of an id that the server has given. */
export const makeModel = Effect.fnUntraced(function* (options: ModelOptions) {
  const { connection, id, nextSampler } = options
  const state: ModelState = { ...options, alone: yield* Semaphore.make(1), next: 1, uncertain: undefined }
  const model: TinkerModel = {
    id,
    forward: (asked) => computeLoss(state, "forward", asked),
    forwardBackward: (asked) => computeLoss(state, "forward_backward", asked),
    optimStep: (adam) =>
      Effect.map(sendJson(state, "optim_step", optimStepBody(adam), OptimStepDone), ({ metrics }) => metrics ?? {}),
    saveWeights: (path) => {
      const body: typeof Requests.SaveWeights.Type = { path, overwrite: true }
      return Effect.map(sendJson(state, "save_weights", body, WeightsSaved), (saved) => saved.path)
    },
    loadWeights: (path) => {
      const body: typeof Requests.LoadWeights.Type = { path, optimizer: true }
      return Effect.asVoid(sendJson(state, "load_weights", body, Schema.Struct({})))
    },
    sampler: Effect.suspend(() => {
      const body: typeof Requests.SaveWeights.Type = { sampling_session_seq_id: nextSampler() }
      return Effect.map(sendJson(state, "save_weights_for_sampler", body, SamplerSaved), ({ sampling_session_id }) =>
        makeSampler(connection, sampling_session_id),
      )
    }),
  }
  return model
})
