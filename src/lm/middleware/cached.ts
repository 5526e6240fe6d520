/**
 * Answers kept in files, so that a run can be run again without its model, bit for bit.
 *
 * What is asked is its key: the whole request. Where the answer is left to chance and no seed says to which, the key also
 * says which call it is (`CallContext`, and how often it was asked there before), so that the same question may be
 * answered differently in another episode, and always the same in that one.
 *
 * @example
 * ```ts
 * const around = yield* cached({ mode: "record", directory: "lm_cache" })
 * const { content } = yield* around(lm).complete(request) // asks
 * yield* around(lm).complete(request) // reads `lm_cache/3f/3f0c….json`
 * ```
 */
import { Effect, FileSystem, Path, type PlatformError, Schema } from "effect"
import { type Plain } from "../../config/Config.ts"
import { makeFolder, mostBytes, readText } from "../../config/files.ts"
import { messageOf } from "../../config/text.ts"
import { sha256 } from "../../config/sha256.ts"
import { canonical } from "../canonical.ts"
import { Completion, LmRequest } from "../Chat.ts"
import { type Middleware, CallContext } from "../Lm.ts"
import { LmError } from "../LmError.ts"
import { singleFlight } from "./singleFlight.ts"
import { utf8 } from "../../config/utf8.ts"

export interface CacheOptions {
  /** `record` asks for what isn't there; `replay` never asks. */
  readonly mode: "record" | "replay"
  readonly directory: string
  /** What else answers depend on, besides the request. */
  readonly also?: Plain
}

/** What a key is made of. */
const Question = Schema.Struct({
  request: LmRequest,
  /** Null where the same request has the same answer, wherever it is asked. */
  call: Schema.NullOr(
    Schema.Struct({
      phase: Schema.String,
      purpose: Schema.String,
      episode: Schema.Int,
      step: Schema.Int,
      nth: Schema.Int,
    }),
  ),
  also: Schema.Record(Schema.String, Schema.Unknown),
})
type Question = typeof Question.Type

/** A file of the cache. */
export const CacheEntry = Schema.fromJsonString(
  Schema.Struct({
    ...Question.fields,
    completion: Completion,
    /** SHA-256 of the completion as canonical JSON: a file that was damaged doesn't answer. */
    digest: Schema.String,
  }),
)
const decodeEntry = Schema.decodeUnknownEffect(CacheEntry)

const digestOf = (value: unknown): Effect.Effect<string> => sha256(utf8.encode(canonical(value)))

const isSampled = ({ seed, temperature }: LmRequest): boolean => seed === null && temperature !== 0

const phaseOf = ({ phase }: CallContext): string =>
  phase._tag === "validation" ? `validation ${phase.seenEpisodes}` : phase._tag

/** Keeps what is asked for in files, or answers from them; the same call, asked twice at a time, is asked once. */
export const cached = Effect.fnUntraced(function* ({
  mode,
  directory,
  also = {},
}: CacheOptions): Effect.fn.Return<Middleware, never, FileSystem.FileSystem | Path.Path> {
  const files = yield* cacheFiles(directory)
  return (lm) => {
    const once = singleFlight<Completion, LmError>()
    /** Which calls were made in a context: by the context itself, so that they are forgotten with it. */
    const before = new WeakMap<CallContext, Map<string, number>>()

    const answer = Effect.fnUntraced(function* (question: Question): Effect.fn.Return<Completion, LmError> {
      const { request } = question
      const key = yield* digestOf(question)
      if (mode === "replay") {
        const found = yield* files.read(key, request.model)
        if (found !== undefined) return found
        const { episode, step } = yield* CallContext
        return yield* cacheError(
          request.model,
          `no answer to the request of episode ${episode}, step ${step} (expected ${files.at(key)}); ` +
            "cache: record asks the model, and keeps its answers",
          { remedy: "cache=record" },
        )
      }
      return yield* once(
        key,
        Effect.gen(function* () {
          const found = yield* files.read(key, request.model).pipe(
            Effect.map((completion) => ({ completion, damaged: false })),
            Effect.catch((error) =>
              Effect.as(Effect.logWarning(`${error.message}; it is asked for anew`), {
                completion: undefined,
                damaged: true,
              }),
            ),
          )
          if (found.completion !== undefined) return found.completion
          const completion = yield* lm.complete(request)
          const digest = yield* digestOf(completion)
          const text = `${JSON.stringify({ ...question, completion, digest }, null, 1)}\n`
          const isFirst = yield* files.write(key, text, found.damaged, request.model)
          if (isFirst) return completion
          // Another process was faster: what it wrote is what a replay will say.
          return (yield* files.read(key, request.model)) ?? completion
        }),
      )
    })

    const complete = (request: LmRequest): Effect.Effect<Completion, LmError> =>
      Effect.gen(function* () {
        if (!isSampled(request)) return yield* answer({ request, call: null, also })
        const context = yield* CallContext
        const counts = before.get(context) ?? new Map<string, number>()
        before.set(context, counts)
        const asked = canonical(request)
        const nth = counts.get(asked) ?? 0
        counts.set(asked, nth + 1)
        const { purpose, episode, step } = context
        return yield* answer({
          request,
          call: { phase: phaseOf(context), purpose, episode, step, nth },
          also,
        }).pipe(
          // Asked again, it is the same call.
          Effect.onError(() =>
            Effect.sync(() => {
              if (counts.get(asked) === nth + 1) counts.set(asked, nth)
            }),
          ),
        )
      })
    return { complete }
  }
})

