/** Defines the error of a client of Tinker's protocol. */
import { Schema } from "effect"

/** Reports that a request to a server of Tinker's protocol failed. The message is one line without secrets. */
export class TinkerError extends Schema.TaggedError<TinkerError>()("TinkerError", {
  /**
   * - `unauthorised`: the API key is missing or wrong
   * - `rejected`: the server refused the request, or what it asks for cannot be done; `param` names the wrong key
   * - `notFound`: the server does not have the model, the session or the checkpoint
   * - `unavailable`: the server cannot be reached or is busy, and all attempts failed
   * - `failed`: the server accepted the request, and failed to perform it
   * - `malformed`: the answer cannot be read or is too long, or its numbers do not belong to the request
   * - `uncertain`: an earlier request of the model may have been performed or not, so no further one can be sent
   */
  reason: Schema.Literals(["unauthorised", "rejected", "notFound", "unavailable", "failed", "malformed", "uncertain"]),
  /** The key of the request that is wrong; null if the server names none. */
  param: Schema.NullOr(Schema.String),
  message: Schema.String,
}) {}

export const tinkerError = (reason: TinkerError["reason"], message: string, param: string | null = null): TinkerError =>
  new TinkerError({ reason, param, message })

/** Tells whether no request to the server can succeed now, because of its key, the network or the server itself. */
export const isOutage = ({ reason }: TinkerError): boolean =>
  reason === "unauthorised" || reason === "unavailable" || reason === "uncertain"
