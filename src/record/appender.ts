import { Clock, Effect } from "effect"
import type { RunFiles } from "../experiment/RunFiles.ts"
import type { RunStoreError } from "../experiment/RunStoreError.ts"
import { ByteWriter } from "./ByteWriter.ts"

const fullAt = 64 * 1024
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
export const appender = Effect.fnUntraced(function* (run: RunFiles, path: string): Effect.fn.Return<Appender> {
  const buffer = new ByteWriter(2 * fullAt)
  let writtenAt = yield* Clock.currentTimeMillis
  // Cleared when the file has it: what a full disk refused is tried again by the next flush.
  const flush = Effect.suspend(() =>
    buffer.length === 0
      ? Effect.void
      : Effect.map(run.append(path, buffer.written), () => {
          buffer.clear()
        }),
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
