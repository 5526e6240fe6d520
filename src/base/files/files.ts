/**
 * Reads whole files and makes folders on disk; other modules must use these functions for both. A path that a user
 * names can be anything (a pipe without a writer, an endless device, a disk image), so a file is read only if it is a
 * regular file and not larger than expected.
 */
import { Effect, Path, type PlatformError } from "effect"
import * as FileSystem from "effect/FileSystem"
import * as Schema from "effect/Schema"
import { oneLine } from "../text/text.ts"
import { utf8 } from "../text/utf8.ts"

/** Reports that a file or folder cannot be used. The message says why in one line, without the path. */
export class FileError extends Schema.TaggedError<FileError>()("FileError", {
  path: Schema.String,
  /** Tells whether nothing exists at the path. */
  missing: Schema.Boolean,
  /** The system's code of the error, such as `EMFILE`, if it has one. */
  code: Schema.optionalKey(Schema.String),
  message: Schema.String,
}) {}

const mebibyte = 1024 * 1024

/** The largest sizes in bytes of files that are read whole. */
export const mostBytes = {
  /** Configs that people write, and the copies that runs save. */
  config: 8 * mebibyte,
  /** Files with prompts and templates. */
  prompt: 8 * mebibyte,
  /** JSON and JSON Lines that runs write. This is about the longest string that V8 allows. */
  text: 512 * mebibyte - 64,
  /** Files with weights and states, which are read into one array. */
  binary: 2 ** 32,
}

/** Explains the system's error codes and, for an error without a code, the tags of Effect's errors. */
const explanations: Readonly<Record<string, string>> = {
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
  ENFILE: "too many open files in the system",
  ENOMEM: "out of memory",
  ENAMETOOLONG: "the name is too long",
  ELOOP: "too many symbolic links",
  PermissionDenied: "permission denied",
  NotFound: "no such file or directory",
  AlreadyExists: "it exists already",
}

/** The error of a file operation: an error of Effect's platform, an error of Node, or a `FileError`. */
export interface PlatformFailure {
  readonly message: string
  readonly reason?: { readonly _tag: string }
  readonly cause?: unknown
  /** Tells whether the file is missing, if the error is a `FileError`. */
  readonly missing?: boolean
}

/** Shortens a very long path for a message to its two ends. */
export const shownPath = (path: string): string =>
  path.length > 300 ? `${path.slice(0, 140)}…${path.slice(-140)}` : path

const codeIn = (value: unknown): string | undefined =>
  typeof value === "object" && value !== null && "code" in value ? String(value.code) : undefined

/** Returns the system's code of an error of a file operation, such as `ENOSPC`; undefined if it has none. */
export const codeOf = (error: PlatformFailure): string | undefined => codeIn(error) ?? codeIn(error.cause)

/**
 * The codes of conditions of the machine that may pass, or that its user can end: a full or failing disk, too many open
 * files, no memory, missing permissions. They say nothing about the work that was interrupted by the error.
 */
const machineCodes = new Set([
  "EACCES",
  "EAGAIN",
  "EBUSY",
  "EDQUOT",
  "EIO",
  "EMFILE",
  "ENFILE",
  "ENOMEM",
  "ENOSPC",
  "EPERM",
  "EROFS",
  "ESTALE",
  "ETIMEDOUT",
])

/** The error code that a process gets if it writes a run which another process has taken over. */
export const lostLease = "ELEASE"

/**
 * Tells whether an error comes from the condition of the machine, so that the same work can succeed later, or from
 * another process that has taken over the run. In both cases the work itself is not at fault.
 */
export const isMachineFault = (error: unknown): boolean => {
  const code =
    codeIn(error) ?? (typeof error === "object" && error !== null && "cause" in error ? codeIn(error.cause) : undefined)
  return code !== undefined && (machineCodes.has(code) || code === lostLease)
}

/** Explains an error of a file operation in one line, by its code if it has one, or else by its tag or message. */
export const systemMessage = (error: PlatformFailure): string => {
  // A `FileError` about a file that exists has a complete message, so no code is looked up.
  const code = error.missing === true ? "ENOENT" : error.missing === false ? undefined : codeOf(error)
  return oneLine(explanations[code ?? ""] ?? explanations[error.reason?._tag ?? ""] ?? error.message)
}

const kinds: Readonly<Partial<Record<FileSystem.File.Type, string>>> = {
  Directory: "a directory",
  BlockDevice: "a device",
  CharacterDevice: "a device",
  FIFO: "a pipe",
  Socket: "a socket",
}

