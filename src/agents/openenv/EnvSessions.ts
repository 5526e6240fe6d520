/**
 * Keeps the sessions of a server of OpenEnv. A session has a copy of the env of its own, so sessions do not affect each other.
 * Their number is limited, and one that is not used for long ends.
 */
import { Clock, Effect, Exit, Scope, Semaphore } from "effect"
import { isPlain, type Plain } from "../../base/config/plain.ts"
import { parsedJson } from "../../base/text/text.ts"
import { type EnvError, invalid } from "../../base/EnvError.ts"
import { stream } from "../../base/rng/Rng.ts"
import { schemaProblem } from "../../spread/openenv/jsonSchemas.ts"
import type { ServedCopy, ServedEnv, ServedObservation } from "../../spread/openenv/ServedEnv.ts"

/** A wrong value of a client, with its place. */
export interface InputProblem {
  readonly type: string
  readonly loc: ReadonlyArray<string | number>
  readonly msg: string
}

export interface SessionLimits {
  /** The largest number of sessions at the same time. Default: 8. */
  readonly most: number
  /** The number of seconds after which a session ends that is not used. Default: 600. */
  readonly idleSeconds: number
}

/** A session of a client. Its requests run one after another, by `EnvSessions.inTurn`. */
export interface EnvSession {
  readonly id: string
  readonly copy: ServedCopy
  readonly turn: Semaphore.Semaphore
  /** Holds the copy and its episode. */
  readonly scope: Scope.Closeable
  readonly close: Effect.Effect<void>
  /** Whether requests can close it. A session of a WebSocket ends with the connection. */
  isClosable: boolean
  /** Whether a request of it is running. */
  isBusy: boolean
  /** The id of the current episode; null before the first. */
  episodeId: string | null
  steps: number
  hasBegun: boolean
  usedAtMillis: number
}

/** The longest id of an episode, in characters. */
const longestId = 255

/** Returns what is wrong with the data of a reset. */
export const resetProblem = ({ seed = null, episode_id: id = null }: Plain): InputProblem | undefined => {
  if (seed !== null && !(typeof seed === "number" && Number.isSafeInteger(seed)))
    return { type: "int_type", loc: ["seed"], msg: "Expected a whole number, or null" }
  if (typeof seed === "number" && seed < 0)
    return { type: "greater_than_equal", loc: ["seed"], msg: "Expected a number of at least 0" }
  if (id !== null && typeof id !== "string")
    return { type: "string_type", loc: ["episode_id"], msg: "Expected a text, or null" }
  return typeof id === "string" && id.length > longestId
    ? { type: "string_too_long", loc: ["episode_id"], msg: `Expected at most ${longestId} characters` }
    : undefined
}

/** A call of a tool, as an action. */
interface ToolAction {
  readonly name: string
  readonly parameters: Plain
}

/** Tells whether an action asks for the tools of an env that has some. */
const isListing = ({ tools }: ServedEnv, { type }: Plain): boolean => tools.length > 0 && type === "list_tools"

/** Returns the call of a tool that an action of an env with tools is; undefined for any other action. */
const toolActionOf = ({ tools }: ServedEnv, action: Plain): ToolAction | undefined => {
  const { type, tool_name: name, arguments: parameters = {} } = action
  if (tools.length === 0 || type !== "call_tool" || typeof name !== "string" || !isPlain(parameters)) return undefined
  return { name, parameters }
}

/** Returns what is wrong with an action. */
export const actionProblem = (env: ServedEnv, action: Plain): InputProblem | undefined => {
  if (isListing(env, action) || toolActionOf(env, action) !== undefined) return undefined
  const problem = schemaProblem(env.actions, action)
  return problem === undefined ? undefined : { type: "value_error", loc: [], msg: problem }
}

/** The sessions of a server. */
export class EnvSessions {
  readonly env: ServedEnv
  readonly limits: SessionLimits
  private readonly seed: number
  private readonly open = new Map<string, EnvSession>()
  /** The number of sessions, with those that are being opened. */
  private taken = 0
  private episodes = 0

  constructor(env: ServedEnv, limits: SessionLimits, seed: number) {
    this.env = env
    this.limits = limits
    this.seed = seed
  }

  get active(): number {
    return this.taken
  }

  find(id: string): EnvSession | undefined {
    return this.open.get(id)
  }

  /** Opens a session until the scope closes, or until it is closed. Returns undefined if there are as many as allowed. */
  begin(): Effect.Effect<EnvSession | undefined, EnvError, Scope.Scope> {
    return Effect.gen({ self: this }, function* () {
      const scope = yield* Scope.fork(yield* Effect.scope)
      const hasPlace = yield* Scope.provide(this.place, scope)
      if (hasPlace) return yield* this.opened(scope)
      yield* Scope.close(scope, Exit.void)
      return undefined
    })
  }

  /** Takes a place until the scope closes. Returns false if there is none. */
  private readonly place: Effect.Effect<boolean, never, Scope.Scope> = Effect.acquireRelease(
    Effect.sync(() => {
      if (this.taken >= this.limits.most) return false
      this.taken++
      return true
    }),
    (isTaken) => Effect.sync(() => void (this.taken -= isTaken ? 1 : 0)),
  )

