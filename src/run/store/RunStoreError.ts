import { Schema } from "effect"
import { type PlatformFailure, shownPath, systemMessage } from "../../config/files.ts"

/** A file that could not be written, read or found: which one, and what the system said. */
export class RunStoreError extends Schema.TaggedError<RunStoreError>()("RunStoreError", {
  path: Schema.String,
  /** What was being done: `write`, `append to`, `read` … */
  operation: Schema.String,
  /** One line for people. */
  message: Schema.String,
}) {}

/** A platform's failure as one line for people. */
export const runStoreError = (operation: string, path: string, error: PlatformFailure): RunStoreError =>
  new RunStoreError({ path, operation, message: `cannot ${operation} ${shownPath(path)}: ${systemMessage(error)}` })
