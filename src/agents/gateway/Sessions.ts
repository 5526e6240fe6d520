/**
 * Holds the sessions of a gateway. A session belongs to one episode of an agent: it has a key, the model that answers its
 * calls, and a place for its records. Ended sessions leave the memory; only some of their ids are kept, to tell an agent that
 * calls too late from one that calls a wrong address.
 */
import { Clock, type Context, Deferred, Effect, Latch, Redacted } from "effect"
import { sameKey } from "../../base/trust/hostGuard.ts"
import type { Completion, LmRequest } from "../lm/Chat.ts"
import type { LmService } from "../lm/Lm.ts"
import { repeatSeeds, type SeedOfRequest } from "../lm/middleware/repeats.ts"
import { expectedReward, isReward } from "../task/Feedback.ts"
import { badRequest, type GatewayError, gatewayError } from "./GatewayError.ts"
import { KeptAnswers } from "./KeptAnswers.ts"
import { SharedRequests } from "./SharedRequests.ts"

/** A model that answers calls of a session. */
export interface SessionModel {
  readonly lm: LmService
  /** The request with the settings of the model, which a call may change, without its messages. */
  readonly base: Omit<LmRequest, "messages">
}

/** A call that has ended. */
export interface EndedCall {
  readonly request: LmRequest
  /** The answer, or the part of it that arrived before the agent hung up; null if there is none. */
  readonly completion: Completion | null
  /** Why the call failed; null if it did not. */
  readonly problem: string | null
  /** Whether the agent hung up, or the session ended, before the answer was complete. */
  readonly isCutOff: boolean
  readonly startedAtMillis: number
  readonly endedAtMillis: number
}

/** A place for the record of a call that has begun. */
export interface CallPlace {
  /** The number of calls of the session that began before this one. */
  readonly index: number
  readonly end: (call: EndedCall) => Effect.Effect<void>
}

export interface SessionOptions {
  readonly id: string
  /** Returns the model of a name that the agent uses; undefined if there is none of this name. */
  readonly modelOf: (name: string) => SessionModel | undefined
  /** The names of models that the agent is told. */
  readonly models: ReadonlyArray<string>
  /** Answers a request for embeddings with the body of the answer; null if the session's model computes none. */
  readonly embed: ((body: Readonly<Record<string, unknown>>) => Effect.Effect<string, GatewayError>) | null
  /**
   * Answers a request to count tokens, with the headers that the server needs, with the body of the answer; null or left out if
   * the model's server does not speak Anthropic's messages.
   */
  readonly count?:
    | ((
        body: Readonly<Record<string, unknown>>,
        headers: Readonly<Record<string, string>>,
      ) => Effect.Effect<string, GatewayError>)
    | null
  /** Reserves the place of a call that begins. */
  readonly begin: () => CallPlace
  /** Returns the number of characters of recorded messages in memory, of all sessions of the gateway. */
  readonly recorded?: () => number
  /** Receives the agent's reward. */
  readonly onReward: (reward: number) => Effect.Effect<void>
  /** The key that the session's calls must have; by default a new one. null takes any key. */
  readonly key?: Redacted.Redacted | null
  /** Runs after the session has ended, and all its calls have. */
  readonly onEnd: (how: SessionEnd) => Effect.Effect<void>
}

/** Who ended a session: the agent, the program that opened it, or a limit on the time without a call. */
export type SessionEnd = "agent" | "program" | "idle"

/** The limits of sessions. Sizes are in characters. */
export interface SessionLimits {
  /** The largest number of sessions at the same time. */
  readonly sessions: number
  /** The largest number of calls of a session, all of which are kept in memory. */
  readonly calls: number
  /**
   * The largest size of all calls of a session. Each call counts with its whole prompt, because a rollout is one line, and a
   * JavaScript string has at most 5.3e8 characters.
   */
  readonly perSession: number
  /** The largest size of all open sessions, where messages that several calls of a session share count once. */
  readonly inMemory: number
  /** The largest size of the conversations of a session that later requests may continue by an id. */
  readonly continuable: number
}