const inMebibytes = (bytes: number): string =>
  `${bytes % mebibyte === 0 ? bytes / mebibyte : (bytes / mebibyte).toFixed(1)} MiB`

/** Returns why a file must not be read whole; undefined if it can be. */
export const refusal = (type: FileSystem.File.Type, bytes: number, most: number): string | undefined => {
  if (type !== "File") return `expected a regular file, found ${kinds[type] ?? "something else"}`
  return bytes > most ? `expected a file of at most ${inMebibytes(most)}, found ${inMebibytes(bytes)}` : undefined
}

const failed = (path: string) => (error: PlatformError.PlatformError) => {
  const missing = error.reason._tag === "NotFound"
  const message = missing ? "there is no such file" : systemMessage(error)
  return new FileError({ path, missing, message, ...coded(error) })
}

const coded = (error: PlatformFailure): { readonly code?: string } => {
  const code = codeOf(error)
  return code === undefined ? {} : { code }
}

/** Checks that a path names a regular file of at most `most` bytes, and returns its size. */
export const checkFile = Effect.fnUntraced(function* (path: string, most: number) {
  const fs = yield* FileSystem.FileSystem
  const { type, size } = yield* Effect.mapError(fs.stat(path), failed(path))
  const message = refusal(type, Number(size), most)
  if (message !== undefined) return yield* new FileError({ path, missing: false, message })
  return Number(size)
})

/** The size in bytes of the parts in which a large file is read, because Node's `readFile` refuses files over 2 GiB. */
const atOnce = 2 ** 30

/** Reads a regular file of at most `most` bytes. A file that is larger than `part` is read in parts of that size. */
export const readBytes = Effect.fnUntraced(function* (path: string, most: number, part = atOnce) {
  const fs = yield* FileSystem.FileSystem
  const size = yield* checkFile(path, most)
  return yield* Effect.mapError(size > part ? inParts(path, size, part) : fs.readFile(path), failed(path))
})

const inParts = (path: string, size: number, part: number) =>
  Effect.scoped(
    Effect.gen(function* () {
      const fs = yield* FileSystem.FileSystem
      const file = yield* fs.open(path, { flag: "r" })
      const bytes = new Uint8Array(size)
      let filled = 0
      while (filled < size) {
        const count = Number(yield* file.read(bytes.subarray(filled, filled + part)))
        // Another process has shortened the file since it was opened.
        if (count === 0) return bytes.slice(0, filled)
        filled += count
      }
      return bytes
    }),
  )

/** Makes a function that reads a file by `readBytes` and decodes it to text; it fails with a `FileError`. */
const decodedBy = (decode: (bytes: Uint8Array) => DecodedText) =>
  Effect.fnUntraced(function* (path: string, most: number) {
    const decoded = decode(yield* readBytes(path, most))
    if ("text" in decoded) return decoded.text
    return yield* new FileError({ path, missing: false, message: decoded.problem })
  })

/** Reads a regular file of at most `most` bytes as text; fails if it is not UTF-8. */
export const readText = decodedBy((bytes) => textOf(bytes))

/** Reads a text file that a run writes, of at most `most` bytes; see `textOfRunFile`. */
export const readRunText = decodedBy((bytes) => textOfRunFile(bytes))

type DecodedText = { readonly text: string } | { readonly problem: string }

/** Decodes UTF-8 without its byte order mark. For other bytes, `problem` names their format: gzip, zip or UTF-16. */
export const textOf = (bytes: Uint8Array): DecodedText => {
  try {
    const text = utf8.decodeStrict(bytes)
    // A zero byte is valid UTF-8, but occurs in no text; UTF-16 without a byte order mark is full of zero bytes.
    if (!text.includes("\0")) return { text }
  } catch {
    // The bytes are not UTF-8; `formatOf` below names their format.
  }
  return { problem: `expected text in UTF-8, found ${formatOf(bytes)}` }
}

/**
 * Decodes the bytes of a file that a run writes. A run that was killed or is still writing may leave half a character
 * or zeros at the end. Such a file is decoded all the same, so that the lines before stay readable. Gzip, zip and
 * UTF-16 are a problem, as in `textOf`.
 */
export const textOfRunFile = (bytes: Uint8Array): DecodedText => {
  const decoded = textOf(bytes)
  return "problem" in decoded && formatOf(bytes) === unknownFormat ? { text: utf8.decode(bytes) } : decoded
}

const unknownFormat = "other bytes"

