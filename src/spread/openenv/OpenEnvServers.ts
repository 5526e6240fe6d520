/**
 * Declares the service that connects to environments which others serve by OpenEnv's protocol, and implements it over a
 * transport. An episode has a session of its own, which is a WebSocket; the number of sessions at the same time is limited.
 */
import { Clock, Context, Effect, Exit, Redacted, Scope, Semaphore } from "effect"
import { type EnvError, invalid } from "../../base/EnvError.ts"
import { isPlain, type Plain } from "../../base/config/plain.ts"
import { jsonValue, messageOf } from "../../base/text/text.ts"
import { variable } from "../../base/config/variables.ts"
import { permit, type Untrusted } from "../../base/trust/Trust.ts"
import { within } from "../programs/timeLimit.ts"
import type { ServerSettings } from "./serverFields.ts"
import { isRefused, mostLists, type Observed, quoted, readAnswer, type Refused } from "./messages.ts"

/** A server, and how it is used. */
interface OpenEnvOptions extends Readonly<ServerSettings> {
  /** The name of the env or of the tasks, for messages. */
  readonly id: string
}

/** The address of a server, with its token and limits, for a transport. */
export interface OpenEnvAddress {
  /** The address for HTTP, without a slash at the end. */
  readonly http: string
  /** The address of the WebSocket. */
  readonly socket: string
  readonly token: Redacted.Redacted | null
  readonly mostBytes: number
  readonly timeoutSeconds: number
}

/** Sends a message, and waits for the next one. It fails with what is wrong. */
export type AskServer = (message: string) => Effect.Effect<string, string>

/** Reaches a server. All its Effects fail with what is wrong. */
export interface OpenEnvTransport {
  /** Gets the text at a path of the server. */
  readonly get: (address: OpenEnvAddress, path: string) => Effect.Effect<string, string>
  /** Opens a WebSocket, and closes it with the scope. */
  readonly connect: (address: OpenEnvAddress) => Effect.Effect<AskServer, string, Scope.Scope>
}

/** A session, which plays one episode. */
export interface OpenEnvSession {
  /** The answer to the message by which the session began. */
  readonly first: Observed | Refused
  readonly step: (action: Plain) => Effect.Effect<Observed | Refused, EnvError>
  /** Begins another episode. */
  readonly reset: (data: Plain) => Effect.Effect<Observed | Refused, EnvError>
}

/** A server whose Schemas were read. */
export interface OpenEnvServer {
  /** The JSON Schema of the actions. */
  readonly actions: Plain
  /** The JSON Schema of the observations. */
  readonly observations: Plain
  /**
   * Opens a session by its first message, a reset or a step, and closes it with the scope. It waits while the session limit is
   * reached, here or at the server.
   */
  readonly begin: (first: FirstMessage) => Effect.Effect<OpenEnvSession, EnvError, Scope.Scope>
}

interface FirstMessage {
  readonly type: "reset" | "step"
  readonly data: Plain
}

export interface OpenEnvServersService {
  /** Reads the Schemas of a server. All data sets and envs with the same options share its sessions. */
  readonly open: (options: OpenEnvOptions) => Effect.Effect<OpenEnvServer, EnvError>
}

/** The service for servers of OpenEnv. `effect-rl/node` provides it in `platform`. */
export const OpenEnvServers = Context.Reference<OpenEnvServersService>("effect-rl/spread/OpenEnvServers", {
  defaultValue: () => ({
    open: ({ id }) =>
      Effect.fail(
        invalid(id, "its server needs a connection; provide `platform` or `openEnvServers` of effect-rl/node"),
      ),
  }),
})

/**
 * Asks the service `Trust` about a server, also on this computer: it gets texts, and the config of somebody else could otherwise
 * use any server of this computer.
 */
export const permitServer = (
  { url: address, tokenVariable: variable }: Pick<OpenEnvOptions, "url" | "tokenVariable">,
  place: string,
): Effect.Effect<void, Untrusted> => permit({ _tag: "Sending", place, address, variable })

/** Makes the service over a transport. */
export const overTransport = (transport: OpenEnvTransport): Effect.Effect<OpenEnvServersService> =>
  Effect.gen(function* () {
    const turn = yield* Semaphore.make(1)
    const opened = new Map<string, OpenEnvServer>()
    return {
      open: (options) =>
        turn.withPermit(
          Effect.suspend(() => {
            const key = JSON.stringify(options)
            const known = opened.get(key)
            if (known !== undefined) return Effect.succeed(known)
            return Effect.tap(openServer(transport, options), (server) => Effect.sync(() => opened.set(key, server)))
          }),
        ),
    }
  })

