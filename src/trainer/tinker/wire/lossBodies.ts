/** Decodes JSON requests to compute a loss. `wire/protobuf.ts` decodes the others. */
import { Effect } from "effect"
import type { ApiError } from "../../../decoder/serve/ApiError.ts"
import { decoderOf } from "../answers.ts"
import type { RequestTensor } from "../training/Datum.ts"
import type { AddressedLossRequest } from "./protobuf.ts"
import { LossBody, LossInput, type Tensor, tokensOf } from "./requests.ts"

const decodeLossBody = decoderOf(LossBody)
const decodeInput = decoderOf(LossInput)

const tensorOf = ({ data, shape, sparse_crow_indices }: typeof Tensor.Type): RequestTensor => ({
  data,
  shape: shape ?? null,
  isSparse: (sparse_crow_indices ?? null) !== null,
})

/** Decodes a JSON request to compute a loss. */
export const lossRequestOf = Effect.fnUntraced(function* (
  body: unknown,
  { forwardOnly }: Pick<AddressedLossRequest, "forwardOnly">,
): Effect.fn.Return<AddressedLossRequest, ApiError> {
  const { model_id, seq_id, ...inputs } = yield* decodeLossBody(body)
  const given = inputs.forward_backward_input ?? inputs.forward_input
  const input = given ?? (yield* decodeInput({}))
  return {
    modelId: model_id,
    seqId: seq_id ?? null,
    forwardOnly,
    request: {
      loss: input.loss_fn,
      lossConfig: new Map(Object.entries(input.loss_fn_config ?? {})),
      data: input.data.map(({ model_input, loss_fn_inputs }) => ({
        tokens: tokensOf(model_input),
        inputs: new Map(Object.entries(loss_fn_inputs).map(([name, tensor]) => [name, tensorOf(tensor)])),
      })),
    },
  }
})
