import * as Schema from "effect/Schema"
import { codeOf, type PlatformFailure, shownPath, systemMessage } from "../../base/files/files.ts"

/**
 * Reports a file, a folder or an object of a run that could not be written, read or found, or that another process holds.
 * Repair the store or stop the other process, then resume the run.
 */
export class RunStoreError extends Schema.TaggedError<RunStoreError>()("RunStoreError", {
  /** The file or folder, or the key of an object. */
  path: Schema.String,
  /** The operation that failed, e.g. `write`, `append to` or `read`. An object store leaves it to its caller. */
  operation: Schema.optionalKey(Schema.String),
  /** The system's code of the error, such as `ENOSPC`, if it has one. */
  code: Schema.optionalKey(Schema.String),
  /** The name of the living process that holds the lock, if that is the reason. */
  holder: Schema.optionalKey(Schema.String),
  /** The message: one line that names the file and the problem. */
  message: Schema.String,
}) {}

/** Converts an error of the file system or a custom store to a `RunStoreError`: "cannot `operation` `path`: …". */
export const runStoreError = (operation: string, path: string, error: PlatformFailure): RunStoreError => {
  const code = codeOf(error)
  return new RunStoreError({
    path,
    operation,
    ...(code === undefined ? {} : { code }),
    message: `cannot ${operation} ${shownPath(path)}: ${systemMessage(error)}`,
  })
}
