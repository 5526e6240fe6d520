import { Schema } from "effect"

/** A file that could not be written, read or found: which one, and what the system said. */
export class RunStoreError extends Schema.TaggedError<RunStoreError>()("RunStoreError", {
  path: Schema.String,
  operation: Schema.String,
  message: Schema.String,
}) {}

const plain: Readonly<Record<string, string>> = {
  ENOSPC: "no space left on device",
  EDQUOT: "disk quota exceeded",
  EACCES: "permission denied",
  EPERM: "operation not permitted",
  EROFS: "read-only file system",
  ENOENT: "no such file or directory",
  ENOTDIR: "a part of the path is not a directory",
  EISDIR: "it is a directory",
  EEXIST: "it exists already",
  EMFILE: "too many open files",
  ENAMETOOLONG: "the name is too long",
  ELOOP: "too many symbolic links",
}

/** A platform's failure as one line for people. */
export const runStoreError = (operation: string, path: string, error: { readonly message: string; readonly cause?: unknown }): RunStoreError => {
  const code =
    typeof error.cause === "object" && error.cause !== null && "code" in error.cause ? String(error.cause.code) : undefined
  const said = (code === undefined ? undefined : plain[code]) ?? error.message
  return new RunStoreError({ path, operation, message: `cannot ${operation} ${path}: ${said}` })
}
