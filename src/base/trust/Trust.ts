/**
 * Decides what a config may do besides computing: start a program of this machine, or send something to an address. A config
 * is data, which may come from somebody else, so everything that would do such a thing because a config says so asks the
 * service `Trust` first, with the exact values that it then uses. What code does itself, such as `ForeignEnv.command`, is
 * not asked about.
 *
 * The `effect` command asks its user, as docs/trust.md describes. In a program of your own, the configs that you pass are
 * permitted, but those that arrive while it runs, such as run folders that are put into a trainer's folder, may only start
 * what the program has started before. Provide `allowAll` or `refuseAll`, or a service of your own, for other rules.
 *
 * @example
 * ```ts
 * const evaluation = Evaluations.fromConfig(config).pipe(Effect.provideService(Trust.Trust, Trust.refuseAll))
 * ```
 */
import { Context, Effect, Schema } from "effect"

/** The start of a program that a config names. */
export interface ProgramStart {
  readonly _tag: "ProgramStart"
  /** The file and the key that name the program, for messages: `results/…/config.yaml: env.command`. */
  readonly place: string
  /** The program and its arguments. */
  readonly command: ReadonlyArray<string>
  /** The folder in which it starts, if that is not the working directory. */
  readonly cwd?: string | undefined
  /** Whether it is the same program in any folder, because none of its words is a relative path. Default: false. */
  readonly isSameAnywhere?: boolean
  /** The names of the environment variables that it gets besides the common ones of `environment.ts`. */
  readonly variables: ReadonlyArray<string>
  /** The plain data that the program gets. It may name code, such as a module of Python that makes an env. */
  readonly input: unknown
}

/** Requests to an address that a config names. They hold texts or numbers of this computer, and may hold a secret. */
export interface Sending {
  readonly _tag: "Sending"
  readonly place: string
  readonly address: string
  /** The name of the environment variable whose value is sent as a key; null for none. */
  readonly variable: string | null
  /** The kind of data that is sent, for messages. Default: texts. */
  readonly what?: "texts" | "gradients"
}

/** The import of a module that lies among the files of a run, not among the user's own. */
export interface CodeImport {
  readonly _tag: "CodeImport"
  readonly place: string
  /** The absolute path of the module. */
  readonly file: string
  /** The digest of its content. */
  readonly sha256: string
}

export type TrustRequest = ProgramStart | Sending | CodeImport

/** Reports that a config may not do something. The message says what, and what the user can do. */
export class Untrusted extends Schema.TaggedError<Untrusted>()("Untrusted", { message: Schema.String }) {}

export interface TrustService {
  /** Permits a request of a config that the caller was given, or fails. It may ask a person. */
  readonly permit: (request: TrustRequest) => Effect.Effect<void, Untrusted>
  /** Permits a request only if the same one was permitted before, whatever the config is. It asks nobody. */
  readonly permitKnown: (request: TrustRequest) => Effect.Effect<void, Untrusted>
}

/** Describes what is sent to an address. */
export const sentTo = ({ variable, what = "texts" }: Sending): string =>
  variable === null ? what : `${what} and the value of the variable ${JSON.stringify(variable)}`

/** Describes a request in a few words, for messages. The command decides itself how it shows a request. */
const described = (request: TrustRequest): string => {
  switch (request._tag) {
    case "ProgramStart":
      return `start ${JSON.stringify(request.command)}`
    case "Sending":
      return `send ${sentTo(request)} to ${JSON.stringify(request.address)}`
    case "CodeImport":
      return `run the code in ${JSON.stringify(request.file)}`
  }
}

const refused = (request: TrustRequest, how: string): Untrusted =>
  new Untrusted({ message: `this would ${described(request)}, which is not permitted; ${how}` })

const refuse = (how: string) => (request: TrustRequest) => Effect.fail(refused(request, how))

/** Permits everything, also what configs ask for that arrive later. */
export const allowAll: TrustService = { permit: () => Effect.void, permitKnown: () => Effect.void }

/** Refuses everything. */
export const refuseAll: TrustService = {
  permit: refuse("this program refuses all of it"),
  permitKnown: refuse("this program refuses all of it"),
}

/** Permits what the configs ask for that this process was given, and nothing else to those that arrive later. */
export const allowGiven = (): TrustService => {
  const permitted = new Set<string>()
  const keyOf = ({ place: _place, ...request }: TrustRequest): string => JSON.stringify(request)
  return {
    permit: (request) => Effect.sync(() => void permitted.add(keyOf(request))),
    permitKnown: (request) =>
      permitted.has(keyOf(request))
        ? Effect.void
        : Effect.fail(refused(request, "provide Trust.allowAll if you trust those who can write configs here")),
  }
}

/** The service that decides. By default it permits what the configs ask for that the program passes to the library. */
export const Trust = Context.Reference<TrustService>("effect-rl/trust/Trust", { defaultValue: allowGiven })

/** Asks whether a config may do something. Fails if it may not. */
export const permit = (request: TrustRequest): Effect.Effect<void, Untrusted> =>
  Effect.flatMap(Trust, (trust) => trust.permit(request))

/** Runs an effect for a config that arrived while the program ran: it may do only what was permitted before. */
export const onlyKnown: <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R> = Effect.updateService(
  Trust,
  (trust): TrustService => ({ ...trust, permit: trust.permitKnown }),
)
