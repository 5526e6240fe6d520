import { Clock, Effect, type Scope } from "effect"
import type { RunFiles } from "../store/RunFiles.ts"
import type { RunStoreError } from "../store/RunStoreError.ts"
import { ByteWriter } from "../../formats/ByteWriter.ts"

/** An append costs about 50 µs; for 256 KiB, that is a fifth of a nanosecond per byte. */
const fullAt = 256 * 1024
const dueAfterMillis = 250

/** Appends to a file in large pieces: when the buffer is full, after a quarter of a second, or on flush. */
interface Appender {
  /** The buffer for what is to be appended. */
  readonly buffer: ByteWriter
  /** Writes the buffer if it is time to. */
  readonly settle: (nowMillis: number) => Effect.Effect<void, RunStoreError>
  readonly flush: Effect.Effect<void, RunStoreError>
}

/** The time counts from this call. */
export const appender = Effect.fnUntraced(function* (
  run: RunFiles,
  path: string,
): Effect.fn.Return<Appender, never, Scope.Scope> {
  const append = yield* run.appending(path)
  const buffer = new ByteWriter(fullAt + 64 * 1024)
  let writtenAt = yield* Clock.currentTimeMillis
  let broken = false
  const flush = Effect.suspend(() => {
    if (broken) buffer.clear()
    return buffer.length === 0 ? Effect.void : append(buffer.written)
  }).pipe(
    // A failed append may leave half a line, which must stay the last one: write nothing more.
    Effect.onError(() =>
      Effect.sync(() => {
        broken = true
      }),
    ),
    Effect.ensuring(Effect.sync(() => buffer.clear())),
    // An interruption between writing and clearing would write everything twice.
    Effect.uninterruptible,
  )
  return {
    buffer,
    settle: (nowMillis) => {
      if (buffer.length < fullAt && nowMillis - writtenAt < dueAfterMillis) return Effect.void
      writtenAt = nowMillis
      return flush
    },
    flush,
  }
})