const cacheError = (model: string, what: string, more: { readonly remedy?: string } = {}): LmError =>
  new LmError({ model, reason: "cache", attempts: 0, message: `${model}: cache: ${what}`, ...more })

const isReason =
  (tag: "NotFound" | "AlreadyExists") =>
  ({ reason }: PlatformError.PlatformError): boolean =>
    reason._tag === tag

const cacheFiles = Effect.fnUntraced(function* (directory: string) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const context = yield* Effect.context<FileSystem.FileSystem | Path.Path>()
  const at = (key: string): string => path.join(directory, key.slice(0, 2), `${key}.json`)

  const read = Effect.fnUntraced(function* (
    key: string,
    model: string,
  ): Effect.fn.Return<Completion | undefined, LmError> {
    const file = at(key)
    const text = yield* readText(file, mostBytes.text).pipe(
      Effect.provideContext(context),
      Effect.catchIf(
        ({ missing }) => missing,
        () => Effect.undefined,
      ),
      Effect.mapError((error) => cacheError(model, `${file} can't be read: ${messageOf(error)}`)),
    )
    if (text === undefined) return undefined
    const { completion, digest, ...question } = yield* decodeEntry(text).pipe(
      Effect.mapError(() => cacheError(model, `${file} is damaged: expected the JSON of a kept answer`)),
    )
    if ((yield* digestOf(completion)) === digest && (yield* digestOf(question)) === key) return completion
    return yield* cacheError(model, `${file} is damaged: what it holds isn't what was kept there`)
  })

  /** Whole or not at all; says whether it was the first. One that is `replaced` makes room. */
  const write = (key: string, text: string, replaced: boolean, model: string): Effect.Effect<boolean, LmError> => {
    const file = at(key)
    const folder = path.dirname(file)
    // Other processes may write the same at the same time.
    const temporary = path.join(folder, `.${key}.${crypto.randomUUID()}.tmp`)
    const put = replaced
      ? Effect.as(fs.rename(temporary, file), true)
      : fs.link(temporary, file).pipe(
          Effect.as(true),
          Effect.catchIf(isReason("AlreadyExists"), () => Effect.succeed(false)),
          // Where there are no links of this kind, the last one to write is the one that is kept.
          Effect.catch(() => Effect.as(fs.rename(temporary, file), true)),
        )
    return Effect.scoped(
      Effect.gen(function* () {
        yield* Effect.provideContext(makeFolder(folder), context)
        const handle = yield* fs.open(temporary, { flag: "wx" })
        yield* handle.writeAll(utf8.encode(text))
        yield* handle.sync
      }),
    ).pipe(
      Effect.andThen(put),
      Effect.ensuring(Effect.ignore(fs.remove(temporary, { force: true }))),
      Effect.uninterruptible,
      Effect.mapError((error) => cacheError(model, `${file} can't be written: ${messageOf(error)}`)),
    )
  }

  return { at, read, write }
})
