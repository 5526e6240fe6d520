/** Waits for the outcomes of requests that take long. */
import { Effect, Schema } from "effect"
import { isPlain } from "../../../base/config/plain.ts"
import type { BytesAnswer, BytesRequest } from "../../../agents/lm/providers/httpBytes.ts"
import { RequestAccepted, RequestFailed } from "../wire/responses.ts"
import {
  type Connection,
  decodeJson,
  expecting,
  failureOf,
  jsonIn,
  jsonRequest,
  malformed,
  refusalOf,
  send,
} from "./connection.ts"
import type { TinkerError } from "./TinkerError.ts"

/** A request that takes long. */
export interface LongRequest<A> {
  readonly request: BytesRequest
  /** Whether the outcome may be protobuf. */
  readonly protobuf: boolean
  /** The most numbers in the outcome, which limit its size. @default 0 */
  readonly numbers?: number
  readonly decode: (outcome: Outcome) => Effect.Effect<A, TinkerError>
}

/** The outcome of a request, as the server sent it. */
export type Outcome =
  | { readonly _tag: "Json"; readonly value: unknown }
  | { readonly _tag: "Protobuf"; readonly bytes: Uint8Array }

/** The delays in seconds before a client asks again for an outcome. A server usually holds its answer back for longer. */
const delays = [0.02, 0.05, 0.1, 0.2, 0.5, 1]
const delayOf = (tries: number): number => delays[Math.min(tries, delays.length - 1)]

/** The number of times that a request is sent again because its outcome is gone. */
const mostResent = 5

const isFailure = Schema.is(RequestFailed)

/** Sends a request until the server has accepted it, and returns the id of its outcome. */
export const accept = (connection: Connection, { request }: Pick<LongRequest<unknown>, "request">) =>
  Effect.gen(function* () {
    const { bytes } = yield* send(expecting(connection, 0), request)
    const { request_id } = yield* decodeJson(connection, request.path, RequestAccepted, jsonIn(bytes))
    return request_id
  })

const outcomeIn = ({ bytes, headers }: BytesAnswer): Outcome =>
  /application\/x-protobuf/i.test(headers["content-type"] ?? "")
    ? { _tag: "Protobuf", bytes }
    : { _tag: "Json", value: jsonIn(bytes) }

/** Tells whether the server asks to ask again. */
const isWaiting = ({ status }: BytesAnswer, outcome: Outcome): boolean =>
  status === 408 || (outcome._tag === "Json" && isPlain(outcome.value) && outcome.value["type"] === "try_again")

/**
 * Waits for the outcome of an accepted request. If the outcome is gone (410), sends the request again: its number tells the
 * server whether it has performed it.
 */
export const outcomeOf = <A>(
  connection: Connection,
  long: LongRequest<A>,
  acceptedId: string,
): Effect.Effect<A, TinkerError> =>
  Effect.gen(function* () {
    const { path } = long.request
    const types = long.protobuf ? "application/x-protobuf, application/json" : "application/json"
    const limited = expecting(connection, long.numbers ?? 0)
    let id = acceptedId
    let resent = 0
    for (let tries = 0; ; tries++) {
      const asking = jsonRequest("retrieve_future", { request_id: id }, types)
      const answer = yield* send(limited, asking, [408, 410])
      if (answer.status === 410) {
        if (resent === mostResent) return yield* refusalOf(connection, path, answer)
        resent++
        id = yield* accept(connection, long)
        continue
      }
      const outcome = outcomeIn(answer)
      if (isWaiting(answer, outcome)) {
        yield* Effect.sleep(`${delayOf(tries)} seconds`)
        continue
      }
      if (outcome._tag === "Json" && isFailure(outcome.value)) return yield* failureOf(connection, path, outcome.value)
      return yield* long.decode(outcome)
    }
  })

/** Sends a request, and waits for its outcome. */
export const perform = <A>(connection: Connection, long: LongRequest<A>): Effect.Effect<A, TinkerError> =>
  Effect.flatMap(accept(connection, long), (id) => outcomeOf(connection, long, id))

/** Makes the function that decodes outcomes in JSON. */
export const decodesJson =
  <S extends Schema.Codec<unknown, unknown>>(connection: Connection, path: string, schema: S) =>
  (outcome: Outcome): Effect.Effect<S["Type"], TinkerError> =>
    outcome._tag === "Json"
      ? decodeJson(connection, path, schema, outcome.value)
      : Effect.fail(malformed(connection, path, "expected JSON, found protobuf"))
