/**
 * Answers a call of an agent with the session's model, and records it. If the model's server speaks the agent's protocol, the
 * body and the answer are passed on as they are; otherwise they are converted.
 */
import { Cause, Clock, Effect, Exit, Fiber, Option, Pull, Queue, type Scope, Stream, type Tracer } from "effect"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import { isPlain, type Plain } from "../../base/config/plain.ts"
import { jsonLength } from "../../base/text/jsonFacts.ts"
import { parsedJson } from "../../base/text/text.ts"
import { utf8 } from "../../base/text/utf8.ts"
import { stream } from "../../base/rng/Rng.ts"
import { asMessage, type Completion, type LmRequest } from "../lm/Chat.ts"
import type { LmService } from "../lm/Lm.ts"
import type { LmError } from "../lm/LmError.ts"
import { CurrentExchange, identityOf, makeExchange, type RawExchange, type RawProtocol } from "../lm/RawExchange.ts"
import { underCaller } from "../lm/spans.ts"
import { badRequest, fromLm, type GatewayError, gatewayError, internalError } from "./GatewayError.ts"
import type { AnswerFacts, ClientProtocol, ClientRequest } from "./protocols/ClientProtocol.ts"
import { choiceEvents, joinedChoices } from "./protocols/choices.ts"
import { type CallPlace, counted, type Session, type SessionModel } from "./Sessions.ts"
import { sizeOfRequest } from "./SharedRequests.ts"

/** A call in the protocol of an agent. */
interface AgentCall {
  readonly name: RawProtocol
  readonly protocol: ClientProtocol
  readonly body: Plain
  /** The headers that a server of the protocol needs. */
  readonly headers: Readonly<Record<string, string>>
  /** The span of the agent in which it makes the call; null if it names none. */
  readonly caller: Tracer.ExternalSpan | null
}

/** Tells clients not to repeat a request, because the gateway has done so already. */
export const doNotRetry = { "x-should-retry": "false" }

const json = (text: string): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.text(text, { contentType: "application/json" })

const eventStream = { contentType: "text/event-stream", headers: { "cache-control": "no-cache" } }

const problemOf = (cause: Cause.Cause<LmError | GatewayError>): string | null => {
  if (Cause.hasInterruptsOnly(cause)) return null
  const error = Option.getOrUndefined(Cause.findErrorOption(cause))
  return error?.message ?? "the call ended in a defect"
}

/** A request to the session's model. */
interface ModelRequest {
  readonly lm: LmService
  readonly request: LmRequest
  readonly place: CallPlace
  /** The exchange with an agent whose protocol the model's server speaks; null if the call is converted. */
  readonly raw: RawExchange | null
  readonly caller: AgentCall["caller"]
}

/** Returns the fields by which two requests are equal: those of the body if it is passed on, since it may have more. */
const fieldsOf = (request: LmRequest, raw: RawExchange | null): Plain =>
  raw === null ? request : { ...raw.identity, model: request.model }

/**
 * Returns the fields of a body by which two requests are equal. The id of an earlier answer of the session differs each time that
 * the session is repeated, so its conversation stands for it.
 */
const bodyIdentity = (body: Plain, { messages }: ClientRequest, earlier: string | null): Plain =>
  earlier === null ? identityOf(body) : { ...identityOf(body), previous_response_id: null, messages }

/** Makes a call of the session's model, in the context in which the session was opened, and records how it ended. */
const complete = Effect.fnUntraced(function* (session: Session, { lm, request, place, raw, caller }: ModelRequest) {
  const startedAtMillis = yield* Clock.currentTimeMillis
  const seeded = Effect.flatMap(session.seedOf(request, fieldsOf(request, raw)), (seed) =>
    lm.complete({ ...request, seed }),
  )
  const asked = underCaller(caller, seeded).pipe(
    Effect.annotateSpans("gen_ai.conversation.id", session.id),
    Effect.provideService(CurrentExchange, raw),
    Effect.provideContext(session.context),
  )
  const record = (exit: Exit.Exit<Completion, LmError | GatewayError>): Effect.Effect<void> =>
    Effect.flatMap(Clock.currentTimeMillis, (endedAtMillis) => {
      const times = { request, startedAtMillis, endedAtMillis }
      if (Exit.isSuccess(exit)) return place.end({ ...times, completion: exit.value, problem: null, isCutOff: false })
      const isCutOff = Cause.hasInterruptsOnly(exit.cause) || raw?.hasBegun === true
      const completion = isCutOff ? (raw?.partial?.() ?? null) : null
      return place.end({ ...times, completion, problem: problemOf(exit.cause), isCutOff })
    })
  return yield* Effect.onExit(asked, record)
})

