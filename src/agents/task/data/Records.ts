/**
 * Reads records by their index, from a JSONL or CSV file (on demand) or from a list. `fileSet.ts` makes tasks from them.
 *
 * Opening a file reads it once from end to end and checks every record, so that errors are reported before a run begins.
 * After that, only the offset and the line of each record are kept in memory (16 bytes).
 */
import { Effect, FileSystem, type Path, type PlatformError, Stream } from "effect"
import { isPlain, type Plain } from "../../../base/config/Config.ts"
import { checkFile } from "../../../base/files/files.ts"
import { parsedJson } from "../../../base/text/text.ts"
import { locate } from "../../../base/config/places.ts"
import { Sha256, sha256 } from "../../../base/text/sha256.ts"
import { DatasetError } from "../TaskSet.ts"
import { fieldsOf } from "../../../base/formats/csv.ts"
import { pages } from "./pages.ts"
import { RecordScanner } from "./RecordScanner.ts"
import { utf8 } from "../../../base/text/utf8.ts"

interface Records {
  /** The path of the file as the config gives it; `items` for records in the config itself. */
  readonly name: string
  readonly size: number
  /** The SHA-256 digest of the contents. */
  readonly digest: string
  /** Returns a record, and its position for error messages, such as `tasks.jsonl:17`. */
  readonly at: (index: number) => Effect.Effect<{ readonly fields: Plain; readonly place: string }, DatasetError>
}

/** Checks a record; returns a description of the problem, or undefined if there is none. */
type RecordCheck = (fields: Plain, index: number) => string | undefined

/** The separator of fields for each file extension; null for files of JSON objects. */
const separators: Readonly<Record<string, string | null>> = {
  ".jsonl": null,
  ".ndjson": null,
  ".json": null,
  ".csv": ",",
  ".tsv": "\t",
}

export type Parsed = { readonly fields: Plain } | { readonly line: number; readonly problem: string }

const shown = (text: string): string => {
  const trimmed = text.trim()
  return JSON.stringify(trimmed.length > 60 ? `${trimmed.slice(0, 57)}…` : trimmed)
}

const textOf = (bytes: Uint8Array): string | undefined => {
  try {
    return utf8.decodeExact(bytes)
  } catch {
    return undefined
  }
}

/** Parses a record from a line of JSON. */
export const fromJson = (text: string, line: number): Parsed => {
  const value = parsedJson(text)
  if (isPlain(value)) return { fields: value }
  const hint = Array.isArray(value) ? `; "jq -c '.[]'" writes each item of an array on its own line` : ""
  return { line, problem: `expected a JSON object on one line, found ${shown(text)}${hint}` }
}

/** Parses a record from a line of values. `names` are the names of the columns. */
export const fromCsv = (text: string, line: number, separator: string, names: ReadonlyArray<string>): Parsed => {
  const values = fieldsOf(text, separator, line)
  if ("problem" in values) return values
  if (values.length !== names.length) {
    return { line, problem: `expected ${names.length} fields as in the header, found ${values.length}` }
  }
  return { fields: Object.fromEntries(names.map((name, at) => [name, values[at]])) }
}

/** Returns the problem of a header; undefined if it has none. */
export const headerProblem = (names: ReadonlyArray<string>): string | undefined => {
  const before = new Set<string>()
  const twice = names.find((name) => before.size === before.add(name).size)
  if (twice !== undefined) return `expected a header of different names, found ${shown(twice)} twice`
  return names.some((name) => name.trim() === "") ? "expected a header of names, found an empty one" : undefined
}

/** Returns a record's text without its line end, and without the empty lines between it and the next record. */
const withoutLineEnds = (text: string): string => {
  let end = text.length
  while (end > 0 && " \t\r\n".includes(text[end - 1])) end--
  const lineEnd = text.indexOf("\n", end)
  return (lineEnd < 0 ? text : text.slice(0, lineEnd)).replace(/\r$/, "")
}

/** The records of a scanned file, by their offsets. */
interface ScannedFile {
  /** The character between the values of a line; null for JSON lines. */
  readonly separator: string | null
  /** The offsets of the records, and the numbers of their lines. */
  readonly offsets: Array<number>
  readonly lines: Array<number>
  /** The names of the columns, once the header is read. */
  names: ReadonlyArray<string> | undefined
  /** The number of bytes before the first record: 3 if the file begins with a byte order mark. */
  skipped: number
}

const parse = ({ separator, names }: ScannedFile, text: string, line: number): Parsed =>
  separator === null ? fromJson(text, line) : fromCsv(text, line, separator, names ?? [])

