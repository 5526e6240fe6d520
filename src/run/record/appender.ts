/** Buffers appends to a growing file. The sinks for scores, logs and metrics write through it. */
import { Clock, Effect, type Scope } from "effect"
import type { RunFiles } from "../store/RunFiles.ts"
import type { RunStoreError } from "../store/RunStoreError.ts"
import { ByteWriter } from "../../formats/ByteWriter.ts"

/**
 * The size in bytes at which the buffer is written. One append costs about 50 µs, so this is a fifth of a nanosecond per
 * byte.
 */
const fullAt = 256 * 1024
const dueAfterMillis = 250

/** Appends to a file in large pieces: when the buffer is full, after a quarter of a second, or on flush. */
interface Appender {
  /** The buffer for the bytes to append. */
  readonly buffer: ByteWriter
  /** Writes the buffer if it is full or if a quarter of a second has passed since the last write. */
  readonly settle: (nowMillis: number) => Effect.Effect<void, RunStoreError>
  readonly flush: Effect.Effect<void, RunStoreError>
}

/** Opens a file for buffered appends. The time until the first write counts from this call; the scope closes the file. */
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
    // A failed append may leave an incomplete line. Write nothing after it, so that it stays the last line, which readers
    // ignore.
    Effect.onError(() =>
      Effect.sync(() => {
        broken = true
      }),
    ),
    Effect.ensuring(Effect.sync(() => buffer.clear())),
    // An interruption between writing and clearing the buffer would write the bytes twice.
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