/** Fails if a request has parts that only a server of its own protocol could get. */
const refuseUnmodelled = ({ unmodelled }: ClientRequest): Effect.Effect<void, GatewayError> =>
  unmodelled.length === 0
    ? Effect.void
    : Effect.fail(
        badRequest(
          `${unmodelled.join(", ")}: not supported, because the model's server does not speak this protocol; leave it out`,
        ),
      )

const toGatewayError = (error: LmError | GatewayError): GatewayError =>
  error._tag === "LmError" ? fromLm(error) : error

/** Returns the response of a server that refused the request of an agent; undefined if the error is another one. */
const passedRefusal = (
  error: LmError | GatewayError,
  raw: RawExchange | null,
): HttpServerResponse.HttpServerResponse | undefined => {
  const refusal = raw?.refusal ?? null
  if (refusal === null || error._tag !== "LmError" || error.reason !== "rejected") return undefined
  // The agent must not follow a redirection.
  if (refusal.status < 400) return undefined
  const type = parsedJson(refusal.text) === undefined ? "text/plain" : "application/json"
  return HttpServerResponse.text(refusal.text, { status: refusal.status, contentType: type, headers: doNotRetry })
}

/** Answers a call that failed with the server's own refusal, or fails. */
const refused = (
  error: LmError | GatewayError,
  raw: RawExchange | null,
): Effect.Effect<HttpServerResponse.HttpServerResponse, GatewayError> => {
  const passed = passedRefusal(error, raw)
  return passed === undefined ? Effect.fail(toGatewayError(error)) : Effect.succeed(passed)
}

/** A call whose body was decoded, and whose model is known. */
interface DecodedCall extends AgentCall {
  readonly session: Session
  readonly asked: ClientRequest
  readonly model: SessionModel
  readonly request: LmRequest
  /** Whether the body is passed on as it is. */
  readonly canPass: boolean
  /** The id of the session's answer that the request continues; null if it continues none. */
  readonly earlier: string | null
  readonly facts: AnswerFacts
  readonly nowMillis: number
}

/** Decodes a call, and finds its model. */
const decoded = Effect.fnUntraced(function* (
  session: Session,
  call: AgentCall,
): Effect.fn.Return<DecodedCall, GatewayError> {
  const body = session.shared.body(call.body)
  const model = session.modelOf(typeof body["model"] === "string" ? body["model"] : "")
  const canPass = model?.lm.speaks?.includes(call.name) ?? false
  let earlier: string | null = null
  const asked = yield* call.protocol.decode(body, (id) => {
    const conversation = session.answers.get(id)
    if (conversation !== undefined) earlier = id
    // The server may know an answer that the session does not.
    return conversation ?? (canPass ? [] : undefined)
  })
  if (model === undefined) {
    const message = `the model ${JSON.stringify(asked.model)} does not exist; there are ${session.models.join(", ")}`
    return yield* gatewayError(404, "model_not_found", message)
  }
  if (!canPass) yield* refuseUnmodelled(asked)
  const request = session.shared.request({ ...model.base, ...asked.settings, messages: asked.messages })
  const nowMillis = yield* Clock.currentTimeMillis
  const facts: AnswerFacts = {
    id: `${session.id}-${session.begun}`,
    created: Math.floor(nowMillis / 1000),
    streamUsage: asked.streamUsage,
  }
  return { ...call, body, session, asked, model, request, canPass, earlier, facts, nowMillis }
})