export const defaultLimits: SessionLimits = {
  sessions: 4096,
  calls: 10_000,
  perSession: 2e8,
  inMemory: 1e9,
  continuable: 8e6,
}

export interface Session extends SessionOptions {
  readonly limits: SessionLimits
  readonly key: Redacted.Redacted | null
  /** The context in which the session was opened, in which its calls are made. */
  readonly context: Context.Context<never>
  readonly closed: Deferred.Deferred<void>
  /** Open while no call is in progress. */
  readonly idle: Latch.Latch
  /** Chooses the seed of a request: equal requests must get different seeds. */
  readonly seedOf: SeedOfRequest
  /** Gives the messages and tools that the session's requests repeat the same objects. */
  readonly shared: SharedRequests
  /** The conversations up to answers that later requests may continue, by the ids of the answers. */
  readonly answers: KeptAnswers
  /** The number of characters of all calls as JSON, of which the session's rollout consists. */
  characters: number
  /** The number of characters of the requests in progress, of all sessions of the gateway. */
  readonly requests: { characters: number }
  inProgress: number
  begun: number
  reward: number | null
  /** The time at which the last call began or ended, in milliseconds since 1970. */
  lastCallAtMillis: number
}

/** The number of ended sessions whose ids are kept. */
const rememberedIds = 10_000

const sessionEnded = (id: string): GatewayError =>
  gatewayError(410, "session_ended", `the session ${id} has ended; it takes no further calls`)

export const unknownSession = (id: string): GatewayError =>
  gatewayError(404, "unknown_session", `there is no session ${id}; use the address that you were given`)

const keyBytes = 18

/** Makes a key, which nobody can guess. */
const makeKey = (): Redacted.Redacted => {
  const bytes = crypto.getRandomValues(new Uint8Array(keyBytes))
  return Redacted.make(
    btoa(String.fromCharCode(...bytes))
      .replaceAll("+", "-")
      .replaceAll("/", "_"),
  )
}

/** The sessions of a gateway that have not ended, by their ids. */
export class Sessions {
  private readonly open = new Map<string, Session>()
  private readonly ended = new Set<string>()
  private readonly requests = { characters: 0 }
  private readonly limits: SessionLimits

  constructor(limits: Partial<SessionLimits> = {}) {
    this.limits = { ...defaultLimits, ...limits }
  }

  get size(): number {
    return this.open.size
  }

  /** Adds a session. Fails if there are too many, or if the id is in use. */
  add(
    options: SessionOptions,
    context: Context.Context<never>,
    nowMillis: number,
  ): Effect.Effect<Session, GatewayError> {
    return Effect.suspend(() => {
      const { id } = options
      if (this.open.has(id))
        return Effect.fail(gatewayError(409, "session_exists", `the session ${id} is open already`))
      const { limits } = this
      if (this.open.size >= limits.sessions) {
        const message = `expected at most ${limits.sessions} sessions at the same time; end some of them, or raise the limit`
        return Effect.fail(gatewayError(429, "too_many_sessions", message))
      }
      const session: Session = {
        ...options,
        limits,
        key: options.key === undefined ? makeKey() : options.key,
        context,
        closed: Deferred.makeUnsafe(),
        idle: Latch.makeUnsafe(true),
        seedOf: repeatSeeds(),
        shared: new SharedRequests(),
        answers: new KeptAnswers(limits.continuable),
        characters: 0,
        requests: this.requests,
        inProgress: 0,
        begun: 0,
        reward: null,
        lastCallAtMillis: nowMillis,
      }
      this.open.set(id, session)
      return Effect.succeed(session)
    })
  }

  all(): ReadonlyArray<Session> {
    return [...this.open.values()]
  }

  /** Tells whether an id belongs to a session, open or ended. */
  isKnown(id: string): boolean {
    return this.open.has(id) || this.ended.has(id)
  }

  /** Ends a session: cuts off its calls in progress, and waits until they are recorded. Does nothing if it has ended. */
  end(session: Session, how: SessionEnd): Effect.Effect<void> {
    return Effect.suspend(() => {
      if (this.open.get(session.id) !== session) return Effect.void
      this.open.delete(session.id)
      this.remember(session.id)
      return Deferred.succeed(session.closed, undefined).pipe(
        Effect.andThen(session.idle.await),
        Effect.andThen(Effect.suspend(() => session.onEnd(how))),
        Effect.uninterruptible,
      )
    })
  }