/** Names the format of bytes that are not UTF-8 by the first two: a signature, a byte order mark, or a single zero. */
const formatOf = (bytes: Uint8Array): string => {
  const [first, second] = bytes
  if (first === 0x1f && second === 0x8b) return "a gzip file; unpack it first"
  if (first === 0x50 && second === 0x4b) return "a zip file; unpack it first"
  const isMarked = (first === 0xff && second === 0xfe) || (first === 0xfe && second === 0xff)
  // A Latin letter has one zero byte in UTF-16.
  const isUnmarked = bytes.length > 1 && (first === 0) !== (second === 0)
  return isMarked || isUnmarked ? "UTF-16; save it as UTF-8" : unknownFormat
}

/** Tells whether a path exists; false if that cannot be determined. */
export const exists = (path: string): Effect.Effect<boolean, never, FileSystem.FileSystem> =>
  Effect.flatMap(FileSystem.FileSystem, (fs) => Effect.orElseSucceed(fs.exists(path), () => false))

/** Returns the type and times of the file at a path; undefined if there is none. */
export const statOf = (path: string): Effect.Effect<FileSystem.File.Info | undefined, never, FileSystem.FileSystem> =>
  Effect.flatMap(FileSystem.FileSystem, (fs) => Effect.orElseSucceed(fs.stat(path), () => undefined))

/** Returns the sorted names in a folder; none if the folder doesn't exist. */
export const namesIn = (folder: string): Effect.Effect<ReadonlyArray<string>, never, FileSystem.FileSystem> =>
  Effect.flatMap(FileSystem.FileSystem, (fs) =>
    fs.readDirectory(folder).pipe(
      Effect.orElseSucceed((): ReadonlyArray<string> => []),
      Effect.map((names) => names.toSorted()),
    ),
  )

/**
 * Makes a folder and its parents, one by one: Node's recursive `mkdir` never returns if a folder cannot be made
 * although its parent exists, such as below `/proc`.
 */
export const makeFolder = Effect.fnUntraced(function* (folder: string) {
  const fs = yield* FileSystem.FileSystem
  const paths = yield* Path.Path
  const failing = (path: string) =>
    Effect.mapError((error: PlatformError.PlatformError) => {
      const missing = error.reason._tag === "NotFound"
      const message = missing ? `no folder can be made at ${path}` : systemMessage(error)
      return new FileError({ path, missing: false, message, ...coded(error) })
    })
  const missing: Array<string> = []
  for (let at = paths.resolve(folder); !(yield* failing(at)(fs.exists(at))); at = paths.dirname(at)) {
    missing.push(at)
    if (paths.dirname(at) === at) break
  }
  for (const one of missing.toReversed()) {
    yield* fs.makeDirectory(one).pipe(
      // Another process may have made the folder at the same time. If the path isn't a folder, writing to it will fail.
      Effect.catchReason("PlatformError", "AlreadyExists", () => Effect.void),
      failing(one),
    )
  }
})

/**
 * Writes a folder with these files, replacing an older one. The folder appears only when it is complete, so that files
 * of both are never mixed. Another process may write the same folder at the same time.
 */
export const replaceFolder = Effect.fnUntraced(function* (folder: string, files: Readonly<Record<string, Uint8Array>>) {
  const fs = yield* FileSystem.FileSystem
  const paths = yield* Path.Path
  const parent = paths.dirname(paths.resolve(folder))
  yield* makeFolder(parent)
  const beside = paths.join(parent, `.${paths.basename(folder)}.${crypto.randomUUID()}`)
  const [temporary, old] = [`${beside}.tmp`, `${beside}.old`]
  yield* fs.makeDirectory(temporary)
  yield* Effect.forEach(Object.entries(files), ([name, bytes]) => fs.writeFile(paths.join(temporary, name), bytes), {
    discard: true,
  }).pipe(
    Effect.andThen(
      Effect.uninterruptible(
        Effect.gen(function* () {
          if (yield* fs.exists(folder)) yield* fs.rename(folder, old)
          yield* fs.rename(temporary, folder)
          yield* fs.remove(old, { recursive: true, force: true })
        }),
      ),
    ),
    Effect.ensuring(Effect.ignore(fs.remove(temporary, { recursive: true, force: true }))),
  )
})

/** Removes empty parts and `.` from a path, also the `/` at its beginning and end; returns `.` if nothing is left. */
export const tidyFolder = (folder: string): string =>
  folder
    .split("/")
    .filter((part) => part !== "" && part !== ".")
    .join("/") || "."
