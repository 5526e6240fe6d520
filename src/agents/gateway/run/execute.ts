/**
 * Executes a gateway as a run with a folder of its own. Agents open sessions and call models through it; each call is written at
 * once to the journal, and each session that ends becomes a line of the rollouts. An interruption is the usual end: the open
 * sessions are ended, and the results are written. A gateway resumes from its journal, whether it was stopped or killed.
 */
import { Clock, Deferred, Duration, Effect, Redacted, Schema, type Scope } from "effect"
import { sameKey } from "../../../base/trust/hostGuard.ts"
import type { Plain } from "../../../base/config/plain.ts"
import { FormatError } from "../../../base/formats/FormatError.ts"
import { stream } from "../../../base/rng/Rng.ts"
import { CurrentRun } from "../../../run/CurrentRun.ts"
import { finishedResult } from "../../../run/finishedResult.ts"
import * as Layout from "../../../run/Layout.ts"
import type { Recorder } from "../../../run/record/Recorder.ts"
import * as Run from "../../../run/Run.ts"
import type { RunSpec } from "../../../run/RunSpec.ts"
import type { RunFiles } from "../../../run/store/RunFiles.ts"
import type { RunStore } from "../../../run/store/RunStore.ts"
import type { RunStoreError } from "../../../run/store/RunStoreError.ts"
import type { AgentError } from "../../agent/AgentError.ts"
import { LmRequest } from "../../lm/Chat.ts"
import { callFiles } from "../../lm/callFiles.ts"
import { CallContext, type LmService } from "../../lm/Lm.ts"
import type { SpendingCounter } from "../../lm/middleware/budgeted.ts"
import { CallSink } from "../../lm/middleware/logged.ts"
import { SamplingSeed } from "../../lm/middleware/seeded.ts"
import type { GatewayApp, Openings } from "../app.ts"
import { badRequest, type GatewayError, gatewayError } from "../GatewayError.ts"
import { modelCallOf } from "../modelCall.ts"
import {
  type Session,
  type SessionEnd,
  type SessionLimits,
  type SessionModel,
  Sessions,
  type SessionOptions,
} from "../Sessions.ts"
import { type GatewayConfig, nameAtServer } from "./GatewayConfig.ts"
import * as Journal from "./journal.ts"
import { noTotals, SessionRecords } from "./SessionRecords.ts"
import { startWriting } from "./writer.ts"

/** A gateway that is ready to start. */
export interface PreparedGateway {
  readonly config: GatewayConfig
  /** The config with all defaults, which is saved as `config.yaml`. */
  readonly effective: Plain
  readonly lm: LmService
  readonly embed: SessionOptions["embed"]
  readonly count: NonNullable<SessionOptions["count"]> | null
  /** The counter of the calls, tokens and cost of all sessions. */
  readonly spent: SpendingCounter
  /** The key with which clients open sessions; null if they need none. */
  readonly key: Redacted.Redacted | null
  /** Listens until the scope closes. */
  readonly listen: (
    app: Omit<GatewayApp, "guard"> & { readonly requestSeconds: number },
  ) => Effect.Effect<number, AgentError, Scope.Scope>
  /** Runs when the gateway listens at a port. */
  readonly onListening: (port: number) => Effect.Effect<void>
}

/** The result of a gateway, and the content of its `metrics.json`. */
export const GatewayResult = Schema.Struct({
  runDir: Schema.String,
  /** The number of calls of models that the gateway has recorded. */
  steps: Schema.Int,
  /** The number of sessions that have ended. */
  episodes: Schema.Int,
  /** The number of calls that failed or were cut off. */
  failedCalls: Schema.Int,
  inputTokens: Schema.Int,
  outputTokens: Schema.Int,
  /** The money spent, in the currency of the prices. */
  money: Schema.Finite,
  /** The number of sessions with a reward. */
  rewarded: Schema.Int,
  /** The mean reward of these sessions; null if there are none. */
  meanReward: Schema.NullOr(Schema.Finite),
  wallSeconds: Schema.Finite,
})
export type GatewayResult = typeof GatewayResult.Type