/** A server that is being used: its transport, its address, and how its failures are reported. */
interface Reached {
  readonly transport: OpenEnvTransport
  readonly address: OpenEnvAddress
  readonly fail: (problem: string) => EnvError
}

const reach = Effect.fnUntraced(function* (transport: OpenEnvTransport, options: OpenEnvOptions) {
  const { id, url, tokenVariable, maxMessageMb, timeoutSeconds } = options
  const fail = (problem: string): EnvError => invalid(id, `its server at ${url} ${problem}`)
  const token = tokenVariable === null ? null : yield* variable(tokenVariable)
  if (token !== null && !/^[\x21-\x7e]+$/.test(token))
    return yield* invalid(id, `token_variable: the environment variable ${String(tokenVariable)} holds no token`)
  const http = url.replace(/^ws/i, "http").replace(/\/+$/, "")
  const address: OpenEnvAddress = {
    http,
    socket: `${http.replace(/^http/i, "ws")}/ws`,
    token: token === null ? null : Redacted.make(token),
    mostBytes: Math.ceil(maxMessageMb * 2 ** 20),
    timeoutSeconds,
  }
  const reached: Reached = { transport, address, fail }
  return reached
})

/** Gives an effect of the transport a time limit, and makes its failures errors that name the server. */
const limited = <A, R>({ address, fail }: Reached, effect: Effect.Effect<A, string, R>, doing: string) =>
  within(
    Effect.mapError(effect, fail),
    address.timeoutSeconds,
    Effect.suspend(() => Effect.fail(fail(`did not ${doing} within ${address.timeoutSeconds} s (timeout_seconds)`))),
  )

const openServer = Effect.fnUntraced(function* (transport: OpenEnvTransport, options: OpenEnvOptions) {
  const reached = yield* reach(transport, options)
  const text = yield* limited(reached, transport.get(reached.address, "/schema"), "answer GET /schema")
  const schemas = yield* Effect.try({
    try: () => jsonValue(text, mostLists),
    catch: (error) => reached.fail(`answered GET /schema by something else than JSON: ${quoted(messageOf(error))}`),
  })
  const { action, observation } = isPlain(schemas) ? schemas : {}
  if (!isPlain(action) || !isPlain(observation))
    return yield* reached.fail("answered GET /schema by no Schemas; expected an object with action and observation")
  const places = yield* Semaphore.make(options.sessions)
  const server: OpenEnvServer = {
    actions: action,
    observations: observation,
    begin: (first) =>
      Effect.andThen(
        Effect.acquireRelease(places.take(1), () => places.release(1), { interruptible: true }),
        beginSession(reached, first),
      ),
  }
  return server
})

/** The milliseconds after which a server without a free session is asked again, at first and at most. */
const waitsMillis = { first: 50, most: 2000 }

/** Opens a session by its first message. A server without a free session is asked again until the time limit. */
const beginSession = Effect.fnUntraced(function* (reached: Reached, message: FirstMessage) {
  const scope = yield* Effect.scope
  const { address, transport, fail } = reached
  const began = yield* Clock.currentTimeMillis
  for (let wait = waitsMillis.first; ; wait = Math.min(2 * wait, waitsMillis.most)) {
    const own = yield* Scope.fork(scope)
    const ask = yield* limited(reached, Scope.provide(transport.connect(address), own), "accept a connection")
    let isBroken = false
    const request = (what: object, doing: string) =>
      Effect.suspend(() => {
        if (isBroken) return Effect.fail(fail("cannot be asked any more, because an earlier request failed"))
        isBroken = true
        return limited(reached, ask(JSON.stringify(what)), `answer a ${doing}`)
      }).pipe(
        Effect.flatMap((text) => {
          const answer = readAnswer(text)
          if ("problem" in answer) return Effect.fail(fail(`answered a ${doing} by a wrong message: ${answer.problem}`))
          isBroken = false
          return Effect.succeed(answer)
        }),
      )
    const first = yield* request(message, message.type)
    if (!isRefused(first) || first.code !== "CAPACITY_REACHED") {
      const session: OpenEnvSession = {
        first,
        step: (data) => request({ type: "step", data }, "step"),
        reset: (data) => request({ type: "reset", data }, "reset"),
      }
      return session
    }
    yield* Scope.close(own, Exit.void)
    if ((yield* Clock.currentTimeMillis) - began >= address.timeoutSeconds * 1000)
      return yield* fail(
        `has no free session: ${first.message}; expected sessions to be at most what the server allows`,
      )
    yield* Effect.sleep(wait)
  }
})
