/** Computes the losses of a request, and the gradient of its model's adapter. */
import { Effect } from "effect"
import { attempt } from "../../../base/config/attempt.ts"
import { badRequest } from "../../../decoder/serve/ApiError.ts"
import { failedBy } from "../answers.ts"
import { rowOf } from "../models/AdapterInTraining.ts"
import { checkLossRequest, DatumProblem, type Datum, type LossRequest } from "./Datum.ts"
import { lossOfToken } from "./lossFunctions.ts"
import { clientOf, type TinkerModel, type TinkerState } from "../TinkerState.ts"
import { placeData } from "./windows.ts"
import type { LossOutput, Outcome } from "../wire/outcomes.ts"
import type { AddressedLossRequest } from "../wire/protobuf.ts"

/** Sums up the loss of an example, from the log-probabilities of its targets. */
const lossOf = ({ loss, beta }: LossRequest, { columns }: Datum, logProbabilities: Float32Array): number => {
  let sum = 0
  for (let at = 0; at < logProbabilities.length; at++) {
    const token = {
      weights: columns.weights[at],
      logprobs: columns.logprobs[at],
      advantages: columns.advantages[at],
      clipLow: columns.clipLow[at],
      clipHigh: columns.clipHigh[at],
      logProbability: logProbabilities[at],
    }
    // Tokens of weight 0 do not count, even if their loss is infinite.
    if (token.weights !== 0) sum += lossOfToken(loss, token, beta)
  }
  return sum
}

/** Makes the output of a loss: its sum, and the log-probability of each target. */
const outputOf = (request: LossRequest, all: ReadonlyArray<Float32Array>): LossOutput => ({
  loss_fn_output_type: "ArrayRecord",
  loss_fn_outputs: all.map((logProbabilities) => ({
    logprobs: { data: Array.from(logProbabilities), dtype: "float32", shape: [logProbabilities.length] },
  })),
  metrics: {
    "loss:sum": request.data.reduce((sum, datum, at) => sum + lossOf(request, datum, all[at]), 0),
    "tokens:sum": request.data.reduce((sum, { tokens }) => sum + tokens.length, 0),
  },
})

const isFinite = (numbers: Float32Array): boolean => {
  for (let at = 0; at < numbers.length; at++) if (!Number.isFinite(numbers[at])) return false
  return true
}

const notFinite =
  "the gradient has numbers that are not finite, so it was not added; check logprobs, advantages and the learning rate of the last optim_step"

const lossNotFinite =
  "the loss is not a finite number, so no gradient was added; check logprobs and advantages, whose ratios may be too large"

/** Computes the log-probabilities of a request's targets and, unless only the forward pass is needed, adds its gradient. */
const compute = Effect.fnUntraced(function* (
  state: TinkerState,
  { record, adapter }: TinkerModel,
  request: LossRequest,
  { forwardOnly }: Pick<AddressedLossRequest, "forwardOnly">,
) {
  const { programs, turns } = state
  const client = clientOf(state, record.owner, record.session)
  const { data } = request
  const results: Array<Float32Array> = []
  /** The gradient of this request, which is added only as a whole. */
  const total = new Float32Array(forwardOnly ? 0 : adapter.gradient.length)
  for (const batch of placeData(data, programs.sizes)) {
    const work = forwardOnly
      ? Effect.map(programs.forward(batch, data, rowOf(adapter)), (all) => ({ all, isUsable: true }))
      : Effect.map(programs.gradient(batch, request, rowOf(adapter)), ({ logProbabilities, gradient }) => {
          for (let at = 0; at < total.length; at++) total[at] += gradient[at]
          return { all: logProbabilities, isUsable: isFinite(gradient) }
        })
    const taken = Effect.map(work, ({ all, isUsable }) => {
      for (const { index, start } of batch.placed) results[index] = all.slice(start, start + data[index].tokens.length)
      return isUsable
    })
    if (!(yield* turns.inTurn(client, taken))) return undefined
  }
  return { results, total }
})

/** Performs a request to compute a loss. */
export const performLoss = Effect.fnUntraced(function* (
  state: TinkerState,
  model: TinkerModel,
  { request, forwardOnly }: AddressedLossRequest,
) {
  const { maxLength, limits, base } = state
  const bounds = { vocabSize: base.decoder.vocabSize, maxLength, maxTokens: limits.requestTokens }
  const checked = yield* Effect.mapError(
    attempt(() => checkLossRequest(request, bounds), DatumProblem),
    ({ message, key }) => badRequest(message, key),
  )
  const computed = yield* compute(state, model, checked, { forwardOnly })
  if (computed === undefined || computed.results.some((one) => !isFinite(one))) return failedBy("user", notFinite)
  const value = outputOf(checked, computed.results)
  // The file of the outcome is JSON, which has no numbers that are not finite.
  if (!Number.isFinite(value.metrics["loss:sum"])) return failedBy("user", lossNotFinite)
  const { adapter } = model
  if (!forwardOnly) {
    for (let at = 0; at < computed.total.length; at++) adapter.gradient[at] += computed.total[at]
    adapter.summands++
  }
  const outcome: Outcome = { _tag: "Loss", value }
  return outcome
})
