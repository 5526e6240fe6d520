/**
 * Caches the answers of models in files, so that a run can be repeated without its model.
 *
 * The name of an answer's file is a hash of the whole request. If the model samples the answer without a seed, the hash
 * includes the call's `CallContext` and the number of earlier equal requests in that context: equal requests of
 * different episodes may then have different answers, and a repeated episode reads its own answers.
 *
 * @example
 * ```ts
 * const recording = yield* cached({ mode: "record", directory: "lm_cache" })
 * const { content } = yield* recording(lm).complete(request) // calls the model
 * yield* recording(lm).complete(request) // reads `lm_cache/3f/3f0c….json`
 * ```
 */
import { Effect, FileSystem, Path, Schema } from "effect"
import { jsonText } from "../../../base/text/jsonText.ts"
import type { Plain } from "../../../base/config/Config.ts"
import { makeFolder, mostBytes, readText } from "../../../base/files/files.ts"
import { sha256 } from "../../../base/text/sha256.ts"
import { messageOf } from "../../../base/text/text.ts"
import { utf8 } from "../../../base/text/utf8.ts"
import { canonical } from "../../../base/text/canonical.ts"
import { Completion, LmRequest } from "../Chat.ts"
import { type LmService, type Middleware, CallContext } from "../Lm.ts"
import { LmError, lmError } from "../LmError.ts"
import { CurrentExchange, digestOf as rawDigest } from "../RawExchange.ts"
import { singleFlight } from "./singleFlight.ts"

interface CacheOptions {
  /** `record` calls the model if there is no answer yet; `replay` never calls it. */
  readonly mode: "record" | "replay"
  readonly directory: string
  /** Other settings on which the answers depend; they become part of the cache key. */
  readonly also?: Plain
}

/** All the data from which the key of an answer is computed. */
const CachedRequest = Schema.Struct({
  request: LmRequest,
  /** Identifies the call; null if equal requests always have equal answers. */
  call: Schema.NullOr(
    Schema.Struct({
      phase: Schema.String,
      purpose: Schema.String,
      episode: Schema.Int,
      step: Schema.Int,
      /** The number of equal requests before this one in the same `CallContext`. */
      nth: Schema.Int,
    }),
  ),
  also: Schema.Record(Schema.String, Schema.Unknown),
})
type CachedRequest = typeof CachedRequest.Type

/** The SHA-256 of the completion or of the failure as canonical JSON, which detects a damaged file. */
const digest = Schema.String

/** The content of a file in the cache: a completion, or the failure of a call that would fail in the same way again. */
const CacheEntry = jsonText(
  Schema.Union([
    Schema.Struct({ ...CachedRequest.fields, completion: Completion, digest }),
    Schema.Struct({ ...CachedRequest.fields, failure: Schema.toEncoded(LmError), digest }),
  ]),
)
const decodeEntry = Schema.decodeUnknownEffect(CacheEntry)

type Recorded = { readonly completion: Completion } | { readonly failure: typeof LmError.Encoded }

/** Returns the recorded completion, or fails as the recorded call did. */
const answerOf = (recorded: Recorded): Effect.Effect<Completion, LmError> =>
  "completion" in recorded ? Effect.succeed(recorded.completion) : Effect.fail(new LmError(recorded.failure))

/**
 * Calls the model, and returns what is to be recorded. A request that the model declines, or whose prompt is too long, is
 * recorded like an answer, since a run goes on after it. After any other failure, the call can be made again.
 */
const asked = (lm: LmService, request: LmRequest): Effect.Effect<Recorded, LmError> =>
  lm.complete(request).pipe(
    Effect.map((completion): Recorded => ({ completion })),
    Effect.catchIf(
      ({ reason, promptTooLong }) => reason === "refused" || promptTooLong === true,
      (error) => Effect.succeed<Recorded>({ failure: Schema.encodeSync(LmError)(error) }),
    ),
  )

const digestOf = (value: unknown): Effect.Effect<string> => sha256(utf8.encode(canonical(value)))

const isSampled = ({ seed, temperature }: LmRequest): boolean => seed === null && temperature !== 0

const phaseOf = ({ phase }: CallContext): string =>
  phase._tag === "validation" ? `validation ${phase.seenEpisodes}` : phase._tag

