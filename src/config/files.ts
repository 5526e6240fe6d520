import { Effect, FileSystem, Path, type PlatformError, Schema } from "effect"
import { oneLine } from "./text.ts"
import { utf8 } from "./utf8.ts"

/**
 * The one way to read a file as a whole, and to make a folder. A path may name anything: a pipe that nobody writes into,
 * a device without an end, a disk image. So what is read must be a regular file of a size that we expect.
 */

/** A file or a folder that can't be used. The message is one line that says why, without the path. */
export class FileError extends Schema.TaggedError<FileError>()("FileError", {
  path: Schema.String,
  /** There is nothing at the path. */
  missing: Schema.Boolean,
  message: Schema.String,
}) {}

const mebibyte = 1024 * 1024

/** How many bytes a file may have that is read as a whole. */
export const mostBytes = {
  /** What people write by hand, and what runs save of it. */
  config: 8 * mebibyte,
  /** A prompt, a template. */
  prompt: 8 * mebibyte,
  /** What runs write: JSON and lines of it. A string can't be longer. */
  text: 512 * mebibyte - 64,
  /** Weights and states, which are read into one array. */
  binary: 2 ** 32,
}

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

export interface PlatformFailure {
  readonly message: string
  readonly reason?: { readonly _tag: string }
  readonly cause?: unknown
  /** Whether the file is missing; a FileError says so. */
  readonly missing?: boolean
}

/** A path for a message: of one that is very long, its two ends. */
export const shownPath = (path: string): string =>
  path.length > 300 ? `${path.slice(0, 140)}…${path.slice(-140)}` : path

const codeIn = (value: unknown): string | undefined =>
  typeof value === "object" && value !== null && "code" in value ? String(value.code) : undefined

/** What the system said about a failure, as one line for people. */
export const systemMessage = (error: PlatformFailure): string => {
  const code = error.missing === true ? "ENOENT" : (codeIn(error) ?? codeIn(error.cause))
  return oneLine(plain[code ?? ""] ?? plain[error.reason?._tag ?? ""] ?? error.message)
}

const kinds: Readonly<Partial<Record<FileSystem.File.Type, string>>> = {
  Directory: "a directory",
  BlockDevice: "a device",
  CharacterDevice: "a device",
  FIFO: "a pipe",
  Socket: "a socket",
}

/** A number of bytes for people. */
const inMebibytes = (bytes: number): string =>
  `${bytes % mebibyte === 0 ? bytes / mebibyte : (bytes / mebibyte).toFixed(1)} MiB`

/** Why a file must not be read as a whole, if it mustn't. */
export const refusal = (type: FileSystem.File.Type, bytes: number, most: number): string | undefined => {
  if (type !== "File") return `expected a regular file, found ${kinds[type] ?? "something else"}`
  return bytes > most ? `expected a file of at most ${inMebibytes(most)}, found ${inMebibytes(bytes)}` : undefined
}

const failed = (path: string) => (error: PlatformError.PlatformError) => {
  const missing = error.reason._tag === "NotFound"
  return new FileError({ path, missing, message: missing ? "there is no such file" : systemMessage(error) })
}

/** Fails unless a path names a regular file of at most so many bytes, and gives its size. */
export const checkFile = Effect.fnUntraced(function* (
  path: string,
  most: number,
): Effect.fn.Return<number, FileError, FileSystem.FileSystem> {
  const fs = yield* FileSystem.FileSystem
  const { type, size } = yield* Effect.mapError(fs.stat(path), failed(path))
  const message = refusal(type, Number(size), most)
  if (message !== undefined) return yield* new FileError({ path, missing: false, message })
  return Number(size)
})

/** Node's `readFile` refuses larger files than 2 GiB: those are read in parts of this size. */
const atOnce = 2 ** 30

/** Reads a regular file of at most so many bytes. */
export const readBytes = Effect.fnUntraced(function* (
  path: string,
  most: number,
  part = atOnce,
): Effect.fn.Return<Uint8Array, FileError, FileSystem.FileSystem> {
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
        // The file has become shorter meanwhile.
        if (count === 0) return bytes.slice(0, filled)
        filled += count
      }
      return bytes
    }),
  )

const decodedBy = (decode: (bytes: Uint8Array) => Decoded) =>
  Effect.fnUntraced(function* (path: string, most: number): Effect.fn.Return<string, FileError, FileSystem.FileSystem> {
    const decoded = decode(yield* readBytes(path, most))
    if ("text" in decoded) return decoded.text
    return yield* new FileError({ path, missing: false, message: decoded.problem })
  })

