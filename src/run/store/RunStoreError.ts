import { Schema } from "effect"
import { type PlatformFailure, shownPath, systemMessage } from "../../config/files.ts"

/** The error of a `RunStore` or of a run's files: a file or folder that could not be written, read or found. */
export class RunStoreError extends Schema.TaggedError<RunStoreError>()("RunStoreError", {
  path: Schema.String,
  /** The operation that failed, e.g. `write`, `append to` or `read`. */
  operation: Schema.String,
  /** The message: one line that names the file and the problem. */
  message: Schema.String,
}) {}

/** Converts an error of the file system or a custom store to a `RunStoreError`: "cannot `operation` `path`: …". */
export const runStoreError = (operation: string, path: string, error: PlatformFailure): RunStoreError =>
  new RunStoreError({ path, operation, message: `cannot ${operation} ${shownPath(path)}: ${systemMessage(error)}` })
