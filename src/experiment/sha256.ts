import { Effect } from "effect"

/** The SHA-256 of bytes, in hex. */
export const sha256 = (bytes: Uint8Array): Effect.Effect<string> =>
  Effect.map(
    Effect.promise(() => crypto.subtle.digest("SHA-256", new Uint8Array(bytes))),
    (digest) => [...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, "0")).join(""),
  )
