/**
 * Defines the Schema of a file on which a job depends. A job carries only the path and the digest of the file, not its
 * content: each machine has its own copy.
 */
import * as Schema from "effect/Schema"

export const SentFile = Schema.Struct({
  /** The path, relative if it is below the working directory, which may differ between machines. */
  path: Schema.String,
  sha256: Schema.String,
})
export type SentFile = typeof SentFile.Type
