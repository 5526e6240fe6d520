import { Clock, Effect, type Scope } from "effect"
import type { RunFiles } from "../store/RunFiles.ts"
import type { RunStoreError } from "../store/RunStoreError.ts"
import { ByteWriter } from "../../formats/ByteWriter.ts"

/** An append costs some 50 µs however long it is: at 256 KiB, a fifth of a nanosecond a byte. */
const fullAt = 256 * 1024
const dueAfterMillis = 250

/** A file that grows, written in large pieces: when enough has come together, a quarter of a second passed, or on flush. */
export interface Appender {
  /** What is to be appended goes in here. */
  readonly buffer: ByteWriter
  /** Writes if it is time to. */
  readonly settle: (nowMillis: number) => Effect.Effect<void, RunStoreError>
  readonly flush: Effect.Effect<void, RunStoreError>
}

/** Starts to count the time when it is made. */
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
    // A refused append may have left half a line, which must stay the last one: nothing more is written.
    Effect.onError(() =>
      Effect.sync(() => {
        broken = true
      }),
    ),
    Effect.ensuring(Effect.sync(() => buffer.clear())),
    // Else it could be stopped between the writing and the clearing, and write everything twice.
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