/** Adds a record. Returns its problem with the number of the line, if it has one. */
const addRecord = (
  scanned: ScannedFile,
  check: RecordCheck,
  bytes: Uint8Array,
  { offset, line }: { readonly offset: number; readonly line: number },
): string | undefined => {
  const { separator, offsets, lines } = scanned
  const text = textOf(bytes)
  if (text === undefined) return `:${line}: expected UTF-8, found other bytes`
  if (separator !== null && scanned.names === undefined) {
    const header = fieldsOf(text, separator, line)
    const problem = "problem" in header ? header.problem : headerProblem(header)
    if (problem !== undefined) return `:${line}: ${problem}`
    if (!("problem" in header)) scanned.names = header
    return undefined
  }
  const parsed = parse(scanned, text, line)
  if ("problem" in parsed) return `:${parsed.line}: ${parsed.problem}`
  const problem = check(parsed.fields, offsets.length)
  if (problem !== undefined) return `:${line}: ${problem}`
  offsets.push(offset + scanned.skipped)
  lines.push(line)
  return undefined
}

/**
 * Opens the records of a file. `name` is the file's path in the config. If `place` is set, for example to a cached copy, the
 * file is read from there, but messages show `name`.
 */
export const ofFile = (
  name: string,
  baseDir: string,
  check: RecordCheck,
  place = name,
): Effect.Effect<Records, DatasetError, FileSystem.FileSystem | Path.Path> =>
  Effect.gen(function* () {
    const fs = yield* FileSystem.FileSystem
    const { path, tried } = yield* locate(place, baseDir)
    const failed = (problem: string): DatasetError => new DatasetError({ path, message: `${name}${problem}` })
    const separator = separators[path.toLowerCase().replace(/^.*\./s, ".")]
    if (separator === undefined) {
      return yield* failed(": expected a file named .jsonl (one JSON object per line), .csv or .tsv")
    }

    const hash = new Sha256()
    const scanned: ScannedFile = { separator, offsets: [], lines: [], names: undefined, skipped: 0 }
    const { offsets, lines } = scanned
    const scanner = new RecordScanner(separator !== null, (bytes, offset, line) =>
      addRecord(scanned, check, bytes, { offset, line }),
    )
    const unreadableFile = (isMissing: boolean, message: string): DatasetError =>
      failed(isMissing ? `: there is no such file; expected ${tried.join(" or ")}` : `: can't be read: ${message}`)
    const readError = ({ reason, message }: PlatformError.PlatformError): DatasetError =>
      unreadableFile(reason._tag === "NotFound", message.split("\n")[0])

    yield* Effect.mapError(checkFile(path, Infinity), ({ missing, message }) => unreadableFile(missing, message))
    yield* fs.stream(path, { chunkSize: 256 * 1024 }).pipe(
      Stream.mapError(readError),
      Stream.runForEach((chunk) => {
        const atStart = hash.size === 0
        hash.update(chunk)
        // Skip the byte order mark (EF BB BF), which some editors write at the beginning of a file.
        if (atStart && chunk[0] === 0xef && chunk[1] === 0xbb && chunk[2] === 0xbf) scanned.skipped = 3
        const problem = scanner.push(atStart ? chunk.subarray(scanned.skipped) : chunk)
        return problem === undefined ? Effect.void : Effect.fail(failed(problem))
      }),
    )
    const problem = scanner.end()
    if (problem !== undefined) return yield* failed(problem)
    const size = offsets.length
    if (size === 0) return yield* failed(": expected at least one record, found none")

    const fileBytes = hash.size
    const readRange = pages(fs, path)
    return {
      name,
      size,
      digest: hash.hex(),
      at: (index) =>
        Effect.suspend(() => {
          if (!(index >= 0 && index < size)) return Effect.fail(failed(`: there is no record ${index} of ${size}`))
          const end = index + 1 < size ? offsets[index + 1] : fileBytes
          return Effect.flatMap(Effect.mapError(readRange(offsets[index], end), readError), (bytes) => {
            const place = `${name}:${lines[index]}`
            const text = bytes.length === end - offsets[index] ? textOf(bytes) : undefined
            const parsed = text === undefined ? undefined : parse(scanned, withoutLineEnds(text), lines[index])
            if (parsed === undefined || "problem" in parsed) {
              return Effect.fail(failed(`:${lines[index]}: the file has changed since it was opened`))
            }
            return Effect.succeed({ fields: parsed.fields, place })
          })
        }),
    } satisfies Records
  })

/** Opens records that the config lists itself; `place` is the config key of the list, for error messages. */
export const ofItems = (
  place: string,
  items: ReadonlyArray<Plain>,
  check: RecordCheck,
): Effect.Effect<Records, DatasetError> =>
  Effect.gen(function* () {
    const failed = (problem: string): DatasetError => new DatasetError({ path: place, message: `${place}${problem}` })
    if (items.length === 0) return yield* failed(": expected at least one item, found none")
    for (const [index, item] of items.entries()) {
      const problem = check(item, index)
      if (problem !== undefined) return yield* failed(`[${index}]: ${problem}`)
    }
    return {
      name: "items",
      size: items.length,
      digest: yield* sha256(utf8.encode(JSON.stringify(items))),
      at: (index) => {
        const fields = items[index]
        return fields === undefined
          ? Effect.fail(failed(`: there is no item ${index} of ${items.length}`))
          : Effect.succeed({ fields, place: `${place}[${index}]` })
      },
    } satisfies Records
  })
