/** Defines the error of a failed request to an `Engine`. */
import { Schema } from "effect"

/** Reports that a request, or a change of the weights, failed. Other requests are not affected. */
export class EngineError extends Schema.TaggedError<EngineError>()("EngineError", {
  /**
   * - `invalidRequest`: a sampling setting is out of its range, or the prompt is empty
   * - `promptTooLong`: the prompt leaves no room for a generated token
   * - `tokenOutOfRange`: a token id of the prompt or of `stopTokenIds` is not in the vocabulary
   * - `unknownModel`: there is no model or adapter of this name
   * - `wrongWeights`: weights or an adapter don't fit the model: a tensor is missing, unknown, or of another shape
   * - `full`: there is no room for another adapter
   * - `notFinite`: the model computed logits that are not numbers, so no token can be drawn
   * - `backend`: the device failed
   * - `closed`: the engine was closed before the request was complete
   */
  reason: Schema.Literals([
    "invalidRequest",
    "promptTooLong",
    "tokenOutOfRange",
    "unknownModel",
    "wrongWeights",
    "full",
    "notFinite",
    "backend",
    "closed",
  ]),
  /** The name of the model or adapter that the request asked for. */
  model: Schema.String,
  /** The error message: one line, for the user of the program. */
  message: Schema.String,
}) {}

/** Makes an error whose message begins with the model's name. */
export const engineError = (model: string, reason: EngineError["reason"], problem: string): EngineError =>
  new EngineError({ model, reason, message: `${model}: ${problem}` })