/** Lets the session forget the requests that it shares, if a call fails. */
const forgettingFailed = <A, E, R>({ shared }: Session, call: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.onError(call, () => Effect.sync(() => shared.forget()))

/** Keeps the conversation up to an answer, if a later request can continue it by the answer's id. */
const keepAnswer = (
  { session, protocol: { answerId }, facts, asked }: DecodedCall,
  completion: Completion,
  raw: RawExchange | null,
): void => {
  if (answerId === undefined || asked.conversation === undefined) return
  session.answers.add(raw?.answerId ?? answerId(facts.id), [...asked.conversation, asMessage(completion)])
}

/** Makes the exchange that passes the body of a call on; null if the call is converted. */
const exchangeOf = ({ name, headers, canPass, asked, earlier }: DecodedCall, body: Plain) =>
  canPass
    ? makeExchange({ protocol: name, body, headers, identity: bodyIdentity(body, asked, earlier) })
    : Effect.succeed(null)

/** Asks the session's model for one answer, which counts against the limits and is recorded. */
const asking = (call: DecodedCall, raw: RawExchange | null): Effect.Effect<Completion, LmError | GatewayError> => {
  const { session, request, nowMillis, caller } = call
  const { lm } = call.model
  const answer = counted(
    session,
    { nowMillis, size: sizeOfRequest(request) },
    Effect.suspend(() => complete(session, { lm, request, place: session.begin(), raw, caller })),
  )
  return Effect.tap(forgettingFailed(session, answer), (completion) =>
    Effect.sync(() => {
      session.characters += jsonLength(completion)
      keepAnswer(call, completion, raw)
    }),
  )
}

/** Answers a call with one answer. */
const answerOnce = Effect.fnUntraced(function* (call: DecodedCall) {
  const { protocol, asked, facts } = call
  const raw = yield* exchangeOf(call, call.body)
  const encoded = (completion: Completion): HttpServerResponse.HttpServerResponse => {
    if (asked.stream) return HttpServerResponse.text(protocol.events(facts, completion), eventStream)
    return json(raw?.text ?? JSON.stringify(protocol.whole(facts, completion)))
  }
  const calling = asking(call, raw)
  const answer =
    raw === null || !asked.stream ? Effect.map(calling, encoded) : streamed(calling, { raw, protocol, encoded })
  return yield* Effect.catch(answer, (error) => refused(error, raw))
})

/** Returns the seed of one of several answers, which must differ also if the agent has set a seed. */
const seedOfChoice = (seed: number | null, choice: number): number | null =>
  seed === null || choice === 0 ? seed : stream(seed, "choice", choice).uint32() >>> 1

/** Answers a call with several answers. Each is asked for and recorded by itself; they are sent when all have arrived. */
const answerSeveral = Effect.fnUntraced(function* (call: DecodedCall, choices: number) {
  const { protocol, asked, facts } = call
  // A body without a seed gets that of the request.
  const { n: _1, stream: _2, stream_options: _3, seed: _4, ...body } = call.body
  const one = Effect.fnUntraced(function* (choice: number) {
    const raw = yield* exchangeOf(call, body)
    const request = { ...call.request, seed: seedOfChoice(call.request.seed, choice) }
    const completion = yield* Effect.mapError(asking({ ...call, request }, raw), (error) => ({ error, raw }))
    const answer: unknown = typeof raw?.text === "string" ? parsedJson(raw.text) : protocol.whole(facts, completion)
    return isPlain(answer) ? answer : {}
  })
  return yield* Effect.forEach(Array.from({ length: choices }).keys(), one, { concurrency: "unbounded" }).pipe(
    Effect.map((answers) =>
      asked.stream
        ? HttpServerResponse.text(choiceEvents(answers, { withUsage: asked.streamUsage }), eventStream)
        : json(JSON.stringify(joinedChoices(answers))),
    ),
    Effect.catch(({ error, raw }) => refused(error, raw)),
  )
})

/** Answers a call of an agent. */
export const answerCall = Effect.fnUntraced(function* (
  session: Session,
  agentCall: AgentCall,
): Effect.fn.Return<HttpServerResponse.HttpServerResponse, GatewayError, Scope.Scope> {
  const call = yield* forgettingFailed(session, decoded(session, agentCall))
  const { choices = 1 } = call.asked
  return yield* choices === 1 ? answerOnce(call) : answerSeveral(call, choices)
})

/** How the answer of a call becomes a response. */
interface StreamedAnswer {
  readonly raw: RawExchange
  readonly protocol: ClientProtocol
  readonly encoded: (completion: Completion) => HttpServerResponse.HttpServerResponse
}

/**
 * Makes the response of a call whose answer is streamed as its bytes arrive. It is returned with the first bytes, so that a call
 * that fails earlier has its own status. If the agent disconnects, the scope of its request closes, which ends the call.
 */
const streamed = Effect.fnUntraced(function* (
  calling: Effect.Effect<Completion, LmError | GatewayError>,
  { raw, protocol, encoded }: StreamedAnswer,
) {
  const fiber = yield* Effect.forkScoped(Effect.ensuring(calling, Queue.end(raw.pieces)))
  const pull = yield* Stream.toPull(Stream.fromQueue(raw.pieces))
  const first = yield* Pull.catchDone(pull, () => Effect.succeed<ReadonlyArray<Uint8Array>>([]))
  // Nothing was passed on if the call failed, or if the cache had the answer.
  if (first.length === 0) return encoded(yield* Fiber.join(fiber))
  const failure = Effect.map(Fiber.await(fiber), (exit) => {
    if (Exit.isSuccess(exit)) return new Uint8Array()
    const error = Option.getOrUndefined(Cause.findErrorOption(exit.cause))
    // The server may have stopped within an event, which the empty line ends.
    return utf8.encode(`\n\n${protocol.failureEvent(error === undefined ? internalError : toGatewayError(error))}`)
  })
  const pieces = Stream.concat(Stream.fromIterable(first), Stream.fromPull(Effect.succeed(pull)))
  return HttpServerResponse.stream(Stream.concat(pieces, Stream.fromEffect(failure)), eventStream)
})