/** Makes the middleware that reads and records answers. Equal calls at the same time share one request. */
export const cached = Effect.fnUntraced(function* ({ mode, directory, also = {} }: CacheOptions) {
  const files = yield* cacheFiles(directory)
  const middleware: Middleware = (lm) => {
    const once = singleFlight<Completion, LmError>()
    /** The number of equal requests so far, by their JSON, for each context. It is freed together with the context. */
    const countsByContext = new WeakMap<CallContext, Map<string, number>>()

    const answer = Effect.fnUntraced(function* (question: CachedRequest): Effect.fn.Return<Completion, LmError> {
      const { request } = question
      const key = yield* digestOf(question)
      if (mode === "replay") {
        const recorded = yield* files.read(key, request.model)
        if (recorded !== undefined) return yield* answerOf(recorded)
        const { episode, step } = yield* CallContext
        const problem =
          `no answer to the request of episode ${episode}, step ${step} (expected the file ${files.at(key)}); ` +
          "set cache: record to call the model and record its answers"
        return yield* cacheError(request.model, problem, { remedy: "cache=record" })
      }
      const readOrRecord = Effect.gen(function* () {
        let isDamaged = false
        const recorded = yield* Effect.catch(files.read(key, request.model), (error) => {
          isDamaged = true
          return Effect.as(Effect.logWarning(`${error.message}; calling the model again`), undefined)
        })
        if (recorded !== undefined) return yield* answerOf(recorded)
        const fresh = yield* asked(lm, request)
        const digest = yield* digestOf("completion" in fresh ? fresh.completion : fresh.failure)
        const text = `${JSON.stringify({ ...question, ...fresh, digest }, null, 1)}\n`
        const isFirst = yield* files.write(key, text, isDamaged, request.model)
        // If another process has saved an answer first, return that one, because a replay returns it, too.
        return yield* answerOf(isFirst ? fresh : ((yield* files.read(key, request.model)) ?? fresh))
      })
      return yield* once(key, readOrRecord)
    })

    const complete = (request: LmRequest): Effect.Effect<Completion, LmError> =>
      Effect.gen(function* () {
        const raw = yield* CurrentExchange
        // The body of another program may have more than the request, such as pictures.
        const all = raw === null ? also : { ...also, raw: yield* rawDigest(raw) }
        if (!isSampled(request)) return yield* answer({ request, call: null, also: all })
        const context = yield* CallContext
        const counts = countsByContext.get(context) ?? new Map<string, number>()
        countsByContext.set(context, counts)
        const text = canonical(raw === null ? request : { ...request, also: all })
        const nth = counts.get(text) ?? 0
        counts.set(text, nth + 1)
        const { purpose, episode, step } = context
        const call = { phase: phaseOf(context), purpose, episode, step, nth }
        // If the call fails, its repetition must have the same key, so undo the count.
        return yield* Effect.onError(answer({ request, call, also: all }), () =>
          Effect.sync(() => {
            if (counts.get(text) === nth + 1) counts.set(text, nth)
          }),
        )
      })
    return { complete }
  }
  return middleware
})

const cacheError = (model: string, problem: string, more?: { readonly remedy: string }): LmError =>
  lmError(model, "cache", `cache: ${problem}`, more)

const cacheFiles = Effect.fnUntraced(function* (directory: string) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const context = yield* Effect.context<FileSystem.FileSystem | Path.Path>()
  const at = (key: string): string => path.join(directory, key.slice(0, 2), `${key}.json`)

  const read = Effect.fnUntraced(function* (key: string, model: string) {
    const file = at(key)
    const text = yield* readText(file, mostBytes.text).pipe(
      Effect.provideContext(context),
      Effect.catchIf(
        ({ missing }) => missing,
        () => Effect.undefined,
      ),
      Effect.mapError((error) => cacheError(model, `cannot read ${file}: ${messageOf(error)}`)),
    )
    if (text === undefined) return undefined
    const { digest, request, call, also, ...recorded } = yield* Effect.mapError(decodeEntry(text), () =>
      cacheError(model, `${file} is damaged; expected the JSON of an answer`),
    )
    const content = "completion" in recorded ? recorded.completion : recorded.failure
    if ((yield* digestOf(content)) === digest && (yield* digestOf({ request, call, also })) === key) return recorded
    return yield* cacheError(model, `${file} is damaged: its content does not match its digest`)
  })

  /** Writes a file atomically. If the file exists, it is kept and the result is false, unless `replace` is true. */
  const write = (key: string, text: string, replace: boolean, model: string): Effect.Effect<boolean, LmError> => {
    const file = at(key)
    const folder = path.dirname(file)
    // Other processes may write the same file at the same time.
    const temporary = path.join(folder, `.${key}.${crypto.randomUUID()}.tmp`)
    const moveIntoPlace = replace
      ? Effect.as(fs.rename(temporary, file), true)
      : fs.link(temporary, file).pipe(
          Effect.as(true),
          Effect.catchIf(
            ({ reason }) => reason._tag === "AlreadyExists",
            () => Effect.succeed(false),
          ),
          // On file systems without hard links, the last process to write wins.
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
      Effect.andThen(moveIntoPlace),
      Effect.ensuring(Effect.ignore(fs.remove(temporary, { force: true }))),
      Effect.uninterruptible,
      Effect.mapError((error) => cacheError(model, `cannot write ${file}: ${messageOf(error)}`)),
    )
  }

  return { at, read, write }
})