/** Reads a regular file of at most so many bytes as text; fails if they are not UTF-8. */
export const readText = decodedBy((bytes) => textOf(bytes))

/** Reads a text that a run writes, of at most so many bytes; `textOfRunFile` says how it differs from `readText`. */
export const readRunText = decodedBy((bytes) => textOfRunFile(bytes))

/** `readText` for code that holds the file system itself. */
export const readTextFrom = (fs: FileSystem.FileSystem, path: string, most: number): Effect.Effect<string, FileError> =>
  Effect.provideService(readText(path, most), FileSystem.FileSystem, fs)

type Decoded = { readonly text: string } | { readonly problem: string }

/** Bytes as text, without a mark at its begin; or what they are instead. */
export const textOf = (bytes: Uint8Array): Decoded => {
  try {
    const text = utf8.decodeStrict(bytes)
    // A zero is valid UTF-8, but no text has one: UTF-16 without a mark is full of them.
    if (!text.includes("\0")) return { text }
  } catch {
    // Its first bytes tell what it is.
  }
  return { problem: `expected text in UTF-8, found ${formatOf(bytes)}` }
}

/**
 * Bytes of a file that a run writes, as text. A run that was killed, or that is writing, may leave half a character or
 * zeros at the end: these don't make the lines before unreadable. Another format is a problem, as in `textOf`.
 */
export const textOfRunFile = (bytes: Uint8Array): Decoded => {
  const decoded = textOf(bytes)
  return "problem" in decoded && formatOf(bytes) === other ? { text: utf8.decode(bytes) } : decoded
}

const other = "other bytes"

const formatOf = (bytes: Uint8Array): string => {
  const [first, second] = bytes
  if (first === 0x1f && second === 0x8b) return "a gzip file; unpack it first"
  if (first === 0x50 && second === 0x4b) return "a zip file; unpack it first"
  const isMarked = (first === 0xff && second === 0xfe) || (first === 0xfe && second === 0xff)
  const isUnmarked = bytes.length > 1 && (first === 0) !== (second === 0)
  return isMarked || isUnmarked ? "UTF-16; save it as UTF-8" : other
}

/** Whether anything is at a path; false also where that can't be found out. */
export const exists = (path: string): Effect.Effect<boolean, never, FileSystem.FileSystem> =>
  Effect.flatMap(FileSystem.FileSystem, (fs) => Effect.orElseSucceed(fs.exists(path), () => false))

/** The kind and times of what is at a path; undefined where nothing is. */
export const statOf = (path: string): Effect.Effect<FileSystem.File.Info | undefined, never, FileSystem.FileSystem> =>
  Effect.flatMap(FileSystem.FileSystem, (fs) => Effect.orElseSucceed(fs.stat(path), () => undefined))

/** The names in a folder, sorted; none where there is no such folder. */
export const namesIn = (folder: string): Effect.Effect<ReadonlyArray<string>, never, FileSystem.FileSystem> =>
  Effect.flatMap(FileSystem.FileSystem, (fs) =>
    fs.readDirectory(folder).pipe(
      Effect.orElseSucceed((): ReadonlyArray<string> => []),
      Effect.map((names) => names.toSorted()),
    ),
  )

/**
 * Makes a folder and those above it, each by itself: Node's recursive `mkdir` never returns where a folder can't be made
 * though the one above it is there, as below `/proc`.
 */
export const makeFolder = Effect.fnUntraced(function* (
  folder: string,
): Effect.fn.Return<void, FileError, FileSystem.FileSystem | Path.Path> {
  const fs = yield* FileSystem.FileSystem
  const paths = yield* Path.Path
  const failing = (path: string) =>
    Effect.mapError((error: PlatformError.PlatformError) => {
      const missing = error.reason._tag === "NotFound"
      const message = missing ? `no folder can be made at ${path}` : systemMessage(error)
      return new FileError({ path, missing: false, message })
    })
  const missing: Array<string> = []
  for (let at = paths.resolve(folder); !(yield* failing(at)(fs.exists(at))); at = paths.dirname(at)) {
    missing.push(at)
    if (paths.dirname(at) === at) break
  }
  for (const one of missing.toReversed()) {
    yield* fs.makeDirectory(one).pipe(
      // Another process may have made it meanwhile; that it is a folder shows when it is written to.
      Effect.catchIf(
        (error) => error.reason._tag === "AlreadyExists",
        () => Effect.void,
      ),
      failing(one),
    )
  }
})

/** Removes the `/` at a relative folder's end and the like, so that paths below it have one slash between their parts. */
export const tidyFolder = (folder: string): string =>
  folder
    .split("/")
    .filter((part) => part !== "" && part !== ".")
    .join("/") || "."
