/**
 * Declares the service for programs that simulate tasks in words, and implements it as a pool of processes: an episode has
 * its own process while it is played, and then gives it back. docs/agents/foreign-tasks.md describes the lines of JSON that a
 * program reads and writes.
 */
import { Context, Effect, Exit, Result, Schema, Scope, Semaphore } from "effect"
import { display, toSnakeCase } from "../../../base/config/Config.ts"
import { messageOf, oneLine, parsedJson, shortened } from "../../../base/text/text.ts"
import { type EnvError, invalid } from "../../../base/EnvError.ts"

const version = 1

/** A program that simulates tasks in words. */
export interface TextProgramOptions {
  /** The name of the tasks, which the program also gets. */
  readonly id: string
  /** The program and its arguments. */
  readonly command: ReadonlyArray<string>
  /** The name of a script of this library, next to this file, which the command gets as its last argument. */
  readonly script?: string
  readonly options: Readonly<Record<string, unknown>>
  /** The number of processes, which is also the number of episodes that are played at the same time. */
  readonly processes: number
  /** The number of seconds after which a request without a reply fails. */
  readonly timeoutSeconds: number
  /** The names of the environment variables that the program gets, besides the common ones. */
  readonly variables?: ReadonlyArray<string>
}

/** Sends a line, and waits for the line that replies. */
type AskLine = (line: string) => Effect.Effect<string, EnvError>

/** Starts a process of a program, and ends it when the scope closes. */
export type StartProgram = (program: TextProgramOptions) => Effect.Effect<AskLine, EnvError, Scope.Scope>

/** The reply to the first request. */
const ProgramDescription = Schema.Struct({
  protocol: Schema.Int,
  /** The number of tasks; null or left out if the program can make any number. */
  tasks: Schema.optionalKey(Schema.NullOr(Schema.Int.check(Schema.isGreaterThan(0)))),
  maxSteps: Schema.optionalKey(Schema.NullOr(Schema.Int.check(Schema.isGreaterThan(0)))),
})
type ProgramDescription = typeof ProgramDescription.Type

const common = {
  /** The actions that are possible now, if the program lists them. */
  actions: Schema.optionalKey(Schema.NullOr(Schema.Array(Schema.String))),
  info: Schema.optionalKey(Schema.Record(Schema.String, Schema.Json)),
}
const BegunEpisode = Schema.Struct({ observation: Schema.String, ...common })
const Stepped = Schema.Struct({
  observation: Schema.NullOr(Schema.String),
  reward: Schema.Finite,
  done: Schema.Boolean,
  truncated: Schema.optionalKey(Schema.Boolean),
  message: Schema.optionalKey(Schema.String),
  target: Schema.optionalKey(Schema.NullOr(Schema.String)),
  ...common,
})
export type BegunEpisode = typeof BegunEpisode.Type

const decodeFailure = Schema.decodeUnknownOption(Schema.Struct({ error: Schema.String }))
const decoderOf = <A, I>(schema: Schema.Codec<A, I>) => Schema.decodeUnknownResult(schema)
const decodeDescription = decoderOf(ProgramDescription)
const decodeBegun = decoderOf(BegunEpisode)
const decodeStepped = decoderOf(Stepped)

/** Parses a line that a program wrote as the reply to a request of this type. */
const read = <A>(
  id: string,
  type: string,
  line: string,
  decode: (value: unknown) => Result.Result<A, Schema.SchemaError>,
): Effect.Effect<A, EnvError> => {
  const value = parsedJson(line)
  if (value === undefined) {
    const quote = JSON.stringify(shortened(line))
    return Effect.fail(
      invalid(id, `its program replied to "${type}" by ${quote}; expected an object of JSON in one line`),
    )
  }
  const failure = decodeFailure(value)
  if (failure._tag === "Some")
    return Effect.fail(invalid(id, `its program failed at "${type}": ${oneLine(failure.value.error)}`))
  const decoded = decode(value)
  if (Result.isSuccess(decoded)) return Effect.succeed(decoded.success)
  return Effect.fail(
    invalid(id, `its program replied to "${type}" by ${display(value)}: ${messageOf(decoded.failure)}`),
  )
}

/** A process that plays one episode after another. */
export interface TextProcess {
  /** Begins an episode of the task with this number, from 0. */
  readonly reset: (id: string, task: number, seed: number) => Effect.Effect<BegunEpisode, EnvError>
  readonly step: (id: string, action: string) => Effect.Effect<typeof Stepped.Type, EnvError>
}