type GatewayRunError = AgentError | FormatError | Run.RunError

/** Serves sessions until it is interrupted, and returns the result. */
export const execute = Effect.fnUntraced(function* (
  prepared: PreparedGateway,
): Effect.fn.Return<GatewayResult, GatewayRunError, RunStore | Recorder | Scope.Scope> {
  return yield* Run.execute({
    spec: specOf(prepared),
    startedAtMillis: yield* Clock.currentTimeMillis,
    open: openRecords,
    loop: (records: SessionRecords) => serveAll(prepared, records),
    position: ({ totals }: SessionRecords) => ({ step: totals.sessions, episodes: totals.sessions }),
    endsUponInterrupt: true,
    result: {
      schema: GatewayResult,
      of: (records: SessionRecords) => resultOf(prepared, records),
    },
  })
})

/**
 * Makes the records with which the run begins. Of a resumed run, checks the journal before any other file is changed, because
 * the rollouts are written again from it.
 */
const openRecords = Effect.fnUntraced(function* (files: RunFiles) {
  const state = new SessionRecords(noTotals())
  if (!files.resumed) return { state, resumedFromStep: null }
  const hasJournal = yield* files.exists(Layout.gatewayJournal)
  if (!hasJournal && (yield* files.exists(Layout.trainRollouts))) {
    const path = `${files.directory}/${Layout.gatewayJournal}`
    const message = `${path}: expected the journal of the gateway, found no file; without it a resumed gateway would lose its rollouts, so start a new one`
    return yield* new FormatError({ path, message })
  }
  let seconds = (yield* finishedResult(files, GatewayResult))?.wallSeconds ?? 0
  yield* Journal.readEarlier(files, (entry) =>
    Effect.sync(() => {
      if ("seconds" in entry) seconds = Math.max(seconds, entry.seconds)
    }),
  )
  return { state, resumedFromStep: 0, seconds }
})

const specOf = ({ config, effective }: PreparedGateway): RunSpec => ({
  kind: "gateway",
  identity: { name: config.name, population: {}, seed: config.seed },
  config: effective,
  description: `gateway to ${config.lmConfig.model}, seed ${config.seed}`,
  env: "gateway",
  algorithm: config.lmConfig.model,
  devices: { gateway: config.lmConfig.model },
  total: 0,
  logLevel: config.logLevel,
  quiet: true,
})

/** The part of a gateway that its sessions share. */
interface GatewayState {
  readonly prepared: PreparedGateway
  readonly records: SessionRecords
  readonly sessions: Sessions
  readonly sink: CallSink | null
  /** Records an entry in the journal and, if it ends a session, the session's rollout. */
  readonly write: (entry: Journal.JournalEntry) => Effect.Effect<void>
  /** The seconds that the run has taken so far. */
  readonly seconds: Effect.Effect<number>
  /** How many sessions have begun. */
  begun: number
}

/** Serves sessions until an interruption. Fails if a file cannot be written, also if it is one of the sessions that end last. */
const serveAll = Effect.fnUntraced(function* (prepared: PreparedGateway, records: SessionRecords) {
  const broken = yield* Deferred.make<never, RunStoreError>()
  const failing = Effect.suspend(() => (Deferred.isDoneUnsafe(broken) ? Deferred.await(broken) : Effect.void))
  yield* Effect.onInterrupt(Effect.scoped(serve(prepared, records, broken)), () => failing)
})

