import { Schema } from "effect"
import { oneLine } from "../config/text.ts"

/** A file that could not be written, read or found: which one, and what the system said. */
export class RunStoreError extends Schema.TaggedError<RunStoreError>()("RunStoreError", {
  path: Schema.String,
  /** What was being done: `write`, `append to`, `read` … */
  operation: Schema.String,
  /** One line for people. */
  message: Schema.String,
}) {}

/** What the system's codes mean; where there is no code, what Effect's own tags mean. */
const plain: Readonly<Record<string, string>> = {
  ENOSPC: "no space left on device",
  EDQUOT: "disk quota exceeded",
  EFBIG: "the file would be too large",
  EACCES: "permission denied",
  EPERM: "operation not permitted",
  EROFS: "read-only file system",
  ENOENT: "no such file or directory",
  ENOTDIR: "a part of the path is not a directory",
  EISDIR: "it is a directory",
  EEXIST: "it exists already",
  EIO: "the device failed to read or write",
  EMFILE: "too many open files",
  ENAMETOOLONG: "the name is too long",
  ELOOP: "too many symbolic links",
  PermissionDenied: "permission denied",
  NotFound: "no such file or directory",
  AlreadyExists: "it exists already",
}

interface PlatformFailure {
  readonly message: string
  readonly reason?: { readonly _tag: string }
  readonly cause?: unknown
}

/** A platform's failure as one line for people. */
export const runStoreError = (operation: string, path: string, error: PlatformFailure): RunStoreError => {
  const { cause, reason } = error
  const code = typeof cause === "object" && cause !== null && "code" in cause ? String(cause.code) : undefined
  const said = plain[code ?? ""] ?? plain[reason?._tag ?? ""] ?? error.message
  return new RunStoreError({
    path,
    operation,
    message: `cannot ${operation} ${path}: ${oneLine(said)}`,
  })
}