/** A program that has described its tasks. */
export interface TextProgram {
  readonly description: ProgramDescription
  /** Lends a process until the scope closes; waits while all are in use. */
  readonly lend: Effect.Effect<TextProcess, EnvError, Scope.Scope>
}

interface TextProgramsService {
  /** Opens a program. It is started for the first data set that uses it, and ends with the service. */
  readonly open: (program: TextProgramOptions) => Effect.Effect<TextProgram, EnvError>
}

/** The service for programs that simulate tasks in words. `effect-rl/node` provides it in `platform`. */
export const TextPrograms = Context.Reference<TextProgramsService>("effect-rl/task/TextPrograms", {
  defaultValue: () => ({
    open: ({ id }) =>
      Effect.fail(invalid(id, "its program needs a process; provide `platform` or `textPrograms` of effect-rl/node")),
  }),
})

interface StartedTextProgram extends TextProcess {
  readonly description: ProgramDescription
  /** Tells whether the process has replied to all requests, so that another episode can use it. */
  readonly isIdle: () => boolean
  readonly close: Effect.Effect<void>
}

/** Makes the service. It ends all processes when the scope closes. */
export const pooled = (start: StartProgram): Effect.Effect<TextProgramsService, never, Scope.Scope> =>
  Effect.gen(function* () {
    const scope = yield* Effect.scope
    const turn = yield* Semaphore.make(1)
    const opened = new Map<string, TextProgram>()
    return {
      open: (program) =>
        turn.withPermit(
          Effect.suspend(() => {
            const key = JSON.stringify(program)
            const known = opened.get(key)
            if (known !== undefined) return Effect.succeed(known)
            return Effect.tap(openProgram(scope, start, program), (made) => Effect.sync(() => opened.set(key, made)))
          }),
        ),
    }
  })

/** Starts a process, and asks it to describe its tasks. A process that cannot be used ends at once. */
const startOne = Effect.fnUntraced(function* (scope: Scope.Scope, start: StartProgram, program: TextProgramOptions) {
  const { id, options } = program
  const own = yield* Scope.fork(scope)
  return yield* Effect.gen(function* () {
    const askLine = yield* start(program)
    let waiting = false
    const ask = <A>(
      name: string,
      request: { readonly type: string; readonly [key: string]: unknown },
      decode: (value: unknown) => Result.Result<A, Schema.SchemaError>,
    ): Effect.Effect<A, EnvError> =>
      Effect.suspend(() => {
        waiting = true
        return askLine(JSON.stringify(request))
      }).pipe(
        Effect.tap(() => Effect.sync(() => (waiting = false))),
        Effect.flatMap((line) => read(name, request.type, line, decode)),
      )
    const request = { type: "open", protocol: version, id, options: toSnakeCase(options) }
    const description = yield* ask(id, request, decodeDescription)
    if (description.protocol !== version) {
      const spoken = `its program speaks version ${description.protocol} of the protocol`
      return yield* invalid(id, `${spoken}; effect-rl speaks version ${version}`)
    }
    const started: StartedTextProgram = {
      description,
      reset: (name, task, seed) => ask(name, { type: "reset", task, seed }, decodeBegun),
      step: (name, action) => ask(name, { type: "step", action }, decodeStepped),
      isIdle: () => !waiting,
      close: Scope.close(own, Exit.void),
    }
    return started
  }).pipe(
    Effect.provideService(Scope.Scope, own),
    Effect.onError(() => Scope.close(own, Exit.void)),
  )
})

const openProgram = Effect.fnUntraced(function* (scope: Scope.Scope, start: StartProgram, program: TextProgramOptions) {
  const places = yield* Semaphore.make(program.processes)
  const idle = [yield* startOne(scope, start, program)]
  const [{ description }] = idle
  const another = Effect.gen(function* () {
    const started = yield* startOne(scope, start, program)
    if (JSON.stringify(started.description) === JSON.stringify(description)) return started
    yield* started.close
    return yield* invalid(program.id, "its program now describes other tasks than before")
  })
  const lend: TextProgram["lend"] = Effect.acquireRelease(places.take(1), () => places.release(1), {
    interruptible: true,
  }).pipe(
    Effect.andThen(
      Effect.acquireRelease(
        Effect.suspend(() => {
          const free = idle.pop()
          return free === undefined ? another : Effect.succeed(free)
        }),
        // A process that has not replied to all requests, or has ended, cannot be used for another episode.
        (process) => (process.isIdle() ? Effect.sync(() => idle.push(process)) : process.close),
        { interruptible: true },
      ),
    ),
  )
  return { description, lend }
})