/** Restores what an earlier process has recorded, and serves sessions until an interruption, or until `broken` fails. */
const serve = Effect.fnUntraced(function* (
  prepared: PreparedGateway,
  records: SessionRecords,
  broken: Deferred.Deferred<never, RunStoreError>,
) {
  const { config, onListening } = prepared
  const { files, seconds } = yield* CurrentRun
  const sessions = new Sessions(limitsOf(config))
  const write = yield* startWriting(records, broken, (entry) => {
    if ("spent" in entry) Object.assign(prepared.spent, entry.spent)
    if (entry._tag === "Ended") sessions.remember(entry.id)
  })
  // The agents of an earlier process have lost their keys with it.
  for (const id of records.ids) yield* write({ _tag: "Ended", id, how: "program", seconds: yield* seconds })
  const sink = config.lmConfig.logCalls ? callFiles(files) : null
  const state: GatewayState = { prepared, records, sessions, sink, write, seconds, begun: records.totals.sessions }
  yield* Effect.addFinalizer(() => endAll(sessions))
  const port = yield* prepared.listen({
    sessions,
    openings: openingsOf(state),
    maxBodyBytes: Math.round(config.maxBodyMb * 1e6),
    maxReadingBytes: config.maxReadingMb * 1e6,
    requestSeconds: config.requestSeconds,
    maxRequests: 2 * config.maxSessions,
  })
  yield* Effect.forkScoped(endIdle(state))
  yield* onListening(port)
  yield* Deferred.await(broken)
})

const limitsOf = (config: GatewayConfig): SessionLimits => ({
  sessions: config.maxSessions,
  calls: config.maxCalls,
  perSession: config.maxSessionMb * 1e6,
  inMemory: config.maxMemoryMb * 1e6,
  continuable: config.maxContinuableMb * 1e6,
})

const endAll = (sessions: Sessions): Effect.Effect<void> =>
  Effect.forEach(sessions.all(), (session) => sessions.end(session, "program"), {
    concurrency: "unbounded",
    discard: true,
  })

/** Ends sessions in which nothing was called for too long, again and again. */
const endIdle = ({ prepared, sessions }: GatewayState): Effect.Effect<never> => {
  const { idleSeconds } = prepared.config
  const once = Effect.flatMap(Clock.currentTimeMillis, (now) =>
    Effect.forEach(
      sessions.all().filter((one) => one.inProgress === 0 && now - one.lastCallAtMillis >= idleSeconds * 1000),
      (session) => sessions.end(session, "idle"),
      { discard: true },
    ),
  )
  return Effect.forever(Effect.andThen(Effect.sleep(Duration.seconds(Math.min(30, idleSeconds / 4))), once))
}

/** Returns the model for a name that an agent asks for. */
const modelFor = ({ lm, config }: PreparedGateway, name: string): SessionModel => {
  const { traceTokens } = config
  return { lm, base: { ...LmRequest.defaults, model: nameAtServer(config, name), traceTokens } }
}

/** Returns the names of models that agents are told. */
const modelNames = ({ config: { aliases, anyModel, lmConfig } }: PreparedGateway): ReadonlyArray<string> => [
  ...aliases.map(({ name }) => name),
  ...(anyModel ? [] : [lmConfig.model]),
]

/** What the body of a request to open a session may have. */
const Opening = Schema.Struct({
  /** The id of the session; by default a new one. */
  id: Schema.optionalKey(Schema.String),
  /** The name of the agent in the records. */
  agent: Schema.optionalKey(Schema.String.check(Schema.isMaxLength(200))),
  /** The group of sessions that are compared with each other. */
  group: Schema.optionalKey(Schema.String.check(Schema.isMaxLength(200))),
  tags: Schema.optionalKey(Schema.Record(Schema.String, Schema.String)),
})
type Opening = typeof Opening.Type
const decodeOpening = Schema.decodeUnknownEffect(Opening)

const isSessionId = Schema.is(Journal.SessionId)

/** Returns the id of a session that is opened without one: the next number that no client has taken. */
const nextId = ({ sessions, begun }: GatewayState): string => {
  for (let number = begun + 1; ; number++) {
    const id = `session-${String(number).padStart(6, "0")}`
    if (!sessions.isKnown(id)) return id
  }
}

