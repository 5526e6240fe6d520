/**
 * Decides what a config may do besides computing: start a program of this machine, send something to an address, or
 * write elsewhere than into the run's own folder. A config is data, and may come from somebody else. So all code that would do such a thing because of a config asks the
 * service `Trust` first, with the exact values that it will use. Calls in the user's own code, such as
 * `ForeignEnv.command`, need no permission.
 *
 * The `effect` command asks its user, as docs/trust.md describes. In a program of your own, the configs that you pass
 * are permitted. Configs that arrive while the program runs, such as run folders that are put into a trainer's folder,
 * may only start what an earlier config was permitted to start. Provide `allowAll` or `refuseAll`, or a service of your
 * own, for other rules.
 *
 * @example
 * ```ts
 * const evaluation = Evaluations.fromConfig(config).pipe(Effect.provideService(Trust.Trust, Trust.refuseAll))
 * ```
 */
import { Context, Effect } from "effect"
import * as Schema from "effect/Schema"

/** The start of a program that a config names. */
export interface ProgramStart {
  readonly _tag: "ProgramStart"
  /** The file and the key that name the program, for messages: `results/…/config.yaml: env.command`. */
  readonly place: string
  /** The program and its arguments. */
  readonly command: ReadonlyArray<string>
  /** The folder in which the program starts, if that is not the working directory. */
  readonly cwd?: string | undefined
  /**
   * Whether the command means the same program in any folder, because none of its words is a relative path. Default:
   * false.
   */
  readonly isSameAnywhere?: boolean
  /** The names of the environment variables that the program gets besides the common ones of `environment.ts`. */
  readonly variables: ReadonlyArray<string>
  /** The plain data that the program receives. It may name code, such as a Python module that makes an env. */
  readonly input: unknown
}

/** Requests to an address that a config names. They send texts or numbers from this computer, and maybe a secret. */
export interface Sending {
  readonly _tag: "Sending"
  readonly place: string
  readonly address: string
  /** The name of the environment variable whose value is sent as a key; null for none. */
  readonly variable: string | null
  /** The kind of data that is sent, for messages. Default: texts. */
  readonly what?: "texts" | "gradients"
}

/** The import of a module from the files of a run, instead of from the user's own files. */
export interface CodeImport {
  readonly _tag: "CodeImport"
  readonly place: string
  /** The absolute path of the module. */
  readonly file: string
  /** A SHA-256 digest of the contents of the module and of the local files that it imports. */
  readonly sha256: string
}

/** The writing of a run's files into a folder outside of the run's own, where the run also truncates and deletes files. */
export interface Writing {
  readonly _tag: "Writing"
  readonly place: string
  /** The absolute path of the folder. */
  readonly folder: string
}

export type TrustRequest = ProgramStart | Sending | CodeImport | Writing

/** Reports that a config may not do something. The message says what, and what the user can do. */
export class Untrusted extends Schema.TaggedError<Untrusted>()("Untrusted", { message: Schema.String }) {}

export interface TrustService {
  /** Permits a request by a config that the program itself passed to the library, or fails. It may ask a person. */
  readonly permit: (request: TrustRequest) => Effect.Effect<void, Untrusted>
  /** Permits a request only if the same one was permitted before, by any config. It asks nobody. */
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
    case "Writing":
      return `write and delete files in ${JSON.stringify(request.folder)}`
  }
}

const refused = (request: TrustRequest, how: string): Untrusted =>
  new Untrusted({ message: `this would ${described(request)}, which is not permitted; ${how}` })

const refuse = (how: string) => (request: TrustRequest) => Effect.fail(refused(request, how))

/** Permits everything, including requests of configs that arrive later. */
export const allowAll: TrustService = { permit: () => Effect.void, permitKnown: () => Effect.void }

/** Refuses everything. */
export const refuseAll: TrustService = {
  permit: refuse("this program refuses all of it"),
  permitKnown: refuse("this program refuses all of it"),
}

/**
 * Permits all requests of configs that the program passed to the library. A config that arrives later may only repeat a
 * request that was permitted before.
 */
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

/**
 * The service that decides. By default (`allowGiven`) it permits the requests of all configs that the program passes to
 * the library.
 */
export const Trust = Context.Reference<TrustService>("effect-rl/trust/Trust", { defaultValue: allowGiven })

/** Asks whether a config may do something. Fails if it may not. */
export const permit = (request: TrustRequest): Effect.Effect<void, Untrusted> =>
  Effect.flatMap(Trust, (trust) => trust.permit(request))

/** Runs an Effect for a config that arrived while the program ran: it may only do what was permitted before. */
export const onlyKnown: <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R> = Effect.updateService(
  Trust,
  (trust): TrustService => ({ ...trust, permit: trust.permitKnown }),
)
