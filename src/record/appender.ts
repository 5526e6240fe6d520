import { Clock, Effect } from "effect"
import type { RunFiles } from "../experiment/RunStore.ts"
import type { RunStoreError } from "../experiment/RunStoreError.ts"

const bufferedBytes = 64 * 1024
const bufferedMillis = 250

/** A file that grows, written in large pieces: when enough has come together, a quarter of a second passed, or on flush. */
export interface Appender {
  readonly add: (piece: string | Uint8Array) => void
  /** Writes if it is time to. */
  readonly settle: Effect.Effect<void, RunStoreError>
  readonly flush: Effect.Effect<void, RunStoreError>
}

export const appender = (run: RunFiles, path: string): Appender => {
  let pieces: Array<string | Uint8Array> = []
  let size = 0
  let writtenAt = 0

  const flush = Effect.suspend(() => {
    if (pieces.length === 0) return Effect.void
    const bytes = joined(pieces)
    pieces = []
    size = 0
    return run.append(path, bytes)
  })

  return {
    add: (piece) => {
      pieces.push(piece)
      size += piece.length
    },
    settle: Effect.flatMap(Clock.currentTimeMillis, (now) => {
      if (size < bufferedBytes && now - writtenAt < bufferedMillis) return Effect.void
      writtenAt = now
      return flush
    }),
    flush,
  }
}

const encoder = new TextEncoder()

const joined = (pieces: ReadonlyArray<string | Uint8Array>): Uint8Array => {
  const parts: Array<Uint8Array> = []
  let text = ""
  for (const piece of pieces) {
    if (typeof piece === "string") {
      text += piece
      continue
    }
    if (text !== "") parts.push(encoder.encode(text))
    text = ""
    parts.push(piece)
  }
  if (text !== "") parts.push(encoder.encode(text))
  const [only, ...rest] = parts
  if (rest.length === 0) return only
  const bytes = new Uint8Array(parts.reduce((total, part) => total + part.length, 0))
  let at = 0
  for (const part of parts) {
    bytes.set(part, at)
    at += part.length
  }
  return bytes
}
