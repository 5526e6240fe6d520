/** Defines the error of a failed request to an `Engine`. */
import { Effect, Schema } from "effect"

/**
 * Reports that a request or a change of the weights failed (other requests continue), or that a server cannot listen. From
 * `reason`, the caller can tell whether to change the request (400), to free room (409), or to try again (503): see
 * `ApiError`.
 */
export class EngineError extends Schema.TaggedError<EngineError>()("EngineError", {
  /**
   * - `invalidRequest`: a sampling setting is out of its range, the prompt is empty, or the model cannot take its `part`
   * - `promptTooLong`: the prompt leaves no room for a generated token, or has more tokens than the caller allows
   * - `tokenOutOfRange`: a token id of the prompt or of a setting is not in the vocabulary
   * - `unknownModel`: there is no model or adapter of this name
   * - `wrongWeights`: weights or an adapter don't fit the model: a tensor is missing, unknown, or of another shape
   * - `full`: there is no room for another adapter
   * - `notFinite`: the model computed logits that are not numbers, so no token can be drawn
   * - `backend`: the device failed
   * - `closed`: the engine was closed before the request was complete
   * - `address`: the server cannot listen at its address
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
    "address",
  ]),
  /** The name of the model or adapter in the request; empty if the request names none. */
  model: Schema.String.pipe(Schema.withConstructorDefault(Effect.succeed(""))),
  /** The part of a conversation that cannot be converted to a prompt of the model, or the wrong setting of a request. */
  part: Schema.optionalKey(
    Schema.Literals(["messages", "tools", "toolChoice", "stopTokenIds", "logitBias", "jsonSchema"]),
  ),
  /** The error message: one line, for the user of the program. */
  message: Schema.String,
}) {}

/** Makes an error whose message begins with the model's name. */
export const engineError = (model: string, reason: EngineError["reason"], problem: string): EngineError =>
  new EngineError({ model, reason, message: `${model}: ${problem}` })