  /** Finds the session that a request addresses, and checks its key. */
  find(id: string, key: string | undefined): Effect.Effect<Session, GatewayError> {
    const session = this.open.get(id)
    if (session === undefined) {
      if (this.ended.has(id)) return Effect.fail(sessionEnded(id))
      return Effect.fail(unknownSession(id))
    }
    if (session.key === null || sameKey(key, Redacted.value(session.key))) return Effect.succeed(session)
    return Effect.fail(gatewayError(401, "invalid_api_key", `expected the key of the session ${id} as the API key`))
  }

  /** Keeps the id of an ended session, until there are too many later ones. */
  remember(id: string): void {
    this.ended.add(id)
    if (this.ended.size <= rememberedIds) return
    const [oldest] = this.ended
    this.ended.delete(oldest)
  }
}

/** Returns why a session cannot record a further call of this size; undefined if it can, or if nothing is recorded. */
const fullBy = (session: Session, size: number | null): GatewayError | undefined => {
  if (size === null) return undefined
  const { begun, characters, requests, recorded, limits } = session
  if (begun >= limits.calls) {
    const message = `expected at most ${limits.calls} calls in one session; end it and use another one`
    return gatewayError(429, "too_many_calls", message)
  }
  if (characters + size > limits.perSession) {
    const message = `expected at most ${limits.perSession} characters in all calls of one session; end it and use another one`
    return gatewayError(429, "session_too_large", message)
  }
  if (requests.characters + (recorded?.() ?? 0) + size <= limits.inMemory) return undefined
  const message = `expected at most ${limits.inMemory} characters in all sessions that are open; end some of them`
  return gatewayError(429, "sessions_too_large", message)
}

/**
 * Counts a call of a session while it runs. `size` is the number of characters of its request; null for a request that is not
 * recorded, such as one for embeddings. If the session ends meanwhile, the call is interrupted.
 */
export const counted = <A, E>(
  session: Session,
  { nowMillis, size }: { readonly nowMillis: number; readonly size: number | null },
  call: Effect.Effect<A, E>,
): Effect.Effect<A, E | GatewayError> =>
  Effect.uninterruptibleMask((interruptible): Effect.Effect<A, E | GatewayError> => {
    // The session may have ended while the body of the request arrived.
    if (Deferred.isDoneUnsafe(session.closed)) return Effect.fail(sessionEnded(session.id))
    const full = fullBy(session, size)
    if (full !== undefined) return Effect.fail(full)
    const characters = size ?? 0
    if (size !== null) session.begun++
    session.characters += characters
    session.requests.characters += characters
    session.inProgress++
    session.lastCallAtMillis = nowMillis
    session.idle.closeUnsafe()
    const closed = Effect.flatMap(Deferred.await(session.closed), () => Effect.fail(sessionEnded(session.id)))
    return Effect.ensuring(
      interruptible(Effect.raceFirst(call, closed)),
      Effect.map(Clock.currentTimeMillis, (now) => {
        session.lastCallAtMillis = now
        session.requests.characters -= characters
        session.inProgress--
        if (session.inProgress === 0) session.idle.openUnsafe()
      }),
    )
  })

/** Sets the reward of a session. Fails if it is not a finite number, or if the session has one already. */
export const setReward = (session: Session, reward: unknown): Effect.Effect<void, GatewayError> => {
  if (typeof reward !== "number" || !isReward(reward)) {
    const expected = typeof reward === "number" ? expectedReward(reward) : "a finite number"
    return Effect.fail(badRequest(`reward: expected ${expected}, as in {"reward": 0.5}`))
  }
  if (Deferred.isDoneUnsafe(session.closed)) return Effect.fail(sessionEnded(session.id))
  if (session.reward !== null) {
    const message = `the session ${session.id} has the reward ${session.reward} already; it takes only one`
    return Effect.fail(gatewayError(409, "reward_exists", message))
  }
  session.reward = reward
  return session.onReward(reward)
}