/** Opens a session, and records that it has begun. */
const openSession = Effect.fnUntraced(function* (
  state: GatewayState,
  { agent = "external", group, tags = {}, ...rest }: Opening,
  key: Redacted.Redacted | null | undefined,
) {
  const { prepared, sessions, sink, write, seconds } = state
  const id = rest.id ?? nextId(state)
  if (!isSessionId(id)) return yield* badRequest("id: expected a text of 1 to 128 characters, without slashes")
  if (sessions.isKnown(id)) return yield* gatewayError(409, "session_exists", `the session ${id} exists already`)
  const samplingSeed = stream(prepared.config.seed, "session", id).uint32()
  const { embed, count, spent } = prepared
  const timed = (entry: (seconds: number) => Journal.JournalEntry) =>
    Effect.flatMap(seconds, (now) => write(entry(now)))
  let calls = 0
  const options: SessionOptions = {
    id,
    modelOf: (name) => modelFor(prepared, name),
    models: modelNames(prepared),
    embed:
      embed === null
        ? null
        : (body) =>
            Effect.ensuring(
              embed(body),
              timed((now) => ({ _tag: "Embedded", id, spent: spent.save(), seconds: now })),
            ),
    count,
    ...(key === undefined ? {} : { key }),
    begin: () => {
      const index = calls++
      return {
        index,
        end: (ended) =>
          timed((now) => ({
            _tag: "Call",
            id,
            index,
            call: modelCallOf(ended, index),
            problem: ended.problem,
            latencyMillis: ended.endedAtMillis - ended.startedAtMillis,
            spent: spent.save(),
            seconds: now,
          })),
      }
    },
    recorded: () => state.records.characters,
    onReward: (reward) => write({ _tag: "Rewarded", id, reward }),
    onEnd: (how: SessionEnd) => timed((now) => ({ _tag: "Ended", id, how, seconds: now })),
  }
  const number = state.begun + 1
  const context = yield* Effect.context<never>().pipe(
    Effect.provideService(SamplingSeed, samplingSeed),
    Effect.provideService(CallSink, sink),
    Effect.provideService(CallContext, { phase: { _tag: "train" }, purpose: "action", episode: number, step: 0 }),
  )
  const session = yield* sessions.add(options, context, yield* Clock.currentTimeMillis)
  state.begun = number
  yield* write({ _tag: "Begun", id, agent, groupId: group ?? null, tags, samplingSeed })
  return session
}, Effect.uninterruptible)

const openingsOf = (state: GatewayState): Openings => {
  const { key } = state.prepared
  const checkKey = (sent: string | undefined) =>
    key === null || sameKey(sent, Redacted.value(key))
      ? Effect.void
      : Effect.fail(gatewayError(401, "invalid_api_key", "expected the gateway's key as the API key"))
  return {
    models: modelNames(state.prepared),
    checkKey,
    byUse: (id, sent): Effect.Effect<Session, GatewayError> =>
      checkKey(sent).pipe(
        Effect.andThen(openSession(state, { id }, key)),
        // Another call of the session may have opened it meanwhile.
        Effect.catchIf(
          ({ code }) => code === "session_exists",
          () => state.sessions.find(id, sent),
        ),
      ),
    byRequest: Effect.fnUntraced(function* (body, host) {
      const opening = yield* Effect.mapError(decodeOpening(body), () =>
        badRequest("expected id, agent and group as texts, and tags as an object of texts; all may be left out"),
      )
      const session = yield* openSession(state, opening, undefined)
      const address = `http://${host}/sessions/${encodeURIComponent(session.id)}`
      const sessionKey = session.key === null ? null : Redacted.value(session.key)
      return { id: session.id, base_url: `${address}/v1`, anthropic_base_url: address, api_key: sessionKey }
    }),
  }
}

/** Returns the contents of `metrics.json` and `return.json`. */
const resultOf = Effect.fnUntraced(function* ({ spent }: PreparedGateway, { totals }: SessionRecords) {
  const { files, seconds } = yield* CurrentRun
  const { calls, sessions, failed, inputTokens, outputTokens, rewarded, rewards } = totals
  const metrics: GatewayResult = {
    runDir: files.directory,
    steps: calls,
    episodes: sessions,
    failedCalls: failed,
    inputTokens,
    outputTokens,
    money: spent.money,
    rewarded,
    meanReward: rewarded === 0 ? null : rewards / rewarded,
    wallSeconds: yield* seconds,
  }
  return { metrics, evaluations: [] }
})
