import { Schema } from "effect"
import { type PlatformFailure, shownPath, systemMessage } from "../../config/files.ts"

/** A failure of the store: a file that could not be written, read or found. */
export class RunStoreError extends Schema.TaggedError<RunStoreError>()("RunStoreError", {
  path: Schema.String,
  /** The operation that failed: `write`, `append to`, `read` … */
  operation: Schema.String,
  /** One line that names the file and the problem. */
  message: Schema.String,
}) {}

/** Makes an error with a message of one line from a failure of the platform. */
export const runStoreError = (operation: string, path: string, error: PlatformFailure): RunStoreError =>
  new RunStoreError({ path, operation, message: `cannot ${operation} ${shownPath(path)}: ${systemMessage(error)}` })