  private opened(scope: Scope.Closeable): Effect.Effect<EnvSession, EnvError> {
    return Effect.gen({ self: this }, function* () {
      const session: EnvSession = {
        id: crypto.randomUUID(),
        copy: yield* Scope.provide(this.env.open, scope),
        turn: yield* Semaphore.make(1),
        scope,
        close: Scope.close(scope, Exit.void),
        isClosable: false,
        isBusy: false,
        episodeId: null,
        steps: 0,
        hasBegun: false,
        usedAtMillis: yield* Clock.currentTimeMillis,
      }
      yield* Scope.addFinalizer(
        scope,
        Effect.sync(() => void this.open.delete(session.id)),
      )
      this.open.set(session.id, session)
      return session
    }).pipe(Effect.onError(() => Scope.close(scope, Exit.void)))
  }

  /** Runs a request of a session after the earlier ones. */
  inTurn<A, E>(session: EnvSession, request: Effect.Effect<A, E>): Effect.Effect<A, E> {
    const use = (isBusy: boolean) =>
      Effect.map(Clock.currentTimeMillis, (now) => Object.assign(session, { usedAtMillis: now, isBusy }))
    return session.turn.withPermit(
      Effect.acquireUseRelease(
        use(true),
        () => request,
        () => use(false),
      ),
    )
  }

  /** Lets requests close a session, which also ends when it is not used. */
  makeClosable(session: EnvSession): Effect.Effect<void> {
    session.isClosable = true
    return Effect.asVoid(Effect.forkIn(Effect.andThen(this.idle(session), session.close), session.scope))
  }

  /** Waits until a session has not been used for as long as is allowed. */
  idle(session: EnvSession): Effect.Effect<void> {
    return Effect.gen({ self: this }, function* () {
      const most = this.limits.idleSeconds * 1000
      for (;;) {
        const left = session.usedAtMillis + most - (yield* Clock.currentTimeMillis)
        if (left > 0) yield* Effect.sleep(left)
        else if (session.isBusy) yield* session.turn.withPermit(Effect.void)
        else return
      }
    })
  }

  /** Begins an episode. The data was checked. A client without a seed gets the next one of the server. */
  reset(session: EnvSession, data: Plain): Effect.Effect<ServedObservation, EnvError> {
    return Effect.suspend(() => {
      const { seed: wanted, episode_id: id } = data
      const next = () => stream(this.seed, "openenv", "reset", this.episodes++).uint32()
      const seed = typeof wanted === "number" ? wanted : next()
      session.hasBegun = false
      return Effect.map(session.copy.reset({ seed, data }), (observed) => {
        session.episodeId = typeof id === "string" ? id : `${this.env.name}-${seed}`
        session.steps = 0
        session.hasBegun = true
        return observed
      })
    })
  }

  /** Takes a step by an action that was checked, or calls a tool or lists them. */
  step(session: EnvSession, action: Plain): Effect.Effect<ServedObservation, EnvError> {
    return Effect.suspend(() => {
      if (isListing(this.env, action)) return Effect.succeed(unscored({ tools: this.env.tools.map(listedTool) }))
      const called = toolActionOf(this.env, action)
      if (called !== undefined) {
        return Effect.map(this.call(session, called), (result) => {
          session.steps++
          const answer =
            "content" in result
              ? { result, error: null }
              : { result: null, error: { error_type: "tool_not_found", message: result.problem } }
          return unscored({ tool_name: called.name, ...answer })
        })
      }
      if (!session.hasBegun) return Effect.fail(invalid(this.env.name, "no episode has begun; expected a reset first"))
      return Effect.map(session.copy.step(action), (observed) => {
        session.steps++
        return observed
      })
    })
  }

  /** Calls a tool. The first call of a session begins an episode, since the Model Context Protocol has no resets. */
  call(session: EnvSession, { name, parameters }: ToolAction): Effect.Effect<ToolAnswer, EnvError> {
    return Effect.gen({ self: this }, function* () {
      const { tools } = this.env
      const { call } = session.copy
      if (call === undefined || !tools.some((tool) => tool.name === name)) {
        return {
          problem: `Unknown tool: ${name.slice(0, 100)}; there are ${tools.map((tool) => tool.name).join(", ")}`,
        }
      }
      if (!session.hasBegun) yield* this.reset(session, {})
      const { content, isError = false } = yield* call(name, parameters)
      const value = parsedJson(content)
      const structured = isPlain(value) ? value : null
      return {
        content: [{ type: "text", text: content }],
        structured_content: structured,
        meta: null,
        data: structured ?? content,
        is_error: isError,
      }
    })
  }
}

/** The result of a tool, as the Model Context Protocol has it, or why there is none. */
type ToolAnswer =
  | {
      readonly content: ReadonlyArray<{ readonly type: "text"; readonly text: string }>
      readonly structured_content: Plain | null
      readonly meta: null
      readonly data: Plain | string
      readonly is_error: boolean
    }
  | { readonly problem: string }

const unscored = (observation: Plain): ServedObservation => ({ observation, reward: null, done: false })

const listedTool = ({ name, description, parameters }: ServedEnv["tools"][number]): Plain => ({
  name,
  description,
  input_schema: parameters,
})
